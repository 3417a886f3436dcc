"""Files made to take memory or time, each read in a process of its own, which is held to a bound of both.

``python io_attacks.py FOLDER`` writes each attack, reads it and prints, as JSON in lines, its name, what came of it,
and the seconds and megabytes that it took.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import struct
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

ATTACKS: dict[str, Callable[[], bytes]] = {}
SECONDS, MEGABYTES = 20, 1500  # of the two readers of a file; memory that is asked for, used or not
ZEROS = 1 << 24
MB = 1 << 20


def attack(name: str) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """Register what makes the content of a file."""

    def add(make: Callable[[], bytes]) -> Callable[[], bytes]:
        ATTACKS[name] = make
        return make

    return add


# --- bombs: small files that expand to many GB

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1),
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": lambda data: __import__("zstandard").compress(data),
}


def repeated(pack: Callable[[bytes], bytes], head: bytes, filler: bytes) -> bytes:
    """Return a compressed file of about a megabyte, of many members."""
    member = pack(filler * (ZEROS // len(filler)))
    return pack(head) + member * min(256, MB // len(member))


def noise(size: int) -> bytes:
    """Return a comment that no packer makes smaller."""
    return b"#" + np.random.default_rng(0).bytes(size).translate(bytes(range(128)) * 2, b"\n\r\0\x8a\x8d\x80") + b"\n"


TEXTS = {"fa": (b">a\n", b"A"), "jsonl": (b'{"text": "a b"}\n', b" "), "csv": (b"id,v\n", b"a,1\n")}
TEXTS |= {"arff": (b"@relation r\n", b"%\n"), "ts": (b"@problemName p\n", b"#\n"), "fq": (b"@a\nA\n+\nI\n", b"\n")}
for form, (head, filler) in TEXTS.items():
    attack(f"bomb.{form}.zst")(lambda head=head, filler=filler: repeated(PACKERS["zst"], head, filler))
LINES = {"ts": (b"@classLabel false\n@data\n", b"1\n"), "csv": (b"text\n", b"a\n"), "jsonl": (b"", b'{"x":[1]}\n')}
LINES |= {"arff": (b"@relation r\n@attribute a real\n@data\n", b"1\n"), "fa": (b"", b">\nA\n")}
for form, (head, line) in LINES.items():  # 16 kB of millions of objects, which are less than 16 MB of text
    attack(f"bomb.small.{form}.gz")(lambda head=head, line=line: gzip.compress(head + line * (ZEROS // len(line) - 99)))
attack("most.ts.gz")(lambda: gzip.compress(LINES["ts"][0] + noise(MB // 2) + b"1\n" * 600_000))  # just within
for packed, pack in PACKERS.items():
    attack(f"line.sto.{packed}")(lambda pack=pack: repeated(pack, b"# STOCKHOLM 1.0\n", b"a"))


@attack("frame.fa.zst")
def _frame() -> bytes:
    """One frame of zstd: four bytes stand for a block of 128 kB."""
    packer = __import__("zstandard").ZstdCompressor().compressobj()
    return b"".join(packer.compress(bytes(ZEROS)) for _ in range(256)) + packer.flush()


@attack("nested.npz.gz")
def _nested() -> bytes:
    return gzip.compress(zipped({"X": (head_of((2**28,)), bytes(2**31 - MB))}))


def head_of(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """Return the head of an array of NumPy."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def zipped(entries: dict[str, tuple[bytes, bytes]]) -> bytes:
    """Return an .npz file of arrays, each with a head."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, (head, body) in entries.items():
            file.writestr(f"{name}.npy", head + body)
    return out.getvalue()


attack("bomb.npz")(lambda: zipped({"X": (head_of((2**26,)), bytes(2**29))}))
SIDE = {"lengths": (head_of((1,), "<i8"), struct.pack("<q", 1))}
HEADS = {
    "huge": (2**60,),
    "product": (2**31, 2**31, 2**31),
    "large": (2**33,),
    "negative": (-1,),
    "none": (2**60, 0),
    "many": (1,) * 70,
}
for name, shape in HEADS.items():
    attack(f"{name}.npz")(lambda shape=shape: zipped({"values": (head_of(shape), b""), **SIDE}))
for descr in ("<U0", "|O", "<M8[0s]", "|V0"):
    made = (head_of((2**60,), descr), b"")
    attack(f"{descr.strip('<|')[:2]}.npz")(lambda made=made: zipped({"values": made, "X": made}))
attack("outside.npz")(lambda: zipped({"../../canary": (head_of((1,)), bytes(8)), "/canary": (head_of((1,)), bytes(8))}))
attack("pickle.npz")(lambda: zipped({"X": (b"", b"cos\nsystem\n(S'touch canary'\ntR.")}))
attack("deep.npz")(lambda: zipped({"X": (b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000, b"")}))


@attack("lies.npz")
def _lies() -> bytes:
    """The directory tells a size that is not that of the content."""
    data = bytearray(zipped({"X": (head_of((2**22,)), bytes(2**25))}))
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 200)
    return bytes(data)


def columns(**arrays: object) -> object:
    import pyarrow

    return pyarrow.table(arrays)


def texts(rows: int, size: int) -> object:
    """Return a column with one long text in every row."""
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["x" * size])


def parquet(table: object) -> bytes:
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, compression="zstd", store_schema=False)
    return out.getvalue()


def arrow(table: object, **options: object) -> bytes:
    import pyarrow

    out = io.BytesIO()
    with pyarrow.ipc.new_file(out, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as file:  # type: ignore[attr-defined]
        file.write_table(table)
    return out.getvalue()


def one_list(size: int) -> object:
    import pyarrow

    return pyarrow.ListArray.from_arrays(np.array([0, size], np.int32), np.zeros(size, np.int8))


def runs(size: int) -> object:
    import pyarrow

    return pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([size], pyarrow.int32()), [1.0])


attack("bomb.parquet")(lambda: parquet(columns(text=["x" * (1 << 28)])))
attack("rows.parquet")(lambda: parquet(columns(t1=np.zeros(40 * MB, np.int8))))
attack("texts.parquet")(lambda: parquet(columns(text=texts(100_000, 20_000))))
attack("list.parquet")(lambda: parquet(columns(series=one_list(40 * MB))))
attack("buffers.arrow")(lambda: arrow(columns(t1=np.zeros(80 * MB)), compression="zstd"))
attack("nulls.arrow")(lambda: arrow(columns(t1=__import__("pyarrow").nulls(40 * MB))))
attack("runs.arrow")(lambda: arrow(columns(t1=runs(2**31 - 1))))
attack("texts.arrow")(lambda: arrow(columns(text=texts(100_000, 20_000))))


@attack("claims.arrow")
def _claims() -> bytes:
    """A buffer says that it has 2^40 bytes before compression."""
    data = arrow(columns(t1=np.zeros(1000)), compression="zstd")
    return data.replace(struct.pack("<q", 8000), struct.pack("<q", 2**40), 1)


# --- files that would take time, or memory, by the square of their size

LINE = MB // 8
attack("spaces.arff")(lambda: b"@relation r\n@attribute a {x}\n@attribute b string\n@data\n" + b" " * LINE + b"'\n")
attack("quotes.arff")(lambda: b"@relation r\n@attribute a string\n@data\n" + b"'\\" * (LINE // 2) + b"\n")
attack("attributes.arff")(
    lambda: b"@relation r\n" + b"".join(b"@attribute a%d real\n" % k for k in range(20_000)) + b"@data\n1\n"
)
attack("labels.arff")(
    lambda: (
        b"@relation r\n@attribute a real\n@attribute y {"
        + b",".join(b"%d" % k for k in range(20_000))
        + b"}\n@data\n"
        + b"".join(b"1,%d\n" % (19_999 - k) for k in range(20_000))
    )
)
TS = b"@problemName p\n@timeStamps %s\n@classLabel %s\n@data\n"
attack("colons.ts")(lambda: TS % (b"false", b"false") + b"(" + b":" * LINE + b"\n")
attack("brackets.ts")(lambda: TS % (b"true", b"false") + b"(" + b" " * LINE + b"\n")
attack("times.ts")(lambda: TS % (b"true", b"false") + b":".join(b"(%d,1)" % k for k in range(20_000)) + b"\n")
attack("labels.ts")(
    lambda: (
        TS % (b"false", b"true " + b" ".join(b"%d" % k for k in range(20_000)))
        + b"".join(b"1:%d\n" % (19_999 - k) for k in range(20_000))
    )
)
attack("number.ts")(lambda: TS.replace(b"@data", b"@dimensions " + b"9" * 5000 + b"\n@data") % (b"false", b"false"))
attack("label.ts")(lambda: TS % (b"false", b"true") + b"1:a\n" * 50_000 + b"1:" + b"x" * LINE + b"\n")
attack("lines.fa")(lambda: b"\n" * (2 * LINE) + b">a\nA\n")
attack("comments.fa")(lambda: b">\n;\nA\n" * 30_000)
attack("headers.fa")(lambda: b">\n" * LINE)
attack("label.fa")(lambda: b">a class=y\nA\n" * 50_000 + b">b class=" + b"x" * LINE + b"\nA\n")
attack("lines.fq")(lambda: b"@a\nA\n+\nI\n" + b"\n" * (2 * LINE))
attack("about.sto")(lambda: b"# STOCKHOLM 1.0\n" + b"#=GS a D x\n" * 100_000 + b"a A\n//\n")
attack("header.csv")(lambda: b",".join(b"c%d" % (k // 2) for k in range(100_000)) + b"\n")
attack("wide.csv")(lambda: b",".join(b"t%d" % k for k in range(20_000)) + b"\n" + b",".join([b"1"] * 20_000) + b"\n")
attack("count.csv")(lambda: b",v\n" + b"1" * 5000 + b",1\n")
attack("columns.csv")(lambda: b"t" + b"1" * 5000 + b",t" + b"2" * 5000 + b"\n1,2\n")
attack("line.csv")(lambda: b"text\n" + b"a" * (4 * MB) + b"\n")
attack("label.csv")(lambda: b"label,text\n" + b"y,A\n" * 50_000 + b"x" * LINE + b",A\n")
attack("quote.csv")(lambda: b'text\n"' + b"a\n" * MB)
attack("number.csv")(lambda: b"t1,t2\n" + b"1" * LINE + b",1e" + b"9" * LINE + b"\n")
attack("nest.jsonl")(lambda: b'{"series": ' + b"[" * LINE + b"]" * LINE + b"}\n")
attack("nested.jsonl")(
    lambda: b'{"series": ' + b"[" * 900 + b"]" * 900 + b', "label": ' + b"[" * 900 + b"]" * 900 + b"}\n"
)
attack("keys.jsonl")(lambda: b"".join(b'{"k%d":1}\n' % k for k in range(20_000)))
attack("row.jsonl")(lambda: b"{" + b",".join(b'"k%d":1' % k for k in range(20_000)) + b"}\n")
attack("integer.jsonl")(lambda: b'{"label": ' + b"1" * LINE + b', "series": [1]}\n')
attack("lists.jsonl")(lambda: b'{"series": [' + b"[1]," * 50_000 + b"[1]]}\n")
attack("ids.jsonl")(lambda: b'{"id": [1], "v": 2}\n{"id": {}, "v": 2}\n')
attack("points.csv")(lambda: b"id,v\n" + b"a,1\n" * 50_000)


def limited(path: Path) -> str:
    """Read a file, and as a stream, and say what came of it."""
    from genkern.io import ReadError, read, stream

    said = []
    for reader in (lambda: [read(path)], lambda: list(stream(path))):
        try:
            said.append(f"{sum(map(len, reader()))} objects")
        except ReadError as error:
            text = str(error)
            assert len(text) < 2000 + 2 * len(str(path)), len(text)
            said.append(f"refused: {text[len(str(path)) :]}".replace(" | ", " "))
        except Exception as error:  # what must not be
            said.append(f"raised {type(error).__name__}: {error!s:.160}")
    return " | ".join(said)


def main(folder: str, *names: str) -> None:
    import pyarrow.parquet  # noqa: F401
    import zstandard  # noqa: F401

    import genkern.io  # noqa: F401

    os.chdir(folder)
    warnings.simplefilter("ignore")
    for name in names or ATTACKS:
        path = Path(folder, name)
        path.write_bytes(ATTACKS[name]())
        size = path.stat().st_size
        reading, writing = os.pipe()
        start, before = time.monotonic(), resident()
        child = os.fork()
        if child == 0:
            here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (here + MEGABYTES * MB,) * 2)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            os.write(writing, limited(path).encode()[:8000])
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as said:
            text = said.read().decode()
        _, status, used = os.wait4(child, 0)
        path.unlink()
        found = {
            "name": name,
            "said": text or f"ended by signal {os.WTERMSIG(status)}",
            "seconds": round(used.ru_utime + used.ru_stime, 1),
            "wall": round(time.monotonic() - start, 1),
            "mb": round(used.ru_maxrss / 1024 - before, 0),
            "size": size,
        }
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def resident() -> float:
    """Return the megabytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MB


if __name__ == "__main__":
    main(*sys.argv[1:])
