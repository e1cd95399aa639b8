"""`python -m runtime.cli`: the command without its script."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
