"""What all pages share: how templates are filled in, and what a page may load."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memlint.report.view import printable


def environment(package: str, **filters: Callable[..., Any]) -> Environment:
    """The templates of a package.  Everything that is filled in is escaped, and shows characters
    that would disturb."""
    made = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(filters)
    return made


def _shown(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def own_file(package: str, name: str) -> Markup:
    """A file of a package: its text is ours, and needs no escaping."""
    return Markup(resources.files(package).joinpath(name).read_text(encoding="utf-8"))


def shared_style() -> Markup:
    """The look of all pages."""
    return own_file(__package__, "page.css")


def shared_script() -> Markup:
    """The switch between light and dark."""
    return own_file(__package__, "theme.js")


def policy(style: str, script: str) -> str:
    """Nothing is loaded from anywhere; of scripts and styles only the page's own apply."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
