"""The abstract interpreter: from a syntax tree to events that carry abstract values.

The parts stand on each other, each knowing only those before it: ``machine``, ``access``,
``expressions``, ``activations``, ``calls``, ``assignments``, ``branches``, ``statements``,
``nests``, ``loops``, ``objects``, ``layers``, ``models``, ``devices``, ``frameworks``,
``launches``, ``kernels``, ``compiled``, ``workers``, ``arrays``, ``program``.  The other
modules hold functions and records that these share.
"""

from memlint.analysis.interpreter.program import Interpreter

__all__ = ["Interpreter"]
