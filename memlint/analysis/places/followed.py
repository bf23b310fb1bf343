"""Which functions may be followed into, as those of the program and of its project are."""

from __future__ import annotations

import ast
from functools import lru_cache

from memlint.analysis.imported_names import imported
from memlint.analysis.last_name import last_name
from memlint.late_pattern import late_pattern

_LIBRARIES = frozenset(
    {"numpy", "torch", "cupy", "math", "os", "re", "json", "scipy", "cv2", "random", "time",
     "itertools", "functools", "collections", "copy", "logging", "pathlib", "typing", "warnings",
     "tqdm", "PIL", "pandas", "sklearn", "torchvision", "jax", "tensorflow", "einops"}
)  # fmt: skip
# Two patterns that begin with plain characters are found faster than one.
_DEFINITIONS = (late_pattern(r"def (\w+)"), late_pattern(r"class (\w+)"))


@lru_cache(maxsize=4)
def defined_names(source: str) -> frozenset[str]:
    """The names of the functions and classes of a source."""
    return frozenset(name for one in _DEFINITIONS for name in one.findall(source))


def may_be_followed(func: ast.expr, source: str) -> bool:
    """Whether what is called may be a function of the source, or of another module of its
    project; what its own names tell counts, not what they may have been assigned."""
    name = last_name(func)
    if not name or name in defined_names(source) or f"{name} = " in source:
        return True
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    module = imported(source).get(root.id)
    if module is not None:
        return module.partition(".")[0] not in _LIBRARIES
    return "import *" in source and root is func
