"""One problem from statement to certified solution, told in words, a picture and a page."""

from ccmac.lab.demo.page import page, picture
from ccmac.lab.demo.story import Story, compute, tell

__all__ = ["Story", "compute", "page", "picture", "tell"]
