"""Settings of the site: ``make docs`` builds it into docs/_build. Nothing is fetched, in building or reading it."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import pages  # noqa: E402  (beside this file: pages made of the source, links, formulas)

from genkern import __version__  # noqa: E402

project, author, copyright = "genkern", "the genkern contributors", "2026, the genkern contributors"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["templates"]
highlight_language = "none"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types are in the docstrings
numpydoc_show_class_members = False  # the template lists them
copybutton_exclude = ".linenos, .gp, .go"
linkcheck_ignore = [r"https?://localhost"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 10_000,
}

html_theme = "pydata_sphinx_theme"
html_title = "genkern"
html_static_path = ["_static"]
html_css_files = ["genkern.css"]
html_context = {"default_mode": "auto"}  # light or dark, as the system is
html_show_sourcelink = False
html_sidebars = {"index": [], "start": [], "generated/changelog": []}
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "back_to_top_button": False,
}

pages.write(DOCS)


def setup(app: object) -> None:
    """Register what pages.py has: links to files outside of docs/, and formulas as MathML."""
    pages.setup(app, DOCS)
