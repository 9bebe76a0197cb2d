"""Reading back what a model writes: the syntax of its answers as data, and parsers by it, whole and in pieces."""

from jinjarun.responses.message import ParsedMessage, Problem
from jinjarun.responses.stream import ResponseParser
from jinjarun.responses.syntax import ResponseSyntax

__all__ = ["ParsedMessage", "Problem", "ResponseParser", "ResponseSyntax"]
