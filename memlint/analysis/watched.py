"""Names under which rules ask for what is not the call of one function."""

from __future__ import annotations

from memlint.late_pattern import late_pattern

BLOCK = "block"
"""The name of calls of the blocks of a stack, in Called events."""
HOST_COPIES = "memlint.host_copies"
SWITCH = late_pattern(r"\.(?:to|copy_)\([^()]*,\s*True\s*\)|non_blocking")
"""What a program holds that has a copy not be waited for: the name, or ``True`` at the end."""
