"""Whether a document is as its JSON schema says, with no library but Python's own.

Knows what the schemas of this package use, which a test holds it to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from json import loads
from typing import Any

_Schema = Mapping[str, Any]


class SchemaError(ValueError):
    """A document that is not as its schema says; the text says where, and what was expected."""


@lru_cache
def schema(name: str) -> _Schema:
    """A schema of this package: "trace" or "check"."""
    text = resources.files("memlint").joinpath(f"schemas/{name}.schema.json").read_text("utf-8")
    read: _Schema = loads(text)
    return read


def validate(document: Any, schema: _Schema, *, optional: Collection[str] = ()) -> None:
    """Raise :class:`SchemaError` at the first place where a document is not as its schema says.

    Members named in ``optional`` may be missing, and members that the schema does not know are
    passed over: other versions of memlint have less, or more.
    """
    for where, fault in _errors(document, schema, schema, "", frozenset(optional)):
        raise SchemaError(f"{where}: {fault}" if where else fault)


_Errors = Iterator[tuple[str, str]]


def _errors(
    value: Any, part: _Schema, whole: _Schema, where: str, optional: frozenset[str]
) -> _Errors:
    if "$ref" in part:
        found = whole["$defs"][part["$ref"].removeprefix("#/$defs/")]
        yield from _errors(value, found, whole, where, optional)
    if "oneOf" in part:
        every = [next(_errors(value, one, whole, where, optional), None) for one in part["oneOf"]]
        if None not in every:
            # The last alternative is what is there, the others are null.
            yield from (one for one in every[-1:] if one is not None)
    if "type" in part:
        wanted = part["type"] if isinstance(part["type"], list) else [part["type"]]
        if not any(_TYPES[one](value) for one in wanted):
            yield where, f"{' or '.join(wanted)} expected"
            return
    if ("enum" in part and value not in part["enum"]) or (
        "const" in part and value != part["const"]
    ):
        yield where, f"one of {part.get('enum', [part.get('const')])} expected"
    if isinstance(value, str):
        yield from _text(value, part, where)
    elif isinstance(value, list):
        yield from _array(value, part, whole, where, optional)
    elif isinstance(value, dict):
        yield from _object(value, part, whole, where, optional)
    elif _is_number(value) and value < part.get("minimum", -math.inf):
        yield where, f"at least {part['minimum']} expected"


def _text(value: str, part: _Schema, where: str) -> _Errors:
    if len(value) < part.get("minLength", 0):
        yield where, "a text expected"
    if "pattern" in part and re.search(part["pattern"], value) is None:
        yield where, f"a text like {part['pattern']} expected"


def _array(
    value: list[Any], part: _Schema, whole: _Schema, where: str, optional: frozenset[str]
) -> _Errors:
    least, most = part.get("minItems", 0), part.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        yield where, f"{least} to {most} items expected"
    first = part.get("prefixItems", ())
    for number, one in enumerate(value):
        kind = first[number] if number < len(first) else part.get("items", {})
        yield from _errors(one, kind, whole, f"{where}[{number}]", optional)


def _object(
    value: dict[str, Any], part: _Schema, whole: _Schema, where: str, optional: frozenset[str]
) -> _Errors:
    for name in part.get("required", ()):
        if name not in value and name not in optional:
            yield where, f"it has no {name!r}"
    known, others = part.get("properties", {}), part.get("additionalProperties", {})
    for name, one in value.items():
        kind = known.get(name, others if isinstance(others, Mapping) else {})
        yield from _errors(one, kind, whole, f"{where}.{name}" if where else name, optional)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, int) or math.isfinite(value)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and int(value) == value,
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
