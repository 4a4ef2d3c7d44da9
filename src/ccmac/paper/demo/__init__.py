"""One problem from statement to certified solution, told in words, a picture and a page."""

from ccmac.paper.demo.page import page, picture
from ccmac.paper.demo.story import Story, compute, tell

__all__ = ["Story", "compute", "page", "picture", "tell"]
