"""Tables become sets of objects: which columns are what, and whether an object is a row, some rows, or a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from genkern.io.dataset import Dataset
from genkern.io.errors import Notes, ReadError, quoted
from genkern.io.files import Source
from genkern.io.objects import cell_objects, long_objects, text_objects, wide_objects
from genkern.io.options import STRINGS, Options
from genkern.io.tables import MOST_DIGITS, Table, read_tables, refuse_commas
from genkern.io.texts import TextSurvey
from genkern.progress import FIRST_LOOK, expecting, portion

NAMES = {
    "label": ("label", "labels", "class", "target"),
    "id": ("id", "ids", "name"),
    "group": ("group", "groups"),
    "time": ("time", "t", "timestamp", "date", "datetime"),
    "text": ("text", "sequence", "seq", "string", "chain", "symbols", "codes", "document", "documents"),
    "split": ("split",),
}
KNOWN = (
    "id",
    "group",
    "time",
    "channels",
    "text",
    "layout",
    "alphabet",
    "gaps",
    "missing",
    "header",
    "delimiter",
    "decimal",
    "encoding",
)


class Plan(NamedTuple):
    """What the columns of a table are."""

    shape: str  # "text", "cell", "long" or "wide"
    kind: str
    roles: dict[str, str | None]
    channels: list[str]
    texts: TextSurvey


def read_table(
    chunks: Iterator[Table], options: Options, streaming: bool, again: Callable[[], Iterator[Table]]
) -> Iterator[Dataset]:
    """Yield the objects of a table that comes in pieces; `again` gives the pieces once more, for a first look."""
    options.refuse(KNOWN, "a table")
    if streaming:
        with portion(FIRST_LOOK):
            plan = make_plan(again(), options)
        pieces = _whole_objects(chunks, str(plan.roles["id"])) if plan.shape == "long" else chunks
    else:
        with portion(0.4):
            tables = list(chunks)
        plan = make_plan(iter(tables), options)
        pieces = iter(tables)
    build = {"text": text_objects, "cell": cell_objects, "long": long_objects, "wide": wide_objects}[plan.shape]
    told = False
    for table in pieces:
        if not told:
            _tell(table, plan)
            told = True
        with nullcontext() if streaming else expecting(len(table.columns)):
            part = build(table, plan, options)
        if len(part):
            yield part


def _tell(table: Table, plan: Plan) -> None:
    """Note what the columns were taken for."""
    facts, used = table.source.notes.facts, {name for name in plan.roles.values() if name} | set(plan.channels)
    facts["shape"] = {
        "text": "a text in each row",
        "cell": "an object in a cell of each row",
        "long": "several rows for each object",
        "wide": "an object in each row",
    }[plan.shape]
    shown = {role: name for role, name in plan.roles.items() if name}
    facts["columns"] = {**shown, **({"channels": plan.channels} if plan.channels else {})}
    rest = [name for name in table.columns if name not in used]
    if rest:
        facts["unused columns"] = rest


def make_plan(tables: Iterator[Table], options: Options) -> Plan:
    """Return what the columns are, or say what must be told."""
    first = next(tables)
    roles = _roles(first, options)
    free = [name for name in first.columns if name not in roles.values()]
    if options.text is None and options.kind not in STRINGS:
        refuse_commas(first, [*(options.channels or free), *([roles["time"]] if roles["time"] else ())])
    texts, repeated = TextSurvey(), _Repeats()
    choose = None
    for table in _with(first, tables):
        if roles["id"] is not None:
            _refuse_lists(table, roles["id"])
        if choose is None:
            choose = _shape(table, roles, free, options)
        if choose[0] == "text":
            texts.see(table, choose[1][0])
        if roles["id"] is not None and choose[0] == "wide":
            repeated.see(table.columns[roles["id"]])
    assert choose is not None
    shape, channels = choose
    if shape == "wide" and repeated.found:
        shape = "long"
    if shape == "text":
        roles["text"], channels = channels[0], []
    kind = _kind(first, shape, roles, channels, options, texts)
    if shape in ("long", "wide") and options.text is not None:
        raise ValueError("read: text= names a column of whole texts; name single symbols by channels=.")
    return Plan(shape, kind, roles, channels, texts)


def _with(first: Table, rest: Iterator[Table]) -> Iterator[Table]:
    yield first
    yield from rest


class _Repeats:
    """Whether an identifier comes twice."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()
        self.found = False

    def see(self, cells: Any) -> None:
        if not self.found:
            before = len(self.seen)
            self.seen.update(cells)
            self.found = len(self.seen) < before + len(cells)


def _roles(table: Table, options: Options) -> dict[str, str | None]:
    """Return the column of each role: the one that is named by an option, or has one of the usual names."""
    roles: dict[str, str | None] = {}
    for role in NAMES:
        told = getattr(options, role, None)
        if told is False:
            roles[role] = None
        elif told is not None:
            _check_column(table, told, role)
            roles[role] = told
    for role, usual in NAMES.items():
        if role in roles:
            continue
        taken = set(roles.values()) | set(options.channels or ())
        found = [name for name in table.columns if name.lower() in usual and name not in taken]
        if role == "split" and found and not all(map(_is_split, table.columns[found[0]])):
            found = []
        if role in ("text", "time") and (options.channels is not None or options.text or options.time):
            found = [] if role == "text" or options.text else found
        if len(found) > 1:
            came = f"the columns {', '.join(map(repr, found))}"
            raise table.source.error(None, f"one column for the {role}", came, f"Name it by {role}=.")
        roles[role] = found[0] if found else None
    for name in options.channels or ():
        _check_column(table, name, "channels")
    return roles


def _is_split(cell: Any) -> bool:
    return not isinstance(cell, list | dict) and str(cell) in ("train", "test")


def _check_column(table: Table, name: Any, option: str) -> None:
    if not isinstance(name, str) or name not in table.columns:
        names = ", ".join(map(repr, list(table.columns)[:30]))
        raise table.source.error(
            None, f"a column {name!r}, as {option}= says", f"the columns {names}", "Name one of them."
        )


def _shape(table: Table, roles: dict[str, str | None], free: list[str], options: Options) -> tuple[str, list[str]]:
    """Return the shape that a first piece of a table shows, and the columns that hold the objects."""
    nested = [name for name in free + [n for n in (roles["text"],) if n] if _is_nested(table, name)]
    if options.channels is not None:
        nested = [name for name in nested if name in options.channels]
    if len(nested) > 1:
        came = f"lists in {', '.join(map(repr, nested))}"
        raise table.source.error(None, "one column of lists", came, "Name it by channels=.")
    if nested:
        return "cell", nested
    if roles["text"] is not None:
        return "text", [roles["text"]]
    channels = list(options.channels or free)
    if roles["time"] is not None:
        if roles["id"] is None:
            came = f"the time {roles['time']!r}, but no identifier"
            raise table.source.error(None, "a column that says which object a row belongs to", came, "Name it by id=.")
        if not channels:
            raise table.source.error(None, "columns with values", "none", "Name them by channels=.")
        return "long", channels
    if not channels:
        raise table.source.error(None, "columns with objects", "none", "Name them by channels= or text=.")
    words = [name for name in channels if _is_word(table.columns[name])]
    if options.channels is None and words and options.kind not in ("series", "points") and not _numbered(channels):
        if words == channels[:1] == channels:
            return "text", words
        if roles["id"] is None or options.kind is None:
            came = f"columns of words ({', '.join(map(repr, words[:10]))}) and others"
            remedy = "Name the one with the objects by text=, others by label=, id= or group=; or numbers by channels=."
            raise table.source.error(None, "one column of texts, or numbers alone", came, remedy)
    return "wide", channels


def _is_nested(table: Table, name: str) -> bool:
    """Say whether the first cell that is not missing is a list."""
    cells = table.columns[name]
    first = next((cell for cell in cells if cell is not None), None)
    return isinstance(first, list | tuple) or (isinstance(first, np.ndarray) and first.ndim > 0)


def _is_word(cells: Any) -> bool:
    """Say whether the first cell that is not empty is text, and no number."""
    if isinstance(cells, np.ndarray):
        return cells.dtype.kind not in "fiub"
    first = next((cell for cell in cells if cell not in (None, "", "?")), None)
    try:
        float(first)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return isinstance(first, str) and first.strip().lower() not in ("na", "n/a", "nan", "null", "none")
    return False


def _numbered(names: list[str]) -> bool:
    """Say whether columns are called 1, 2, 3, ... or t0, t1, t2, ..., so that they are steps of one sequence."""
    stems = [name.rstrip("0123456789") for name in names]
    digits = [name[len(stem) :] for name, stem in zip(names, stems)]
    if len(names) < 2 or len(set(stems)) > 1 or not all(0 < len(text) < MOST_DIGITS for text in digits):
        return False
    numbers = [int(text) for text in digits]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _kind(
    table: Table, shape: str, roles: dict[str, str | None], channels: list[str], options: Options, texts: TextSurvey
) -> str:
    """Return the kind of objects, or say what must be told."""
    allowed = {"text": STRINGS, "wide": ("series", "points", "symbols"), "long": ("series", "points", "symbols")}
    if options.kind is not None:
        if options.kind not in allowed.get(shape, ("series", "points", "symbols", "codes")):
            raise ValueError(
                f"read: {table.source.name} does not hold {options.kind}; leave kind= out or name columns."
            )
        return options.kind
    if shape == "text":
        return texts.kind(table.source, str(roles["text"]))
    if shape == "cell":
        if channels[0] in ("series", "points", "symbols", "codes"):
            return channels[0]
        came, remedy = f"lists in {channels[0]!r}", "Say which by kind='series', 'points' or 'symbols'."
        raise table.source.error(None, "series, sets of points or sequences of symbols", came, remedy)
    words = [name for name in channels if _is_word(table.columns[name])]
    if shape == "long" and roles["time"] is not None:
        return "symbols" if len(words) == len(channels) == 1 else "series"
    if shape == "long":
        came = f"several rows for each {roles['id']!r}, and no time"
        remedy = "kind='points' for sets of points, kind='series' for steps in the order of the rows, or name time=."
        raise table.source.error(None, "series or sets of points", came, remedy)
    if _numbered(channels):
        return "symbols" if len(words) == len(channels) else "series"
    came = f"a number in each of the columns {', '.join(map(repr, channels[:6]))}{', ...' * (len(channels) > 6)}"
    remedy = (
        "kind='series' if a row is a series, kind='points' if it is a point; id= and time= if rows are steps of "
        "series; text= for a column of texts."
    )
    raise table.source.error(None, "series, points, or texts", came, remedy)


def _whole_objects(tables: Iterator[Table], id: str) -> Iterator[Table]:
    """Yield tables in which no object is torn apart; rows of an object must follow each other."""
    rest: Table | None = None
    seen: set[Any] = set()
    for table in tables:
        table = table if rest is None else rest.then(table)
        cells = table.columns[id]
        cut = len(cells) - 1
        while cut and cells[cut - 1] == cells[-1]:
            cut -= 1
        rest = table.rows(cut, len(cells))
        if cut:
            yield _new_objects(table.rows(0, cut), id, seen)
    if rest is not None:
        yield _new_objects(rest, id, seen)


def _refuse_lists(table: Table, column: str) -> None:
    """Refuse lists in a column of identifiers."""
    for row, cell in enumerate(table.columns[column]):
        if isinstance(cell, list | dict):
            raise table.error(row, "an identifier", quoted(cell), "Name another column by id=, or id=False.", column)


def _new_objects(table: Table, id: str, seen: set[Any]) -> Table:
    """Return a table none of whose objects came before."""
    cells = table.columns[id]
    for row, cell in enumerate(cells):
        if cell in seen:
            remedy = "Sort the table by it, or use read, which holds all of it."
            raise table.error(row, "rows of an object one after the other", f"{cell!r} once more", remedy, id)
    seen.update(cells)
    return table


def label_columns(path: Any, label: Any, id: str | None, notes: Notes) -> dict[str, Any]:
    """Return the labels by identifier of a table in a file."""
    from genkern.io.read import detect_format

    quiet = Notes()
    source = Source(path, quiet)
    quiet.facts["format"] = detect_format(source)
    if quiet.facts["format"] not in ("csv", "tsv", "jsonl", "parquet", "arrow"):
        raise ReadError(
            str(path), None, "a table with labels", quiet.facts["format"], "Give a CSV, TSV, ... by labels=."
        )
    table = next(read_tables(source, Options(), None))
    roles = _roles(table, Options(label=label, id=id))
    names = list(table.columns)
    if roles["id"] is None and len(names) == 2:
        roles["id"] = next(name for name in names if name != roles["label"])
    if roles["label"] is None and len(names) == 2:
        roles["label"] = next(name for name in names if name != roles["id"])
    if roles["id"] is None or roles["label"] is None:
        came = f"the columns {', '.join(map(repr, names))}"
        raise source.error(None, "columns of identifiers and labels", came, "Name them by id= and label=.")
    known: dict[str, Any] = {}
    for row, (name, value) in enumerate(zip(table.columns[roles["id"]], table.columns[roles["label"]])):
        if value in (None, "") or known.setdefault(str(name), value) != value:
            came = f"{quoted(value)} for {name!r}" + (f", after {known[str(name)]!r}" if str(name) in known else "")
            raise table.error(row, "one label for each identifier", came, "Mend the table.")
    notes.facts["labels from"] = f"{path}, column {roles['label']!r}"
    return known
