"""The page of the experiment with exons and introns: its text, tables and picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genkern.evaluation import t_test, wilcoxon_test
from genkern.papers.shared.choices import Choice, spell_setting
from genkern.papers.shared.grids import chosen_of, joined
from genkern.papers.shared.report import Report, Table, percent
from genkern.papers.shared.study import Study
from genkern.plots.style import COLOURS

PROTOCOL = """\
**Sets.** *Whole*: 500 human exons drawn at random of 591 and the 500 shortest introns of 521, of 8 to 24 960 letters.
They stand in for HS3D, from which the paper drew 500 of each, of dozens to tens of thousands of letters. *Interior*:
the 80 letters in the middle of all of these that have at least 100 (362 exons, 462 introns), so that neither the
length nor the sites at the ends, GT and AG, give the class away. A third table has these sequences whole, and without
10 letters at each end.

**Draws.** The paper has one random division in two halves. Here are 20 (seeds 0 to 19), with both classes in the same
shares, the same for all methods.

**HMM kernel.** A model of each sequence with the number of states of the paper's rule (`n_states="auto"`, one
parameter for ten letters), by EM from a random start, until a step gains less than 1e-5 per letter, at most 1000 steps
(the paper: 400 steps); pseudocounts 0.01. The product kernel with ρ = 1 over T transitions, that is T + 1
letters, T = 7 to 11, normalised.

**Words** of k letters, k = 1 to 5: the normalised spectrum kernel, which the paper calls Markov models of order 0 to 4.

**C** = 1, 3, 10, ..., 1000. The paper's axis is log C from 1 to 6, without its base; as a natural logarithm this is 2.7
to 403. With C = 1e6 the solver has not converged after two million steps for words of 1 and 3.

**Errors.** "As the paper" has the lowest mean over the test halves of all draws; "nested" chooses C, and T where the
row has all, by 3-fold cross-validation in each training half.

**Beyond the paper**: the HMM kernel with 3 states for all sequences; Bayes' rule with a Markov chain of each class
(pseudocounts 0.01); `recipes.symbols("dna")` on interiors; a Gaussian kernel on the logarithm of the length; and two
rules without training: an intron starts with GT, or also ends with AG."""
FINDINGS = """\
**Whole sequences.** The figures are near the paper's, though the sequences are others: the HMM kernel has 9.7 % at its
best setting (10–11 in the paper), words of 3 have 8.4 (7–8), words of 2 have 13.3 (18) and words of 1 have 28.4 (34).
The order is the same: words of 1, words of 2, HMM kernel, words of 3. T has little effect, as in the paper. Words of 4
and 5 are worse than words of 3, as in the paper, from C = 10 on only; with smaller C they are not.

The number of states by the rule, which grows with the length, is not what makes the HMM kernel good: with 3 states for
all sequences it has 10.4 % (nested).

**What is easy here.** A rule that looks at the first and last two letters has 4.4 %, about half the error of the
best kernel. The length alone has 19 %.

**Interiors.** With 80 letters from the middle the HMM kernel has 31 %, words of 2 have 23 %: here the model with hidden
states is behind counts of pairs, against the paper's order. A model of 80 letters has 3 states by the rule. Markov
chains of classes come nearer to the kernels than with whole sequences; `recipes.symbols` has 19.8 %.

**Why interiors are harder.** For kernels of words not for want of the splice sites: without 10 letters at each end
those of 3 lose 0.8 points only (third table). The others are lost with the length: there are fewer letters to count,
and the length itself may help kernels of whole sequences; these figures do not tell the two apart. Markov chains of
order 1 and more, whose first letters have a law of their own, lose 4 to 9 points with the ends."""
ALL = "HMM kernel, all T"
TITLES = {"DNA": "whole", "interior": "interior"}  # of the sets with all methods
CUTS = {"whole": "whole", "without ends": "without 10 letters at each end", "interior": "80 letters in the middle"}
PAPER = {"HMM kernel, T = 9": "10–11", ALL: "10–11", "words of 1": "34", "words of 2": "18", "words of 3": "7–8"}
Found = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


def page(study: Study, found: Found, Cs: Sequence[float]) -> Report:
    """Return the report from ``grid_errors`` of all draws, by set and method."""
    every = {which: _columns(parts, Cs) for which, parts in found.items()}
    columns = {title: every[which] for which, title in TITLES.items()}
    shown = {title: found[which] for which, title in TITLES.items()}
    title = "Exons and introns: kernels between hidden Markov models"
    source = "Jebara, Kondor & Howard (2004), Probability product kernels, section 8.2 and Figure 8."
    figures = {
        "Errors over C, as in the paper's Figure 8: on the left HMM kernels, on the right words.": _figure(shown, Cs)
    }
    tables = [_errors_table(columns), _tests_table(columns), _cuts_table(every)]
    return Report(study.name, title, source, PROTOCOL, tables, FINDINGS, figures, study.quick)


def _columns(parts: Mapping[str, Sequence[Mapping[str, Any]]], Cs: Sequence[float]) -> dict[str, Choice]:
    """Return both columns of every method, and of the HMM kernel over all T."""
    found = {}
    kernels = [name for name in parts if name.startswith("HMM kernel, T")]
    if kernels:
        together = [joined(draw) for draw in zip(*(parts[name] for name in kernels), strict=True)]
        grid = [{"T": [int(name.rpartition(" ")[2])], "C": list(Cs)} for name in kernels]
        found[ALL] = chosen_of(grid, together)
    for name, draws in parts.items():
        found[name] = chosen_of({"C": list(Cs)} if len(draws[0]["errors"]) > 1 else {}, draws)
    return found


def _errors_table(columns: Mapping[str, Mapping[str, Choice]]) -> Table:
    rows = []
    for name in dict.fromkeys(name for methods in columns.values() for name in methods):
        cells: list[Any] = []
        for methods in columns.values():
            one = methods.get(name)
            if one is None:
                cells += ["", "", ""]
            else:
                cells += [percent(one.best), spell_setting(one.setting), percent(one.nested)]
                if not one.setting:
                    cells[-3] = ""
        curve = "curve" if name.startswith(("HMM kernel, T", "words")) else ""
        rows.append([name, PAPER.get(name, curve), *cells])
    head = [f"{which}: {column}" for which in columns for column in ("as the paper", "setting", "nested")]
    return Table(
        "Test errors in per cent, ± standard deviation over draws. The paper's figures are of other sequences, and the "
        "lowest of a curve; where it says 'curve', no figure is printed.",
        ["method", "paper", *head],
        rows,
    )


def _tests_table(columns: Mapping[str, Mapping[str, Choice]]) -> Table:
    rows = []
    for name in dict.fromkeys(name for methods in columns.values() for name in methods):
        if name.startswith("HMM kernel, "):
            continue
        cells = []
        for methods in columns.values():
            if name in methods:
                a, b = methods[ALL].nested, methods[name].nested
                test = wilcoxon_test(a, b)
                cells.append(f"{100 * test.difference:+.1f} ({test.p_value:.1g}; {t_test(a, b).p_value:.1g})")
            else:
                cells.append("")
        rows.append([name, *cells])
    caption = (
        "Nested error of the HMM kernel (all T) minus that of others, in per cent; in brackets p-values over draws of "
        "Wilcoxon's signed rank test and of the paired t-test. Draws share sequences, so that these are too small."
    )
    return Table(caption, ["against", *columns], rows)


def _cuts_table(every: Mapping[str, Mapping[str, Choice]]) -> Table:
    rows = [
        [name, *(percent(every[which][name].nested) if name in every[which] else "" for which in CUTS)]
        for name in every["whole"]
    ]
    caption = (
        "Sequences of at least 100 letters, cut or not: nested errors in per cent, ± standard deviation over draws."
    )
    return Table(caption, ["method", *CUTS.values()], rows)


def _figure(found: Found, Cs: Sequence[float]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.6), layout="constrained")
    axes = figure.subplots(len(found), 2, sharex=True, sharey="row")
    for row, (which, parts) in zip(axes, found.items()):
        for axis, start in zip(row, ("HMM", "words")):
            shown = [name for name in parts if name.startswith(start) and "states" not in name]
            for colour, name in zip(COLOURS, shown):
                errors = 100.0 * np.mean([draw["errors"] for draw in parts[name]], axis=0)
                axis.plot(Cs, errors, color=colour, marker="o", markersize=3, label=name)
            axis.set(xscale="log", title=f"{which}: {'HMM kernels' if start == 'HMM' else 'words'}")
            axis.grid(alpha=0.3)
            axis.legend(frameon=False, fontsize=8)
        row[0].set_ylabel("test error in %")
    for axis in axes[-1]:
        axis.set_xlabel("C")
    return figure
