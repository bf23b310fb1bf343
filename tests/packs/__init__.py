"""Rule packs for tests, each a folder to be put on the path."""

from __future__ import annotations

import os
from pathlib import Path

FLAG_PACK = Path(__file__).parent / "flag"
MEND_PACK = Path(__file__).parent / "mend"


def environment(*packs: Path) -> dict[str, str]:
    """The environment of a command that is to see the packs too."""
    path = os.pathsep.join([*map(str, packs), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path}
