"""What the site has beside the files of docs/: pages made of the source, links out of it, formulas as MathML."""

from __future__ import annotations

import inspect
import os
import re
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import genkern

# Files outside of docs/ that are pages of the site, and pages that others link to by the name of such a file.
COPIED = {
    "CHANGELOG.md": "generated/changelog.md",
    "CONTRIBUTING.md": "generated/contributing.md",
    "CODE_OF_CONDUCT.md": "generated/conduct.md",
    "SECURITY.md": "generated/security.md",
    "genkern/datasets/README.md": "generated/datasets.md",
}
PAGES = {**COPIED, "README.md": "index.md", "docs": "index.md"}
# Sections of the reference: the title, and the modules whose public names stand there.
SECTIONS = {
    "Reading and writing": ("io", "saving", "data"),
    "Recipes": ("recipes",),
    "Evaluation, similarity and explanation": ("evaluation", "similarity", "explanation", "report"),
    "Learners": ("learn",),
    "Feature maps": ("features",),
    "Before and after feature maps": ("preprocess",),
    "Kernels": ("kernels", "gram", "affinities"),
    "Models and their estimators": ("models",),
    "Pictures": ("plots",),
    "Data sets": ("datasets",),
    "Others": (),
}
OPTIONAL = re.compile(r"^(\w+)\*\n", re.M)  # entries of a table of contents that may be missing
# What docutils does not know of LaTeX, in words that it does.
TEX = {r"\dots": r"\ldots", r"\iff": r"\Leftrightarrow", r"\big": "", r"\Big": ""}
LINK = re.compile(r"(?<=\])\(([^)#\s:]+)((?:#[^)\s]*)?)\)")


def write(docs: Path) -> None:
    """Write the pages that are made of the source into docs/generated, those that have changed only."""
    made = {target: relink((docs.parent / source).read_text(), docs, docs.parent / source, docs / target)
            for source, target in COPIED.items() if (docs.parent / source).exists()}  # fmt: skip
    made["generated/reference.rst"] = reference()
    made["generated/formulas.md"] = formulas()
    made["generated/equations.md"] = equations()
    for name, text in made.items():
        path = docs / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def relink(text: str, docs: Path, source: Path, page: Path) -> str:
    """Return a page with links as they are from its place in the site; a file that is no page becomes plain text."""

    def replaced(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(source.parent / match.group(1)))
        try:
            name = str(target.relative_to(docs.parent))
        except ValueError:  # not a path
            return match.group(0)
        if name in PAGES:
            target = docs / PAGES[name]
        elif not target.is_relative_to(docs):
            return " (`" + name + "`)" if target.exists() else match.group(0)
        return f"({os.path.relpath(target, page.parent)}{match.group(2)})"

    return LINK.sub(replaced, text)


def reference() -> str:
    """Return the index of the reference: all public names, by section."""
    names: dict[str, list[str]] = {title: [] for title in SECTIONS}
    home = {module: title for title, modules in SECTIONS.items() for module in modules}
    for name in genkern.__all__:
        value = getattr(genkern, name)
        if isinstance(value, ModuleType):
            title = home.get(value.__name__.split(".")[1], "Others")
            names[title] += [f"{name}.{member}" for member in members(value)]
        else:
            names[home.get(home_of(value), "Others")].append(name)
    text = [heading("Reference", "="), "Every public name, from its docstring.\n", ".. currentmodule:: genkern\n"]
    for section, found in names.items():
        # what is in the package itself need not be there a second time, as a member of its module
        plain = {name for name in found if "." not in name}
        kept = [name for name in found if name in plain or name.rpartition(".")[2] not in plain]
        if not kept:
            continue
        lines = "".join(f"   {name}\n" for name in kept)
        text.append(f"{heading(section, '-')}\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{lines}")
    return "\n".join(text)


def home_of(value: Any) -> str:
    """Return the folder of the package that a public value is defined in."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return str(module).split(".")[1]


def members(module: ModuleType) -> list[str]:
    """Return the public functions and classes of a public module."""
    listed = getattr(module, "__all__", [key for key in vars(module) if not key.startswith("_")])
    return [
        key
        for key in sorted(listed)
        if callable(getattr(module, key)) and str(getattr(module, key).__module__).startswith(module.__name__)
    ]


def heading(text: str, line: str) -> str:
    """Return a heading in reStructuredText."""
    return f"{text}\n{line * len(text)}\n"


def formulas() -> str:
    """Return the table of formulas between models, as a page."""
    rows = [
        "# Formulas between models",
        "",
        "What `affinity.table()` prints: which kernel exists between which models, and where the formula comes from. "
        "`Power(rho)` is the probability product, `Expected(lam)` the mean map.",
        "",
        "| models | comparison | length | method | kind | formula | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in str(genkern.affinity.table()).splitlines()[1:]:
        cells = re.split(r"\s{2,}", line.strip(), maxsplit=6)
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def equations() -> str:
    """Return which public name refers to which equation, as a page, from the docstrings."""
    rows = ["# Names and their sources", "", "The references of the docstrings of all public names.", ""]
    rows += ["| name | source |", "|---|---|"]
    for name in sorted(genkern.__all__, key=str.lower):
        document = inspect.getdoc(getattr(genkern, name)) or ""
        found = re.search(r"^References\n-+\n(.*?)(?=\n\n\w+\n---|\Z)", document, re.S | re.M)
        if found and not isinstance(getattr(genkern, name), ModuleType):
            source = re.sub(r"^\.\. \[\d\] ", "", found.group(1), flags=re.M)
            source = " ".join(source.replace("``", "`").split()).replace("|", r"\|")
            rows.append(f"| [{name}](api/genkern.{name}.rst) | {source} |")
    return "\n".join(rows) + "\n"


def setup(app: Any, docs: Path) -> None:
    """Connect all this to Sphinx."""
    from docutils import nodes
    from docutils.utils.math import MathError
    from docutils.utils.math.latex2mathml import tex2mathml
    from sphinx.util.logging import getLogger

    logger = getLogger(__name__)

    def read(app: Any, name: str, text: list[str]) -> None:
        page = docs / f"{name}.md"
        if page.exists() and not name.startswith("generated"):
            text[0] = OPTIONAL.sub(lambda found: found[0] if (docs / f"{found[1]}.md").exists() else "", text[0])
            text[0] = relink(text[0], docs, page, page)

    def formula(translator: Any, node: Any, block: bool) -> None:
        # MathML is drawn by browsers themselves, without scripts and fonts from elsewhere
        tex = re.sub(r"\\[A-Za-z]+", lambda found: TEX.get(found[0], found[0]), node.astext())
        try:
            mathml = tex2mathml(tex, as_block=block)
        except MathError as error:
            logger.warning(f"formula {tex!r}: {error}", location=node)
            mathml = f"<code>{escape(tex)}</code>"
        translator.body.append(f'<div class="formula">{mathml}</div>\n' if block else mathml)
        raise nodes.SkipNode

    def skip(app: Any, what: str, name: str, value: object, skipped: bool, options: object) -> bool | None:
        return True if re.fullmatch(r"set_\w+_request", name) else None  # scikit-learn makes these, and documents them

    inline = (lambda self, node: formula(self, node, False), None)
    display = (lambda self, node: formula(self, node, True), None)
    app.add_html_math_renderer("mathml", inline, display)
    app.config.html_math_renderer = "mathml"
    app.connect("source-read", read)
    app.connect("autodoc-skip-member", skip)
