"""A rule pack that flags calls by their names."""
