"""A page parsed into its elements, with the standard library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "input", "br", "img", "link", "hr"})


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]
    parent: Element | None = None
    content: list[Element | str] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        return [one for one in self.content if isinstance(one, Element)]

    def all(self, name: str = "") -> Iterator[Element]:
        """The elements below of a name, in their order."""
        for child in self.children:
            if not name or child.name == name:
                yield child
            yield from child.all(name)

    @property
    def text(self) -> str:
        return "".join(self.pieces())

    @property
    def words(self) -> str:
        """The text with a blank wherever an element begins or ends, and single blanks only."""
        return " ".join(" ".join(self.pieces()).split())

    def pieces(self) -> Iterator[str]:
        for one in self.content:
            if isinstance(one, str):
                yield one
            else:
                yield from one.pieces()

    def with_id(self, name: str) -> Element:
        (found,) = (one for one in self.all() if one.attributes.get("id") == name)
        return found

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def of_class(self, name: str) -> list[Element]:
        return [one for one in self.all() if name in one.classes]


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = self.here = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        made = Element(tag, dict(attrs), self.here)
        self.here.content.append(made)
        if tag not in _VOID:
            self.here = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.here.name, (tag, self.here)
        assert self.here.parent is not None
        self.here = self.here.parent

    def handle_data(self, data: str) -> None:
        self.here.content.append(data)


def parsed(page: str) -> Element:
    """The root above ``html``; fails where an element is not closed where it should be."""
    tree = _Tree()
    tree.feed(page)
    tree.close()
    assert tree.here is tree.root, tree.here
    return tree.root
