"""What the terminal can show: its width, and whether colours are wanted."""

from __future__ import annotations

import os
import shutil
from typing import IO, Any

from memlint.report.view import PLAIN_WIDTH

_NARROWEST = 60
_WIDEST = 140


def wants_color(choice: str, stream: IO[Any]) -> bool:
    """Whether to write colours: as told, else by NO_COLOR, FORCE_COLOR and the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def width_of(stream: IO[Any]) -> int:
    """Columns to write: the terminal's, within reason; a fixed number for pipes and files."""
    if not stream.isatty():
        return PLAIN_WIDTH
    columns = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
    return max(_NARROWEST, min(columns, _WIDEST))
