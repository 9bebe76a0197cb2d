"""What users import: `__all__` is complete, and every public name says what it is."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import jinjarun
import probes

NAMES = [(door, name) for door in (jinjarun, probes) for name in door.__all__]


@pytest.mark.parametrize("door", [jinjarun, probes], ids=lambda door: door.__name__)
def test_all_is_every_name_that_the_package_gives(door: ModuleType) -> None:
    assert sorted(set(door.__all__)) == sorted(door.__all__)
    assert set(door.__all__) == set(door._HOME), "each public name has a home, and each name with a home is public"
    assert set(door.__all__) <= set(dir(door)), "what an editor completes"


@pytest.mark.parametrize(("door", "name"), NAMES, ids=lambda value: getattr(value, "__name__", value))
def test_every_public_name_has_a_docstring_of_its_own(door: ModuleType, name: str) -> None:
    value = getattr(door, name)
    said = inspect.getdoc(value)
    assert said
    assert not inspect.isclass(value) or value.__doc__ not in {base.__doc__ for base in value.__mro__[1:]}


def test_probes_gives_what_its_users_need_of_jinjarun() -> None:
    assert set(jinjarun.__all__) <= set(probes.__all__)
    for name in jinjarun.__all__:
        assert getattr(probes, name) is getattr(jinjarun, name)


@pytest.mark.parametrize("door", [jinjarun, probes], ids=lambda door: door.__name__)
def test_a_name_that_is_not_there(door: ModuleType) -> None:
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        door.nosuch  # noqa: B018
