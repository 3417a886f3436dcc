"""Hypothesis explores new cases on every run; where CI is set, it takes the same ones every time."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
