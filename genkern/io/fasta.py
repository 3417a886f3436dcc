"""FASTA, FASTQ and Stockholm: records of headers and letters, block by block."""

from __future__ import annotations

from collections.abc import Iterator

from genkern.io.errors import quoted
from genkern.io.files import Source


class Records:
    """Some records in the order of the file, and what finds the line at which one of them begins."""

    def __init__(
        self, source: Source, headers: list[str], bodies: list[str], sizes: list[int] | int, line: int
    ) -> None:
        self.source, self.headers, self.bodies, self.sizes, self.start = source, headers, bodies, sizes, line

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def ids(self) -> list[str]:
        """The first word of each header."""
        return [(header.split(None, 1) or [""])[0] for header in self.headers]

    def line(self, index: int) -> int:
        """Return the number of the line of a header."""
        if isinstance(self.sizes, int):
            return self.start + index * self.sizes
        return self.start + sum(self.sizes[:index])

    def place(self, index: int) -> str:
        """Return file, line and name of a record."""
        name = (self.headers[index].split(None, 1) or ["without a name"])[0]
        return f"{self.source.name}, line {self.line(index)} ({name})"


def fasta_records(source: Source) -> Iterator[Records]:
    """Yield the records of a FASTA file; letters as they stand, without ends of lines."""
    pending: list[str] = []
    line = 1
    for block in source.line_blocks():
        if not pending:
            line, block = _first_header(source, block, line)
            if not block:
                continue
        last = block.rfind("\n>") + 1
        if not last and not (pending and block.startswith(">")):
            pending.append(block)
            continue
        text = "".join([*pending, block[:last]])
        pending = [block[last:]]
        if text:
            yield _fasta_chunk(source, text, line)
            line += text.count("\n")
    if pending:
        yield _fasta_chunk(source, "".join(pending), line)


def _first_header(source: Source, block: str, line: int) -> tuple[int, str]:
    """Return the line of the first header and the text from there on; only empty lines and comments stand before it."""
    at = 0
    while at < len(block) and block[at] != ">":
        end = block.index("\n", at)
        first, at = block[at:end], end + 1
        if first.startswith(";"):
            source.notes.add("comment lines, left out", 1, f"{source.name}, line {line}")
        elif first.strip():
            remedy = "Write a header before each sequence, or name the format by format=."
            raise source.error(line, "a header that begins with '>'", quoted(first), remedy)
        line += 1
    return line, block[at:]


def _fasta_chunk(source: Source, text: str, line: int) -> Records:
    """Return the records of a piece that begins with a header and ends with a record."""
    if ";" not in text and text.count("\n") == 2 * text.count(">"):
        rows = text[1:-1].split("\n")  # one line of letters in each record, if headers are every second line
        headers, bodies = rows[0::2], rows[1::2]
        if "".join([header[:1] for header in headers[1:]]) == ">" * (len(headers) - 1):
            return Records(source, [headers[0], *(header[1:] for header in headers[1:])], bodies, 2, line)
    pieces = text[1:].split("\n>")
    split = [piece.partition("\n") for piece in pieces]
    headers, bodies = [part[0] for part in split], [part[2] for part in split]
    sizes = [piece.count("\n") + 1 for piece in pieces]
    found = Records(source, headers, bodies, sizes, line)
    if "\n;" in text:
        commented = [k for k, body in enumerate(bodies) if body.startswith(";") or "\n;" in body]
        source.notes.add("comment lines, left out", text.count("\n;"), found.place(commented[0]))
        for k in commented:
            bodies[k] = "\n".join(row for row in bodies[k].split("\n") if not row.startswith(";"))
    found.bodies = [body.replace("\n", "") for body in bodies]
    return found


def fastq_records(source: Source) -> Iterator[Records]:
    """Yield the records of a FASTQ file of four lines each; qualities are checked for their length and left out."""
    rest: list[str] = []
    line = 1
    for block in source.line_blocks():
        rows = rest + block[:-1].split("\n")
        whole = len(rows) // 4 * 4
        rest = rows[whole:]
        if whole:
            yield _fastq_chunk(source, rows[:whole], line)
            line += whole
    rest = rest[: len(rest) - sum(1 for row in rest if not row)] if not any(rest) else rest
    if rest:
        remedy = "The file is cut off, or its sequences take several lines, which is not read."
        raise source.error(line, "four lines for each record", f"{len(rest)} at the end", remedy)


def _fastq_chunk(source: Source, rows: list[str], line: int) -> Records:
    """Return the records of four lines each, checked."""
    size = len(rows)
    while size and not any(rows[size - 4 : size]):  # empty lines at the end
        size -= 4
    heads, letters, marks, qualities = (rows[k:size:4] for k in range(4))
    same = list(map(len, letters)) == list(map(len, qualities))
    if not (same and all(h[:1] == "@" for h in heads) and all(m[:1] == "+" for m in marks)):
        remedy = "Each record is '@name', letters, '+' and as many qualities, of one line each."
        for k, (head, letter, mark, quality) in enumerate(zip(heads, letters, marks, qualities)):
            if head[:1] != "@":
                raise source.error(line + 4 * k, "a header that begins with '@'", quoted(head), remedy)
            if mark[:1] != "+":
                raise source.error(line + 4 * k + 2, "a line that begins with '+'", quoted(mark), remedy)
            if len(letter) != len(quality):
                came = f"{len(quality)} qualities for {len(letter)} letters"
                raise source.error(line + 4 * k + 3, "one quality per letter", came, remedy)
    return Records(source, [head[1:] for head in heads], letters, 4, line)


def stockholm_records(source: Source) -> Iterator[Records]:
    """Yield the alignments of a Stockholm file, one after the other.

    Headers carry ``ID=`` and ``AC=`` of the alignment and what ``#=GS`` says of the row: its description (DE) as it
    is, the rest as key=value.
    """
    rows: dict[str, list[str]] = {}
    at: dict[str, int] = {}
    about: dict[str, str] = {}
    of_row: dict[str, list[str]] = {}
    opened = 0
    for number, line in source.lines():
        text = line.strip()
        if text.startswith("# STOCKHOLM"):
            if opened:
                remedy = "End each alignment with a line '//'."
                raise source.error(number, f"'//' after the alignment of line {opened}", quoted(line), remedy)
            opened = number
        elif not text or (text.startswith("#") and (opened or not text.startswith("#="))):
            words = text.split(None, 2)
            if len(words) == 3 and words[0] == "#=GF" and words[1] in ("ID", "AC"):
                about[words[1]] = words[2].split()[0]
            elif len(words) == 3 and words[0] == "#=GS" and len(said := words[2].split(None, 1)) == 2:
                of_row.setdefault(words[1], []).append(said[1] if said[0] == "DE" else "=".join(said))
        elif not opened:
            remedy = "Name the format by format= if it is another one."
            raise source.error(number, "the line '# STOCKHOLM 1.0'", quoted(line), remedy)
        elif text == "//":
            extra = "".join(f" {key}={value}" for key, value in about.items())
            headers = [" ".join([name + extra, *of_row.get(name, ())]) for name in rows]
            yield from _alignment(source, rows, at, headers, opened)
            rows, at, about, of_row, opened = {}, {}, {}, {}, 0
        else:
            words = text.split()
            if len(words) != 2:
                raise source.error(number, "a name and a row of letters", quoted(line), "Write both on one line.")
            rows.setdefault(words[0], []).append(words[1])
            at.setdefault(words[0], number)
    if opened:
        raise source.error(None, "'//' at the end of an alignment", "the end of the file", "The file is cut off.")


def _alignment(
    source: Source, rows: dict[str, list[str]], at: dict[str, int], headers: list[str], opened: int
) -> Iterator[Records]:
    """Yield one alignment, checked."""
    bodies = ["".join(pieces) for pieces in rows.values()]
    for name, body in zip(rows, bodies):
        if len(body) != len(bodies[0]):
            came = f"{len(body)} columns of {name!r}, {len(bodies[0])} of {next(iter(rows))!r}"
            raise source.error(at[name], "rows of one length", came, "Mend the alignment; names must be unique in it.")
    if rows:
        starts = list(at.values())
        sizes = [b - a for a, b in zip(starts, [*starts[1:], starts[-1] + 1])]
        yield Records(source, headers, bodies, sizes, starts[0])
    else:
        source.notes.add("alignments without rows", 1, f"{source.name}, line {opened}")
