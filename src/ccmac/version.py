"""The version, from the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("ccmac")
except PackageNotFoundError:
    __version__ = "0+unknown"
