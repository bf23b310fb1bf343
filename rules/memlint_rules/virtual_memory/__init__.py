"""Files that are mapped into memory, and the pages they come in."""
