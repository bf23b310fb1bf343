"""A run of benches as one HTML page that needs nothing besides itself.  Import it where it is
wanted: it needs jinja2."""
