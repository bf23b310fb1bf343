"""One module per output format; each offers ``render(report, view) -> Iterator[str]``."""
