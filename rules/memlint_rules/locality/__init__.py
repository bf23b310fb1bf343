"""Rules about the order in which memory is walked."""
