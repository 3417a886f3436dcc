"""What an experiment finds, beside what the paper prints, as a page."""

from __future__ import annotations

import html
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
import sklearn

from genkern import __version__
from genkern.data.whole_files import whole_file


@dataclass(frozen=True)
class Table:
    """Figures under a caption.

    Parameters
    ----------
    caption : str
        What is counted, in which unit, and what the spread is.
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences
        Cells: texts, numbers (shown to three significant digits) or None.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def texts(self) -> list[list[str]]:
        """Return the cells as text."""
        return [[_text(cell) for cell in row] for row in self.rows]


@dataclass(frozen=True)
class Report:
    """An experiment's result.

    Parameters
    ----------
    name, title, source : str
        Its name, what it is, and where it stands in which paper.
    protocol : str
        What was done, with seeds, and where it differs from the paper; paragraphs of Markdown.
    tables : list of Table
        The paper's figures beside ours, and tests.
    findings : str, default=""
        What agrees, what does not, and why; of the full run.
    figures : dict of str to matplotlib Figure
        Pictures like the paper's, by caption.
    quick : bool, default=False
        Whether this was the quick version, on fewer objects and settings than the protocol says.
    """

    name: str
    title: str
    source: str
    protocol: str
    tables: list[Table]
    findings: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    quick: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        tables = [
            {"caption": t.caption, "columns": list(t.head), "rows": [list(row) for row in t.rows]} for t in self.tables
        ]
        return {"name": self.name, "source": self.source, "quick": self.quick, "versions": versions(), "tables": tables}

    def markdown(self) -> str:
        """Return the page as Markdown; pictures are the files that ``write`` puts beside it."""
        quick = ["**A quick run, on fewer objects and settings than the protocol says.**"] if self.quick else []
        parts = [f"# {self.title}", self.source, *quick, "## Protocol", self.protocol, "## Figures"]
        for table in self.tables:
            cells = [[_escaped(cell) for cell in row] for row in [list(table.head), *table.texts()]]
            lines = ["| " + " | ".join(row) + " |" for row in cells]
            parts += [table.caption, "\n".join([lines[0], "|" + "---|" * len(table.head), *lines[1:]])]
        parts += [f"![{caption}]({self._picture(i)})" for i, caption in enumerate(self.figures)]
        if self.findings and not self.quick:
            parts += ["## What agrees, what does not", self.findings]
        return "\n\n".join([*parts, f"*{', '.join(f'{k} {v}' for k, v in versions().items())}*"]) + "\n"

    def html(self) -> str:
        """Return the page as HTML, pictures inside."""
        parts = [f"<h1>{html.escape(self.title)}</h1>", _paragraphs(self.source)]
        if self.quick:
            parts.append("<p><strong>A quick run, on fewer objects and settings than the protocol says.</strong></p>")
        parts += ["<h2>Protocol</h2>", _paragraphs(self.protocol), "<h2>Figures</h2>", *map(_html_table, self.tables)]
        for caption, figure in self.figures.items():
            parts.append(f"<figure>{_svg(figure)}<figcaption>{html.escape(caption)}</figcaption></figure>")
        if self.findings and not self.quick:
            parts += ["<h2>What agrees, what does not</h2>", _paragraphs(self.findings)]
        parts.append(f"<p><small>{', '.join(f'{k} {v}' for k, v in versions().items())}</small></p>")
        return _PAGE.format(title=html.escape(self.title), style=_STYLE, body="\n".join(parts))

    def write(self, folder: Path) -> list[Path]:
        """Write ``NAME.md`` with its pictures, and ``NAME.html``, into a folder; return the files."""
        files: dict[str, bytes] = {
            f"{self.name}.md": self.markdown().encode(),
            f"{self.name}.html": self.html().encode(),
        }
        files |= {self._picture(i): _svg(figure).encode() for i, figure in enumerate(self.figures.values())}
        for name, content in files.items():
            with whole_file(folder / name, "reproduce") as stream:
                stream.write(content)
        return [folder / name for name in files]

    def _picture(self, index: int) -> str:
        return f"{self.name}-{index + 1}.svg"


def contents(reports: Sequence[Report], missing: Sequence[str]) -> str:
    """Return a page in HTML that links to those of several experiments, beside it, and says which were not run."""
    rows = "".join(
        f'<li><a href="{report.name}.html">{html.escape(report.title)}</a><br>{html.escape(report.source)}</li>'
        for report in reports
    )
    others = "".join(f"<li>{html.escape(reason)}</li>" for reason in missing)
    body = "<h1>Experiments</h1><ul>" + rows + "</ul>" + (f"<h2>Not run</h2><ul>{others}</ul>" if others else "")
    return _PAGE.format(title="Experiments", style=_STYLE, body=body)


def versions() -> dict[str, str]:
    """Return the versions that figures may depend on."""
    return {
        "genkern": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "Numba": numba.__version__,
    }


def percent(values: Any, digits: int = 1) -> str:
    """Return the mean of error rates in per cent, ± their standard deviation where there are several."""
    rates = 100.0 * np.atleast_1d(np.asarray(values, np.float64))
    spread = f" ± {rates.std(ddof=1):.{digits}f}" if len(rates) > 1 else ""
    return f"{rates.mean():.{digits}f}{spread}"


def starred(p_value: float) -> str:
    """Return a p-value with one star below 0.05 and two below 0.01, as Tsuda et al. have it."""
    return f"{p_value:.2g}" + ("**" if p_value < 0.01 else "*" if p_value < 0.05 else "")


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def _escaped(cell: str) -> str:
    """Return a cell in Markdown: a bar does not end it, and asterisks are shown."""
    return cell.replace("|", r"\|").replace("*", r"\*")


def _paragraphs(text: str) -> str:
    """Return paragraphs and lists of simple Markdown as HTML."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(block))
        marked = re.sub(r"\*\*([^*]*)\*\*", r"<strong>\1</strong>", marked)
        if block.startswith("- "):
            items = re.split(r"\n?^- ", marked, flags=re.M)[1:]
            parts.append("<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>")
        else:
            parts.append(f"<p>{marked}</p>")
    return "\n".join(parts)


def _html_table(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.head)
    whole = " ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"  # on one line
    rows = ["".join(f"<td>{html.escape(cell.replace(*whole))}</td>" for cell in row) for row in table.texts()]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><caption>{html.escape(table.caption)}</caption><tr>{head}</tr>{body}</table>"


def _svg(figure: Any) -> str:
    """Return a figure as an SVG element, the same for the same figure."""
    import io

    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "genkern", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1.5rem 0; display: block; overflow-x: auto }
caption { text-align: left; padding-bottom: .4rem; font-style: italic }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8886 }
figure { margin: 1.5rem 0 }
figure svg { max-width: 100%; height: auto; background: white }
""".strip()
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body><main>
{body}
</main></body>
</html>
"""
