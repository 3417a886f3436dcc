"""Contests of sequences of symbols that are not aligned: one recipe for all."""

from __future__ import annotations

import csv
import gzip
from functools import partial

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.league.contest import SHARED, Contest, Task, fasta_of, pick, splits
from genkern import roc50_score
from genkern.recipes import symbols

JOBS = 2


def load_domains() -> Task:
    """Return all protein domains with the class of their fold, a to g."""
    headers, sequences = fasta_of("scope40/scope40.fasta.gz")
    return Task(sequences, np.array([header.split()[1][0] for header in headers]))


def load_interiors() -> Task:
    """Return a hundred nucleotides from inside each exon and intron (the splits name those of 120 or more)."""
    headers, sequences = fasta_of("exon_intron/human.fasta.gz")
    kinds = [header.split("class=")[1].split()[0] for header in headers]
    return Task([sequence[10:110] for sequence in sequences], np.array(kinds))


def load_surnames() -> Task:
    """Return surnames of eighteen languages."""
    with gzip.open(SHARED / "unseen" / "surnames.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names, languages, parts = ([row[column] for row in rows] for column in ("text", "class", "split"))
    return Task(names, np.array(languages), train=np.array(parts) == "train")


def rank_families() -> None:
    """Print how well domains of a family of superfamily c.1.8 are ranked by what the other families teach."""
    headers, X = fasta_of("scope40/scope40.fasta.gz")
    y = np.array([header.split()[1].startswith("c.1.8.") for header in headers])
    areas, starts = [], []
    for train, test in splits("scope40_c18_holdout"):
        ranks = symbols("protein", n_jobs=JOBS).fit(pick(X, train), y[train]).decision_function(pick(X, test))
        areas.append(roc_auc_score(y[test], ranks))
        starts.append(roc50_score(y[test], ranks))
    print(f"scope40 c.1.8, families: area {np.mean(areas):.3f}, up to 50 false ones {np.mean(starts):.3f}")


proteins = partial(symbols, "protein", n_jobs=JOBS)
CONTESTS: dict[str, Contest] = {
    "scope40 a-b": Contest("scope40_a_vs_b", load_domains, proteins, 7.1, 12.3),
    "scope40 c-d": Contest("scope40_c_vs_d", load_domains, proteins, 21.7, 25.7),
    "exon_intron": Contest("exon_intron_human_interior100", load_interiors, partial(symbols, "dna"), 14.3, 17.8),
    "surnames": Contest(None, load_surnames, partial(symbols, n_jobs=JOBS), 24.7, 24.7),
}

if __name__ == "__main__":
    rank_families()
