"""What the C++ and CUDA sources of extensions that a program compiles say of layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memlint.analysis.values import Const, Sequence, Value, alternatives
from memlint.late_pattern import late_pattern

Facts = Iterable[tuple[str, Value]]

# Whoever writes one of these in C++ minds the strides: makes the tensor dense, checks it, or
# reads through them.
_MINDED = late_pattern(
    r"contiguous\b|accessor|\bstrides?\s*\(|TensorIterator|\.stride\b|sizes_and_strides"
)
_RAW = late_pattern(r"data_ptr|\.data\s*<|mutable_data|const_data")
_PARAMETERS = ("cpp_sources", "cuda_sources", "1", "2")


def inline_source(facts: Facts) -> str:
    """The C++ that ``load_inline`` was given, or nothing where it is not in the program."""
    return "\n".join(text for name, value in facts if name in _PARAMETERS for text in _texts(value))


def _texts(value: Value) -> Iterator[str]:
    for one in alternatives(value):
        if isinstance(one, Const) and isinstance(one.value, str):
            yield one.value
        elif isinstance(one, Sequence):
            for item in one.items or ():
                yield from _texts(item)


def reads_bare_memory(source: str) -> bool:
    """Whether C++ takes addresses of tensors and never looks at their strides."""
    return bool(_RAW.search(source)) and not _MINDED.search(source)


def registers(facts: Facts, library: str) -> bool:
    """Whether the sources register operators of ``torch.ops.<library>``."""
    source = inline_source(facts)
    return bool(re.search(rf"TORCH_LIBRARY\w*\(\s*{re.escape(library)}\b", source))
