"""Experiments, one in each file; they are found by walking this package."""
