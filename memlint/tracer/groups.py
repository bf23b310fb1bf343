"""What a trace must not keep of a distributed program: its default process group."""

from __future__ import annotations

import sys
from importlib import import_module

from torch import distributed

_CAPTURES = "torch.distributed.nn"


def spare_the_default_group() -> None:
    """Import ``torch.distributed.nn`` so that it does not hold on to the default process group.

    Its functions have that group as a default value, taken when it is imported, which the first
    operation under any dispatch mode does.  In a program whose group exists by then no
    ``destroy_process_group()`` would ever destroy it, and its threads, still running when the
    interpreter goes down, end the process with SIGABRT once in a while.
    """
    if _CAPTURES in sys.modules or not distributed.is_available():
        return
    functions = vars(import_module(f"{_CAPTURES}.functional"))
    world = distributed.group.WORLD
    if world is None:
        return
    for function in functions.values():
        defaults = getattr(function, "__defaults__", None)
        if defaults and any(one is world for one in defaults):
            # As it would be had the module been imported before there was a group.
            function.__defaults__ = tuple(None if one is world else one for one in defaults)
