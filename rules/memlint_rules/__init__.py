"""The rules that come with memlint."""
