"""Colours, shapes and style rules of all pictures, for light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterator

# Paul Tol's "muted" scheme: nine colours that stay apart for colour-blind readers. On a light background its light
# colours (sand, cyan, teal, olive) are darkened, on a dark one its dark ones (indigo, wine) are lightened, until each
# has a contrast of 3:1. Shapes repeat with another period, so that no class is told by colour alone.
COLOURS = (
    "#332288", "#CC6677", "#117733", "#B58A1B", "#2A95D5", "#882255", "#3FA090", "#66661A", "#AA4499",
)  # fmt: skip
DARK_COLOURS = (
    "#6B56D6", "#CC6677", "#148A3C", "#DDCC77", "#88CCEE", "#BD3378", "#44AA99", "#999933", "#AF4B9F",
)  # fmt: skip
MARKERS = "o^sDvP*X"
GREY = "#555555"
FOR, AGAINST = "#B35806", "#542788"  # orange and purple: the ends of PuOr, which colour-blind readers tell apart
SHADE = 0.5  # opacity of the strongest colour behind text, which stays readable on it
LIGHT = {"background": "#FFFFFF", "text": "#1B1F24", "axis": "#59616B", "grid": "#DADEE3", "for": FOR}
LIGHT |= {"against": AGAINST, **{f"c{i}": colour for i, colour in enumerate(COLOURS)}}
DARK = {"background": "#14171C", "text": "#E9ECEF", "axis": "#A3ABB5", "grid": "#343A42", "for": "#F1A340"}
DARK |= {"against": "#A995DC", **{f"c{i}": colour for i, colour in enumerate(DARK_COLOURS)}}

RULES = """
.gk-picture { display: block; max-width: 100%; height: auto; color: var(--gk-text);
  font: 12px/1.2 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
.gk-text { fill: var(--gk-text); stroke: none; }
.gk-halo { paint-order: stroke; stroke: var(--gk-background); stroke-width: 3px; stroke-linejoin: round; }
.gk-mono { font-family: ui-monospace, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace; }
.gk-logo { font: bold 100px Arial, "Liberation Sans", Helvetica, sans-serif; fill: currentColor; }
.gk-small { font-size: 10.5px; }
.gk-axis { stroke: var(--gk-axis); fill: none; }
.gk-grid { stroke: var(--gk-grid); fill: none; }
.gk-line { stroke: currentColor; fill: none; stroke-linejoin: round; }
.gk-mark { stroke: var(--gk-background); stroke-width: .6px; fill: currentColor; }
.gk-wrong { stroke: var(--gk-text); stroke-width: 1.4px; }
.gk-for { color: var(--gk-for); }
.gk-against { color: var(--gk-against); }
"""


def css() -> str:
    """Return the style rules of the pictures: colours as custom properties, light and dark, and classes that use them.

    The background and the text of a page should be ``var(--gk-background)`` and ``var(--gk-text)``. Dark is chosen by
    the reader's system, or by the attribute ``data-theme="dark"`` or ``"light"`` of any element around a picture.
    """
    light, dark = ("".join(f"--gk-{name}: {value}; " for name, value in theme.items()) for theme in (LIGHT, DARK))
    classes = "\n".join(f".gk-c{i} {{ color: var(--gk-c{i}); }}" for i in range(len(COLOURS)))
    return (
        f":root, [data-theme=light] {{ color-scheme: light; {light}}}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark}}} }}\n"
        f"[data-theme=dark] {{ color-scheme: dark; {dark}}}\n"
        f"@media print {{ :root, [data-theme] {{ color-scheme: light; {light}}} }}\n"
        f"{RULES}{classes}\n"
    )


def styles() -> Iterator[dict[str, str]]:
    """Yield a colour and a shape per class for matplotlib, without end."""
    i = 0
    while True:
        yield {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        i += 1
