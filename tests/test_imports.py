"""What is not needed is not loaded."""

import subprocess
import sys

import pytest

import ccmac

HEAVY = ("scipy", "networkx", "rich", "matplotlib", "ccmac.api", "ccmac.paper")


@pytest.mark.parametrize(
    "program", ["import ccmac", "from ccmac.cli.main import main; assert main(['--version']) == 0"]
)
def test_nothing_heavy_is_loaded_before_it_is_used(program: str) -> None:
    check = f"{program}; import sys; print(*(n for n in {HEAVY!r} if n in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", check], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == ""


def test_a_command_loads_no_other() -> None:
    others = ("ccmac.paper", "ccmac.vfl", "ccmac.runtime.links", "networkx", "scipy.optimize")
    check = (
        "from ccmac.cli.commands import application; application('solve'); import sys; "
        f"print(*(n for n in {others!r} if n in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == ""


def test_every_public_name_can_be_had() -> None:
    for name in ccmac.__all__:
        assert getattr(ccmac, name) is not None
