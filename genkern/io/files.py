"""Files as blocks of bytes or of whole lines: compression, encodings and ends of lines are dealt with here, once."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.io.errors import Notes, ReadError
from genkern.progress import reach

BLOCK = 1 << 20
FREE = 1 << 24  # bytes that every file may expand to
EXPANSION = 100.0  # how many times its size a file may expand to, beyond these
LINE = 64  # bytes that a line of compressed text counts beside its own: of many short ones, objects take the memory
ZSTD_BLOCK = 1 << 11  # bytes decoded in one call, which become 64 MB at most: four bytes are a block of 128 kB at most
BINARY = 0.25  # share of NUL characters from which a block is no text
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
SUFFIXES = {".gz": "gzip", ".bgz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
MARKS = {  # byte order marks, the longer ones first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def needed(module: str, extra: str, what: str) -> ImportError:
    """Return the error for an optional package that is not installed."""
    return ImportError(f'{what} needs {module}, which is not installed: pip install "genkern[{extra}]".')


class Source:
    """One file that is read: its name for messages, its compression, its blocks.

    Parameters
    ----------
    path : str or path
        The file.
    notes : Notes
        Where byte order marks, ends of lines and such are noted.
    encoding : str, optional
        Of text; by default UTF-8, or what a byte order mark says.
    max_expansion : float, optional
        How many times its size it may expand to, beyond 16 MB; each line of text counts 64 bytes more.
    """

    def __init__(
        self, path: Any, notes: Notes, encoding: str | None = None, max_expansion: float | None = None
    ) -> None:
        self.path, self.name, self.notes, self.encoding = Path(path), str(path), notes, encoding
        self.size = self._size()
        self.room = max(FREE, (max_expansion or EXPANSION) * self.size)
        self.compression = self._compression()
        self._labels = (0, 0)  # how many there are, and the characters of the longest

    def _size(self) -> int:
        """Return the size of the file; a pipe or a device, which may never end, is refused."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise self._unopened(error) from None
        if not stat.S_ISREG(status.st_mode):
            raise self.error(None, "a file", "a pipe or a device", "Write its content to a file first.")
        return status.st_size

    def _compression(self) -> str:
        with self._open() as file:
            head = file.read(8)
        found = next((name for magic, name in MAGIC.items() if head.startswith(magic)), "none")
        claimed = SUFFIXES.get(self.path.suffix.lower(), "none")
        if found == "none" and claimed != "none":
            if not head:
                raise self.error(None, f"a {claimed} file", "an empty file", "Make or download it again.")
            self.notes.add(f"not compressed, although its name ends in {self.path.suffix}", 1, self.name)
        return found

    def _open(self) -> Any:
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise self._unopened(error) from None

    def _unopened(self, error: OSError) -> ReadError:
        came = error.strerror or str(error)
        return self.error(None, "a file that can be opened", came, "Look at its path and permissions.")

    def allow(self, size: float) -> None:
        """Refuse content that takes more bytes of memory than the file may expand to."""
        if size > self.room:
            expected = f"content of at most {self.room / 1e6:,.0f} MB for a file of {self.size / 1e6:,.3g} MB"
            remedy = "If you trust the file, allow more times its size by max_expansion=, such as max_expansion=10000."
            raise self.error(None, expected, f"{size / 1e6:,.0f} MB or more", remedy)

    def labels(self, cells: Sequence[Any]) -> NDArray[Any]:
        """Return labels as an array, in which each string takes the room of the longest of the file."""
        count, longest = self._labels
        longest = max([longest, *(len(cell) for cell in cells if isinstance(cell, str))])
        self._labels = (count + len(cells), longest)
        self.allow(4.0 * (count + len(cells)) * longest)
        return np.array(cells)

    def quiet(self) -> Source:
        """Return the same file for another pass, of which nothing is noted."""
        other = copy(self)
        other.notes = Notes()
        return other

    def error(self, line: int | None, expected: str, came: str, remedy: str) -> ReadError:
        """Return an error about this file."""
        return ReadError(self.name, line, expected, came, remedy)

    @property
    def suffix(self) -> str:
        """The ending of the name that tells the format, without that of a compression, in lower case."""
        name = self.path.with_suffix("") if self.path.suffix.lower() in SUFFIXES else self.path
        return name.suffix.lower()

    def blocks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes."""
        size, expanded = max(self.size, 1), 0
        with self._open() as raw:
            if self.compression == "zstd":
                pieces = _zstd_pieces(raw)
            else:
                open_as: dict[str, Callable[[Any], Any]] = {
                    "gzip": _gzip_file,
                    "bzip2": bz2.BZ2File,
                    "xz": lzma.LZMAFile,
                }
                file = open_as.get(self.compression, lambda raw: raw)(raw)
                pieces = iter(lambda: file.read(BLOCK), b"")
            while True:
                try:
                    block = next(pieces, None)
                except ImportError:
                    raise
                except Exception as error:  # of many types, by library
                    came = f"damaged or cut off data ({type(error).__name__}: {error})"
                    remedy = "Make or download the file again."
                    raise self.error(None, f"whole {self.compression} data", came, remedy) from None
                if block is None:
                    return
                expanded += len(block)
                self.allow(expanded)
                reach(raw.tell() / size)
                yield block

    def whole(self) -> bytes:
        """Return all decompressed bytes."""
        return b"".join(self.blocks())

    def head(self) -> bytes:
        """Return the first decompressed bytes."""
        return next(iter(self.blocks()), b"")

    def line_blocks(self) -> Iterator[str]:
        r"""Yield the text in blocks of whole lines, each of which ends in "\n"."""
        rest: list[str] = []
        for text in self._text():
            end = text.rfind("\n") + 1
            if end:
                yield "".join([*rest, text[:end]])
                rest = []
            if end < len(text):
                rest.append(text[end:])
        if rest:
            yield "".join([*rest, "\n"])

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield numbers, from 1, and texts of the lines."""
        number = 0
        for block in self.line_blocks():
            for line in block[:-1].split("\n"):
                number += 1
                yield number, line

    def _text(self) -> Iterator[str]:
        """Yield decoded text with plain ends of lines."""
        decode: Callable[..., str] | None = None
        newlines, seen, size = io.IncrementalNewlineDecoder(None, translate=True), 0, 0
        for block in self.blocks():
            if decode is None:
                decode, block = self._decoder(block)
            try:
                text = decode(block)
            except UnicodeDecodeError as error:
                came = f"the byte 0x{error.object[error.start]:02x} ({error.reason})"
                line = seen + error.object[: error.start].count(b"\n") + 1
                remedy = "Name the encoding, e.g. encoding='latin-1', or write the file as UTF-8."
                raise self.error(line, f"text in {error.encoding}", came, remedy) from None
            text = newlines.decode(text)
            if "\x00" in text:
                line = seen + text[: text.index("\x00")].count("\n") + 1
                if text.count("\x00") > BINARY * len(text):
                    remedy = "Name the format by format=, or the encoding, e.g. encoding='utf-16'."
                    raise self.error(line, "text", "NUL characters, as in binary data", remedy)
                self.notes.add("NUL characters, kept", text.count("\x00"), f"{self.name}, line {line}")
            seen, size = seen + text.count("\n"), size + len(text)
            if self.compression != "none":
                self.allow(size + LINE * seen)
            yield text
        if decode is None:
            return
        try:
            text = newlines.decode(decode(b"", final=True), final=True)
        except UnicodeDecodeError:
            raise self.error(
                seen + 1, "whole characters", "half a character at the end", "The file is cut off."
            ) from None
        other = newlines.newlines
        if other not in (None, "\n"):
            kinds = "mixed" if isinstance(other, tuple) else {"\r\n": "CRLF", "\r": "CR"}[other]
            self.notes.add(f"ends of lines are {kinds}, read as LF", 1, self.name)
        yield text

    def _decoder(self, block: bytes) -> tuple[Callable[..., str], bytes]:
        """Return the function that decodes blocks, of which this is the first, and the block."""
        mark = next(((mark, name) for mark, name in MARKS.items() if block.startswith(mark)), None)
        encoding = self.encoding or "utf-8"
        if mark is not None and self.encoding is None:
            encoding = mark[1]
            self.notes.add(f"byte order mark of {encoding.removesuffix('-sig').upper()}, left out", 1, self.name)
        try:
            return codecs.getincrementaldecoder(encoding)().decode, block
        except LookupError:
            raise ValueError(f"read: encoding={encoding!r} is not known; expected e.g. 'utf-8' or 'latin-1'.") from None


def _gzip_file(raw: Any) -> Any:
    """Return a reader of gzip data, the faster one if it is installed."""
    try:
        from isal import igzip
    except ImportError:
        return gzip.GzipFile(fileobj=raw)
    return igzip.IGzipFile(fileobj=raw)


def _zstd_pieces(raw: Any) -> Iterator[bytes]:
    """Yield the contents of all frames; unlike the readers of zstandard, see whether the last one is whole."""
    try:
        import zstandard
    except ImportError:
        raise needed("zstandard", "bio", "Reading .zst files") from None
    decoder, begun = zstandard.ZstdDecompressor().decompressobj(), False
    for data in iter(lambda: raw.read(ZSTD_BLOCK), b""):
        while data:
            yield decoder.decompress(data)
            begun, data = not decoder.eof, decoder.unused_data
            if decoder.eof:
                decoder = zstandard.ZstdDecompressor().decompressobj()
    if begun:
        raise EOFError("the last frame ends too early")


def is_path(value: Any) -> bool:
    """Say whether a value names a file or folder."""
    return isinstance(value, str | os.PathLike)
