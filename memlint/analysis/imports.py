"""Under which name a program knows a module."""

from __future__ import annotations

import re

from memlint.source.model import Source


def name_of_module(source: Source, module: str) -> str:
    """The name that ``module`` has everywhere in a program, or an empty text.

    Only imports at the left margin count: those in functions and branches may not have run.
    """
    pattern = rf"^import[ \t]+{re.escape(module)}(?:[ \t]+as[ \t]+(\w+))?[ \t]*(?:#.*)?\r?$"
    found = re.search(pattern, source.text, re.MULTILINE)
    if found is None:
        return ""
    return found.group(1) or module
