"""Rules about what threads and processes share."""
