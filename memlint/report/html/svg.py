"""Elements of inline SVG, as markup in which every text and attribute is escaped."""

from __future__ import annotations

from markupsafe import Markup, escape

from memlint.report.view import printable


def element(name: str, *children: Markup | str, **attributes: str | float) -> Markup:
    """An element; names of attributes end in ``_`` where Python keeps them to itself, and have
    ``_`` where SVG has a hyphen."""
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
    ]
    opened = f"<{name}{''.join(parts)}"
    if not children:
        return Markup(f"{opened}/>")
    inner = "".join(one if isinstance(one, Markup) else text(one) for one in children)
    return Markup(f"{opened}>{inner}</{name}>")


def text(content: str) -> Markup:
    """A text, with what would disturb its reading written as escapes."""
    return escape(printable(content))


def percent(part: float) -> str:
    """A share of a whole as a length."""
    return f"{_written(part * 100)}%"


def picture(
    title: str, description: str, *children: Markup, height: float, **attributes: str | float
) -> Markup:
    """An image as wide as there is room, ``height`` pixels high, whose lengths along x are
    percentages; told in words by its title and its description."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        role="img",
        width="100%",
        height=height,
        **attributes,
    )


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return printable(value)
    return f"{value:.3f}".rstrip("0").rstrip(".")
