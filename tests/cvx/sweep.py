"""Many random models: python tests/cvx/sweep.py FIRST LAST."""

from __future__ import annotations

import sys

from cvx.models import disagreements, random_model


def main(first: int, last: int) -> int:
    """Print what differs from Clarabel; the exit code says whether anything is wrong."""
    wrong = 0
    unproved = 0
    for seed in range(first, last):
        model = random_model(seed)
        found = disagreements(model)
        wrong += any(line != "unproved" for line in found)
        unproved += "unproved" in found
        for line in found:
            print(f"seed {seed} ({model.kind}): {line}", flush=True)
    print(f"{last - first} models, {wrong} wrong, {unproved} right but unproved")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
