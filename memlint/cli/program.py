"""Another program, run in this process as Python would run it."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType

from memlint.cli.status import Status

_OWN_FILES = (os.path.dirname(os.path.abspath(__file__)), runpy.__file__, "<frozen ")


@dataclass(frozen=True, slots=True)
class Program:
    """A script (or a folder or zip file that can be run), or with ``as_module`` a module by its
    name, and its arguments."""

    name: str
    arguments: Sequence[str]
    as_module: bool

    @property
    def exists(self) -> bool:
        """Whether there is such a script; modules are looked for when they are run."""
        return self.as_module or os.path.exists(self.name)

    def run(self) -> int:
        """Run the program and return its exit status.

        What it raises is reported the way Python does, with the frames of the program alone.
        """
        self._set_path()
        sys.argv = [self.name, *self.arguments]
        try:
            if self.as_module:
                runpy.run_module(self.name, run_name="__main__", alter_sys=True)
            elif self._is_source:
                self._run_source()
            else:
                runpy.run_path(os.path.abspath(self.name), run_name="__main__")
        except SystemExit as request:
            return _exit_status(request.code)
        except BaseException as error:
            within = _program_frames(error.__traceback__)
            if within is None and self.as_module and isinstance(error, ImportError):
                print(f"error: {error}", file=sys.stderr)  # no module of this name
                return 1
            sys.excepthook(type(error), error.with_traceback(within), within)
            interrupted = isinstance(error, KeyboardInterrupt)
            return Status.INTERRUPTED if interrupted else 1
        return Status.CLEAN

    def _set_path(self) -> None:
        """Put first on ``sys.path`` what Python would have put there."""
        # The folder of the command ``memlint``: ``python -m memlint`` has none there.
        if sys.path and sys.path[0] == os.path.dirname(os.path.realpath(sys.argv[0])):
            del sys.path[0]
        if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
            return
        if self.as_module:
            sys.path.insert(0, os.getcwd())
        elif os.path.isfile(self.name) and not zipfile.is_zipfile(self.name):
            sys.path.insert(0, os.path.dirname(os.path.realpath(self.name)))

    @property
    def _is_source(self) -> bool:
        return os.path.isfile(self.name) and self.name.endswith((".py", ".pyw"))

    def _run_source(self) -> None:
        """As Python itself does: the path of ``__main__`` is absolute, that of ``sys.argv`` as it
        was given, and the module stays when it has run, for what is to run at exit."""
        path = os.path.abspath(self.name)
        main = ModuleType("__main__")
        main.__file__ = path
        main.__loader__ = SourceFileLoader("__main__", path)
        main.__dict__.update(__builtins__=builtins, __cached__=None, __package__=None)
        sys.modules["__main__"] = main
        code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        exec(code, main.__dict__)


def _exit_status(code: object) -> int:
    if code is None:
        return Status.CLEAN
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _program_frames(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
            break
        traceback = traceback.tb_next
    return traceback
