"""The command, as ``python -m genkern``."""

import sys

from genkern.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
