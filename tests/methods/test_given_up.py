"""Steps that the time limit ends in their middle leave no trace but a note; what is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccmac.errors import OutOfTime
from ccmac.methods.driver import Settings, drive
from methods.test_driver import Scaling, Toy


class Late(Scaling):
    """The time is over within step ``bad``, after its state was used up and work was charged."""

    def step(self, state: Toy) -> Toy:
        self.space.runtime.ledger.charge(gradients=1)
        state.w[...] *= self.factor
        if state.count + 1 == self.bad:
            raise OutOfTime("late")
        return replace(state, count=state.count + 1)


def test_it_is_not_counted_and_not_on_the_bill() -> None:
    iteration = Late(factor=0.5, bad=3)
    start = iteration.start(None, None)
    outcome = drive(iteration, start, Settings(20, max_seconds=60.0))
    assert (outcome.status, outcome.iterations) == ("max_iterations", 2)
    assert isinstance(outcome.state, Toy)
    assert outcome.state.count == 2
    assert set(outcome.state.w.tolist()) == {0.25}
    assert iteration.space.runtime.ledger["gradients"] == 2
    [note] = outcome.notes
    assert note == (
        "the time limit passed within iteration 3, which was given up and is not on the bill; "
        "raise max_seconds"
    )


def test_without_a_limit_nothing_is_kept_that_one_could_return_to() -> None:
    iteration = Late(bad=2)
    with pytest.raises(OutOfTime, match="late"):
        drive(iteration, iteration.start(None, None), Settings(20))
