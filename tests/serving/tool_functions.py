"""Functions that a client may offer as tools, and functions that nobody can make a tool of."""

# ruff: noqa: UP007, UP045, PLR0917 - hints in all the spellings that people use
from __future__ import annotations

from enum import Enum, IntEnum
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, Union  # noqa: UP035


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    ONE = 1
    NAME = "name"
    NOTHING = None
    HALF = 0.5


class Empty(Enum):
    pass


class Objects(Enum):
    POINT = (1, 2)


class Custom:
    pass


def weather(city: str, days: int = 1):
    """Tells the weather.

    Args:
        city: The city to look at
        days: How many days ahead
    """


def celsius(value: float, unit: str) -> float:
    """
    Converts a temperature.

    It is a long story, told
    over several lines.

    Args:
        value (float): The temperature,
            in the unit that is named
            by the other argument.
        unit: The unit. (choices: ["kelvin", " fahrenheit "])

    Returns:
        The temperature
        in degrees Celsius.

    Raises:
        ValueError: for anything else
    """


def containers(
    names: list[str],
    pairs: dict[str, int],
    point: tuple[int, float],
    anything: Any,
    old: List[Dict[str, List[int]]],  # noqa: UP006
    bare: list,
    older: Tuple[str, int] = ("a", 1),  # noqa: UP006
):
    """Takes containers.

    Args:
        names: Names: several
        pairs: Pairs
        point: A point
        anything: Whatever
        old: Spelled as it used to be
        bare: A list
        older: A pair
    """


def unions(
    a: Union[int, str],
    b: int | None,
    c: Optional[list[int]],
    d: Union[list[int], dict[str, str], None],
    e: list | tuple,
    f: Literal["x", 1, None] | None = None,
    g: Optional[Any] = None,
    h: int | float | None = 0,
):
    """Takes unions.

    Args:
      a: A
      b: B
      c: C
      d: D
      e: E
      f: F
      g: G
      h: H
    """


def enums(colour: Colour, level: Level, mixed: Mixed, mode: Literal["fast", "slow"] = "fast") -> Custom:
    """Takes enums.

    Args:
        colour: The colour
        level: The level
        mixed: What it is
        mode: The mode (Choices: ["fast", "slow", 3])

    Returns:
        Something that has no schema
    """


def no_arguments() -> None:
    """Does nothing at all."""


def spread(*values: int, **options: Annotated[str, "a note"]) -> Any:
    """Takes as many as there are.

    Args:
        values: The values
        options: The options
    """


class Tools:
    def method(self, query: str) -> list[str]:
        """Searches.

        Args:
            query: What to look for

        Returns:
            What was found
        """
        raise NotImplementedError

    @classmethod
    def of_class(cls, count: int):
        """Counts.

        Args:
            count: How many
        """

    def self_with_a_hint(self: str, x: int):
        """Has a receiver that is an argument.

        Args:
            self: It
            x: That
        """


def undocumented(x: int):
    pass


def undescribed(x: int, y: int):
    """Describes one argument.

    Args:
        x: The first
    """


def without_hint(x, y: int = 1):
    """Has no hint.

    Args:
        x: The first
        y: The second
    """


def custom(x: Custom):
    """Takes an object.

    Args:
        x: The object
    """


def set_of(x: set[int]):
    """Takes a set.

    Args:
        x: The set
    """


def single(x: tuple[int]):
    """Takes a tuple of one.

    Args:
        x: The tuple
    """


def endless(x: tuple[int, ...]):
    """Takes a tuple of any length.

    Args:
        x: The tuple
    """


def empty_enum(x: Empty):
    """Takes nothing.

    Args:
        x: Nothing
    """


def enum_of_objects(x: Objects):
    """Takes objects.

    Args:
        x: The object
    """


def bad_choices(x: str):
    """Has choices that are no JSON.

    Args:
        x: One of (choices: [a, b])
    """


def number_as_choices(x: int):
    """Has choices that are no list.

    Args:
        x: One of (choices: 3)
    """


def unknown_hint(x: Unknown):  # type: ignore[name-defined]  # noqa: F821
    """Names a type that is not there.

    Args:
        x: It
    """


GOOD = (
    weather,
    celsius,
    containers,
    unions,
    enums,
    no_arguments,
    spread,
    Tools.method,
    Tools().method,
    Tools.of_class,
    Tools.self_with_a_hint,
)
BAD = (
    undocumented,
    undescribed,
    without_hint,
    custom,
    set_of,
    single,
    endless,
    empty_enum,
    enum_of_objects,
    bad_choices,
    number_as_choices,
    unknown_hint,
    lambda: None,
)
