"""Sieves: which functions can hold a place that a rule would report, as far as syntax tells."""
