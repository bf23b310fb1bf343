"""``dataclass``, with methods that are written when the first of them is called.

The standard library writes and compiles up to six methods of a class where it is defined.  That
takes half a millisecond, for each of two hundred classes, of a few of which a short run makes
objects.

The classes are the same to a reader and to a type checker, which sees to it that nothing changes
a frozen object.  At run time nothing does: to make an object would take several times as long,
and the analysis makes millions.
"""

from __future__ import annotations

import dataclasses
import inspect
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass

_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_FACTS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_WRITING = RLock()


class _Unwritten:
    """A class whose methods are still to be written: the standard library does it to the class
    as it was before it had slots."""

    __slots__ = ("attributes", "cls", "options", "template")

    def __init__(self, template: type, cls: type, options: dict[str, bool]) -> None:
        self.template, self.cls, self.options = template, cls, options
        wanted = ["__init__", "__repr__", *(_ORDER if options["order"] else ())]
        wanted += ["__eq__"] if options["eq"] else []
        wanted += ["__hash__"] if options["unsafe_hash"] else []
        methods = [name for name in wanted if name not in vars(template)]
        for name in methods:
            setattr(cls, name, self._method(name))
        for name in _FACTS:
            setattr(cls, name, _LateFact(self, name))
        self.attributes = (*methods, *_FACTS)

    def written(self, name: str) -> Any:
        """A method or a fact of the class, all of which are written now."""
        with _WRITING:
            if "__dataclass_fields__" not in vars(self.template):
                # Else its signature would be spelt out to stand in for it.
                self.template.__doc__ = self.template.__doc__ or self.template.__name__
                dataclasses.dataclass(**self.options)(self.template)
                for one in self.attributes:
                    setattr(self.cls, one, vars(self.template)[one])
        return vars(self.template)[name]

    def _method(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **keywords: Any) -> Any:
            return self.written(name)(*args, **keywords)

        return method


class _LateFact:
    """What is known of a class once its methods are written."""

    __slots__ = ("name", "unwritten")

    def __init__(self, unwritten: _Unwritten, name: str) -> None:
        self.unwritten, self.name = unwritten, name

    def __get__(self, instance: object, owner: type) -> Any:
        return self.unwritten.written(self.name)


def _dataclass(
    *, slots: bool, frozen: bool = False, eq: bool = True, order: bool = False
) -> Callable[[type], type]:
    """As :func:`dataclasses.dataclass`, for classes with slots."""

    def decorate(template: type) -> type:
        names = tuple(inspect.get_annotations(template))
        left_out = {*names, "__dict__", "__weakref__"}
        space = {key: value for key, value in vars(template).items() if key not in left_out}
        space["__slots__"] = names
        hashed = eq and frozen and "__hash__" not in space
        if eq and not frozen:
            space.setdefault("__hash__", None)
        cls = type(template)(template.__name__, template.__bases__, space)
        cls.__qualname__ = template.__qualname__
        _Unwritten(template, cls, {"eq": eq, "order": order, "unsafe_hash": hashed})
        return cls

    return decorate


if not TYPE_CHECKING:
    dataclass = _dataclass

__all__ = ["dataclass"]
