"""One problem from statement to certified solution, explained in words, a picture and a page."""

from ccmac.paper.demo.page import page, picture
from ccmac.paper.demo.story import Story, compute, tell

__all__ = ["Story", "compute", "page", "picture", "tell"]
