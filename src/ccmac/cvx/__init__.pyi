from .model import Agent
from .split import split

__all__ = ["Agent", "split"]
