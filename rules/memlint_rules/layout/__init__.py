"""The order in which the axes of an array lie in memory."""
