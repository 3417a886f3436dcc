"""Sequences of letters: which alphabet they are of, and the rules for case, U, gaps, stops and empty records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from genkern.data.alphabets import NAMED, as_alphabet
from genkern.io.dataset import Dataset
from genkern.io.errors import ReadError
from genkern.io.fasta import Records, fasta_records, fastq_records, stockholm_records
from genkern.io.files import Source
from genkern.io.labels import LabelTable, group_finder, label_finder
from genkern.io.options import Options
from genkern.progress import FIRST_LOOK, each, portion

RECORDS = {"fasta": fasta_records, "fastq": fastq_records, "stockholm": stockholm_records}
GAPS = "-.~"
BASES = set("ACGTUN")
NUCLEOTIDES = BASES | set("RYSWKMBDHVX")
LETTERS = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
STRIPPED = "ACGTUNacgtun" + GAPS
MOSTLY = 0.9  # share of A, C, G, T, U, N from which letters are taken for nucleotides
TELLING = 20  # letters from which a record of nucleotides alone is not a protein
FREEMAN = "01234567"


class Survey:
    """What letters and lengths a file has, and where each letter comes first."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, tuple[str, int, str]] = {}  # file, line, name
        self.widths: set[int] = set()
        self.n_records = 0
        self.bare: tuple[str, int, str] | None = None  # the first record of nucleotides alone
        self.file = ""

    def see(self, records: Records) -> None:
        """Count the letters of records."""
        self.file = records.source.name
        text = "".join(records.bodies)
        if _fits(text):
            counts = np.bincount(np.frombuffer(text.encode("latin-1"), np.uint8), minlength=256)
            tally = {chr(code): int(counts[code]) for code in np.flatnonzero(counts)}
        else:
            tally = dict(Counter(text))
        new = set(tally) - set(self.first)
        for k, body in enumerate(records.bodies if new else ()):
            here = new.intersection(body)
            self.first |= dict.fromkeys(here, _whereabouts(records, k)) if here else {}
            new -= here
            if not new:
                break
        for letter, count in tally.items():
            self.counts[letter] = self.counts.get(letter, 0) + count
        if self.bare is None:
            alone = {letter.upper() for letter in tally} <= BASES | set(GAPS)
            long = (k for k, body in enumerate(records.bodies) if len(body) >= TELLING)
            found = next((k for k in long if alone or not records.bodies[k].strip(STRIPPED)), None)
            self.bare = None if found is None else _whereabouts(records, found)
        if len(self.widths) < 2:
            self.widths.update(length for length in set(map(len, records.bodies)) if length)
        self.n_records += len(records)


def _fits(text: str) -> bool:
    return text.isascii() or max(text) < "\u0100"


def _whereabouts(records: Records, k: int) -> tuple[str, int, str]:
    return records.source.name, records.line(k), (records.headers[k].split(None, 1) or [""])[0]


class Rules(NamedTuple):
    """What is done to letters: a table of replacements for `str.translate`, and what is reported of it."""

    alphabet: str | None
    upper: bool
    table: dict[int, str | None]
    noted: dict[str, str]  # rule -> letters that it concerns
    stops: bool


def decide(survey: Survey, options: Options, kind: str | None) -> Rules:
    """Return the rules for a file, or say what must be told."""
    given = (FREEMAN if kind == "codes" else None) if options.alphabet is None else options.alphabet
    if given is not None and not (isinstance(given, str) and given.lower() in NAMED):
        symbols = {str(symbol) for symbol in as_alphabet(given).symbols}
        _refuse_others(survey, symbols | {str(extra) for extra, _ in as_alphabet(given).ambiguities}, options.alphabet)
        return Rules(None, False, {}, {}, False)
    upper: dict[str, int] = {}
    for letter, count in survey.counts.items():
        upper[letter.upper()] = upper.get(letter.upper(), 0) + count
    name = given.lower() if given is not None else _named(survey, upper)
    extras = {str(letter) for letter, _ in NAMED[name].aliases if letter} | set(map(str, NAMED[name].symbols))
    extras |= {str(letter) for letter, _ in NAMED[name].ambiguities} | set(GAPS)
    swap = {"dna": "UT", "rna": "TU", "protein": ""}[name]
    _refuse_others(survey, extras | set(swap + swap.lower()), name)
    table: dict[int, str | None] = {}
    noted: dict[str, str] = {}
    if swap and swap[0] in upper:
        table[ord(swap[0])] = swap[1]
        noted[f"{swap[0]} in {name.upper()}, read as {swap[1]}"] = swap[0] + swap[0].lower()
    present = [gap for gap in GAPS if gap in upper]
    if present:
        table |= dict.fromkeys(map(ord, GAPS), None if _gaps(survey, options) == "remove" else "-")
        noted["gaps, removed" if table[ord("-")] is None else "gaps, kept as '-'"] = "".join(present)
    codes = "".join(str(letter) for letter, members in NAMED[name].ambiguities)
    codes += "" if name != "protein" else "UO"
    noted["letters that are ambiguous or unknown, kept"] = codes + codes.lower() + "?"
    noted = {rule: letters for rule, letters in noted.items() if set(letters) & set(survey.counts)}
    lower = any(letter != letter.upper() for letter in survey.counts)
    return Rules(name, lower, table, noted, name == "protein" and "*" in upper)


def _named(survey: Survey, upper: dict[str, int]) -> str:
    """Return "dna", "rna" or "protein", or say that it is not clear."""
    found = set(upper) - set(GAPS) - {"*", "?"}
    odd = next((letter for letter in survey.counts if letter.upper() in found - LETTERS), None)
    if odd is not None:
        symbols = "".join(sorted(survey.counts))
        remedy = f"Remove it, or name the symbols: alphabet={symbols[:30]!r}{'...' * (len(symbols) > 30)}."
        raise _at(survey, odd, "letters of DNA, RNA or proteins", f"the symbol {odd!r}", remedy)
    if not found:
        file, line, _ = next(iter(survey.first.values()), (survey.file, None, ""))
        raise ReadError(
            file, line, "letters", "gaps, stops or nothing in all records", "Look at how the file was made."
        )
    total = sum(upper[letter] for letter in found)
    share = sum(upper[letter] for letter in found & BASES) / total
    other = next((letter for letter in survey.counts if letter.upper() in found - NUCLEOTIDES), None)
    choice = "Say which by alphabet='dna', 'rna' or 'protein'."
    if share >= MOSTLY:
        if other is not None:
            came = f"{other!r}, where {share:.1%} of all letters are A, C, G, T, U or N"
            raise _at(survey, other, "nucleotides alone, or a protein", came, f"Correct it, or: {choice}")
        return "rna" if "U" in found and "T" not in found else "dna"
    if other is None:
        letter = next(letter for letter in survey.counts if letter.upper() in found - BASES)
        came = f"letters that could be nucleotides with ambiguity codes as well as amino acids, such as {letter!r}"
        raise _at(survey, letter, "nucleotides or proteins", came, choice)
    if survey.bare is not None:
        file, line, record = survey.bare
        came = f"nucleotides in {record!r}, but other letters elsewhere, first {other!r} in {survey.first[other][2]!r}"
        raise ReadError(file, line, "one alphabet", came, f"Separate the records, or, if all are of one: {choice}")
    return "protein"


def _gaps(survey: Survey, options: Options) -> str:
    """Return "keep" or "remove"; unasked, gaps are kept where all records have one length."""
    if options.gaps is not None or len(survey.widths) == 1:
        return options.gaps or "keep"
    gap = next(letter for letter in survey.counts if letter in GAPS)
    came = f"the gap {gap!r}, but records of different lengths"
    remedy = "gaps='remove' takes gaps out, gaps='keep' leaves them as missing letters."
    raise _at(survey, gap, "an alignment, or letters without gaps", came, remedy)


def _refuse_others(survey: Survey, known: set[str], name: Any) -> None:
    """Raise at the first letter that is not of the alphabet."""
    for letter in survey.counts:
        if letter not in known:
            remedy = "Correct it, or say otherwise by alphabet=."
            raise _at(survey, letter, f"symbols of {name!r}", f"the symbol {letter!r}", remedy)


def _at(survey: Survey, letter: str, expected: str, came: str, remedy: str) -> ReadError:
    file, line, record = survey.first[letter]
    return ReadError(file, line, expected, f"{came} (record {record!r})", remedy)


def apply(rules: Rules, records: Records) -> list[str]:
    """Return the letters of records, by the rules; what was done is noted."""
    notes, bodies = records.source.notes, records.bodies
    if not (rules.upper or rules.table or rules.noted or rules.stops):
        return bodies
    text = "\n".join(bodies)
    for rule, letters in rules.noted.items():
        _note(rule, [letter for letter in letters if letter in text], records, bodies)
    if rules.upper or rules.table:
        changed = text.upper() if rules.upper else text
        if changed != text:
            lower = [k for k, body in enumerate(bodies) if body != body.upper()]
            notes.add("records with lower case, read as upper case", len(lower), records.place(lower[0]))
        text = changed.translate(rules.table) if rules.table else changed
        bodies = text.split("\n")
    if rules.stops and "*" in text:
        ended = [k for k, body in enumerate(bodies) if body.endswith("*")]
        if ended:
            notes.add("'*' at the end of a protein, removed", len(ended), records.place(ended[0]))
            bodies = [body.removesuffix("*") for body in bodies]
        inner = [k for k, body in enumerate(bodies) if "*" in body]
        if inner:
            notes.add("records with '*' inside, kept as unknown", len(inner), records.place(inner[0]))
    return bodies


def _note(rule: str, letters: list[str], records: Records, bodies: list[str]) -> None:
    """Note how many records have one of these letters."""
    if letters:
        found = [k for k, body in enumerate(bodies) if any(letter in body for letter in letters)]
        records.source.notes.add(f"records with {rule}", len(found), records.place(found[0]))


def _without_spaces(chunks: Iterator[Records]) -> Iterator[Records]:
    """Yield records without white space among their letters."""
    for records in chunks:
        text = "".join(records.bodies)
        if " " in text or "\t" in text:
            bodies = ["".join(body.split()) for body in records.bodies]
            spaced = [k for k, (new, old) in enumerate(zip(bodies, records.bodies)) if new != old]
            if spaced:
                rule = "records with white space among letters, removed"
                records.source.notes.add(rule, len(spaced), records.place(spaced[0]))
            records.bodies = bodies
        yield records


def read_letters(source: Source, options: Options, keep: bool) -> Iterator[Dataset]:
    """Yield the sequences of a file, some at a time.

    Two passes, since the rules depend on all of the file; with `keep` the second is over what the first has read.
    """
    form = source.notes.facts["format"]
    options.refuse(("alphabet", "labels", "gaps", "group", "encoding", "id"), f"a {form} file")
    options.refuse_kind(("symbols", "codes"), f"a {form} file")
    survey, kept = Survey(), []
    with portion(0.5 if keep else FIRST_LOOK):
        for records in _without_spaces(RECORDS[form](source)):
            survey.see(records)
            if keep:
                kept.append(records)
    if not survey.n_records:
        raise source.error(None, "at least one record", "none", "The file is empty; look at how it was made.")
    rules = decide(survey, options, options.kind)
    source.notes.facts["alphabet"] = rules.alphabet or "".join(sorted(survey.counts))
    aligned = len(survey.widths) == 1
    source.notes.facts["aligned"] = "all of one length" if aligned else "lengths differ"
    if not keep:
        return _finished(_without_spaces(RECORDS[form](source.quiet())), rules, options, source)
    return _finished(_given_up(kept), rules, options, source)


def _given_up(kept: list[Records]) -> Iterator[Records]:
    """Yield what was kept, and keep it no longer."""
    kept.reverse()
    for _ in each(range(len(kept))):
        yield kept.pop()


def _finished(chunks: Iterator[Records], rules: Rules, options: Options, source: Source) -> Iterator[Dataset]:
    """Yield the sets that records are, with labels and groups, without empty records."""
    labels, groups = label_finder(options), group_finder(options)
    table = None if options.labels is None else LabelTable(options.labels, options.label, options.id, source.notes)
    seen = 0
    for records in chunks:
        records.source = source
        ids = records.ids
        y = labels.find(records) if table is None else table.find(ids, records.line, source.error)
        part = Dataset(apply(rules, records), y, ids, groups.find(records), options.kind or "symbols")
        empty = [k for k, body in enumerate(part.X) if not body]
        if empty:
            source.notes.add("empty records, left out", len(empty), records.place(empty[0]))
            part = part.take([k for k, body in enumerate(part.X) if body])
        seen += len(part)
        if len(part):
            yield part
    if table is not None:
        table.unused(source.notes)
    if not seen:
        raise source.error(None, "at least one record with letters", "empty records alone", "Look at how it was made.")
