"""A rule pack for tests: rules that flag, die, hang or raise at calls of certain names."""
