"""Kernels in LaTeX: numbers, names of the two arguments, and how tightly a formula binds."""

from __future__ import annotations

from collections.abc import Sequence

SUM, PRODUCT, INTEGRAL, ATOM = range(4)  # how tightly a formula binds: an integral is closed by its dx only


def number(value: float) -> str:
    """Return a number, with a power of ten instead of an exponent."""
    text = f"{value:g}".replace("inf", r"\infty")
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def times(value: float) -> str:
    """Return a number as a coefficient, empty for one."""
    return "" if value == 1 else rf"{number(value)}\, "


def power(value: float) -> str:
    """Return a number as an exponent, empty for one."""
    return "" if value == 1 else f"^{{{number(value)}}}"


def over(value: float) -> str:
    """Return a number as a divisor, empty for one."""
    return "" if value == 1 else f" / {number(value)}"


def named(name: str, view: str) -> str:
    """Return the name of an argument, with the view as a superscript: subscripts are for indices."""
    if not view:
        return name
    shown = view.replace("_", r"\_")
    return rf"{name}^{{(\mathrm{{{shown}}})}}"


def observed(name: str, length: int | None) -> str:
    """Return the name of a variable, with the number of its observations."""
    return name if length is None or length == 1 else f"{name}_{{1:{length}}}"


def bracketed(formula: str) -> str:
    """Return a formula in brackets."""
    return rf"\left({formula}\right)"


def product(value: float | None, factors: Sequence[tuple[str, int]]) -> str:
    """Return a product: its number first, then formulas, each with how tightly it binds; ones are left out."""
    telling = [(formula, level) for formula, level in factors if formula != "1"]
    shown = []
    for place, (formula, level) in enumerate(telling, 1):
        alone = value is None and len(telling) == 1
        open_end = level == INTEGRAL and place < len(telling)
        shown.append(bracketed(formula) if (level == SUM and not alone) or open_end else formula)
    if not shown:
        return "1" if value is None else number(value)
    return ("" if value is None else times(value)) + r" \cdot ".join(shown)
