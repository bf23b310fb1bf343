"""Findings from a trace that ``torch.profiler`` has written (Kineto, Chrome JSON).

Everything here reads text and needs no torch.
"""
