"""One self-contained page about data, results, models and decisions."""

from __future__ import annotations

from genkern.report.page import write_report

__all__ = ["write_report"]
