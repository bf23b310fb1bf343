"""Classes whose methods are written late are those that the standard library would have made."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from memlint.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    line: int
    column: int


@dataclass(slots=True)
class Count:
    number: int = 0


@dataclass(eq=False, slots=True)
class Site:
    label: str


@dataclass(frozen=True, slots=True)
class Named:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


def test_objects_are_compared_hashed_and_shown_by_their_fields() -> None:
    assert Point(1) == Point(1, 2, ["other"]) != Point(1, 3)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert repr(Point(1)) == "Point(x=1, y=2, tags=[])"
    assert Point(1).tags is not Point(1).tags
    assert Site("a") != Site("a")
    assert Named("A") == Named("a")
    assert len({Named("A"), Named("a")}) == 1


def test_ordered_ones_have_an_order() -> None:
    assert sorted([Place(2, 1), Place(1, 5), Place(1, 2)])[0] == Place(1, 2)
    assert Place(1, 2) < Place(1, 3)


def test_what_may_change_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Count())


def test_the_facts_of_a_class_are_known_before_there_is_an_object() -> None:
    @dataclass(frozen=True, slots=True)
    class Pair:
        left: int
        right: int

    assert [one.name for one in dataclasses.fields(Pair)] == ["left", "right"]
    match dataclasses.replace(Pair(1, 2), right=3):
        case Pair(left, right):
            assert (left, right) == (1, 3)
    assert dataclasses.asdict(Pair(1, 2)) == {"left": 1, "right": 2}


def test_objects_have_slots_only_and_can_be_copied_and_sent() -> None:
    assert not hasattr(Point(1), "__dict__")
    assert copy.copy(Point(1, 5)) == Point(1, 5) == pickle.loads(pickle.dumps(Point(1, 5)))


def test_wrong_arguments_are_refused_as_ever() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
