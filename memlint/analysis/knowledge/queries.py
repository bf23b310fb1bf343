"""Methods that answer about an array instead of making one."""

from __future__ import annotations

from memlint.analysis.knowledge import subscripts
from memlint.analysis.knowledge.model import Table, rows, table
from memlint.analysis.knowledge.numpy_table import to_host

METHODS: Table = table(
    rows(subscripts.size, "size", "x", "x, 0", "x, dim=-1"),
    rows(subscripts.dim, "dim ndimension", "x"),
    rows(subscripts.is_contiguous, "is_contiguous", "x"),
)
"""Methods of torch tensors."""

CUPY_METHODS: Table = rows(to_host, "get")
"""Methods of cupy arrays that numpy arrays do not have."""
