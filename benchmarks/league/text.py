"""WebKB: pages of students against pages of faculty, by their words."""

from __future__ import annotations

import csv
import gzip

import numpy as np

from benchmarks.league.contest import SHARED, Contest, Task
from genkern import recipes


def webkb() -> Task:
    """Return all pages in the order of their file; splits take those of the two classes."""
    csv.field_size_limit(1 << 30)
    with gzip.open(SHARED / "webkb" / "webkb4.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    return Task([row["text"] for row in rows], np.array([row["class"] for row in rows]))


CONTESTS = {
    "webkb_77": Contest("webkb_student_faculty_77", webkb, recipes.text, 9.0, 12.6),
    "webkb_622": Contest("webkb_student_faculty_622", webkb, recipes.text, 4.9, 6.0),
}
