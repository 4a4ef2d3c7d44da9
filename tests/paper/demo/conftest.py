"""The demo is also run as a command."""

from cli.conftest import run

__all__ = ["run"]
