"""Memory that is taken more often, kept longer or wider than the program needs."""
