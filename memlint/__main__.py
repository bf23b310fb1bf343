"""``python -m memlint``."""

import sys

if __name__ == "__main__":
    # Python has put the working directory first, where a module of the code to be checked
    # would be imported in place of one that memlint needs.
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    from memlint.cli.main import main

    main()
