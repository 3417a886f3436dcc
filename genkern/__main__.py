"""The command, as ``python -m genkern``."""

import sys

from genkern.cli.main import main

sys.exit(main())
