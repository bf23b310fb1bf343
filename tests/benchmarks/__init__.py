"""How fast memlint is, measured beside its peers.

Nothing in here is a test: a timing never decides whether the suite passes.  The two
programs are run by hand, from the root of the repository::

    python -m tests.benchmarks.wheels --dest DIR
    python -m tests.benchmarks.speed --wheels DIR --peers VENV
"""
