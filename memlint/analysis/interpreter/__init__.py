"""The abstract interpreter: from a syntax tree to events that carry abstract values.

The parts stand on each other, each knowing only those before it: ``machine`` (state),
``expressions``, ``calls``, ``statements``, ``loops``, ``objects``, ``models``, ``devices``,
``kernels``, ``workers``, ``program``.
"""

from memlint.analysis.interpreter.program import Interpreter

__all__ = ["Interpreter"]
