"""Files that are not read here: what they are, by their first bytes or the names in them, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from genkern.io.files import MARKS

SHEET = "Save the sheet as CSV (UTF-8), and give that file."
NUMBERS = "Make arrays of it, and give them to genkern.read, or write them by numpy.savez."
FOREIGN = {  # the first bytes of what people have at hand and is not read here: what it is, and what to do
    b"\xd0\xcf\x11\xe0": ("an old file of Excel or Word", SHEET),
    b"%PDF": ("a PDF", "Give its text, as a .txt file in a folder, or its table as CSV."),
    b"\x89PNG": ("a picture (PNG)", NUMBERS),
    b"\xff\xd8\xff": ("a picture (JPEG)", NUMBERS),
    b"GIF8": ("a picture (GIF)", NUMBERS),
    b"RIFF": ("a recording of sound or film", NUMBERS),
    b"ID3": ("a recording of sound (MP3)", NUMBERS),
    b"fLaC": ("a recording of sound (FLAC)", NUMBERS),
    b"\x89HDF": ("an HDF5 file", NUMBERS),
    b"MATLAB": ("a file of MATLAB", NUMBERS),
    b"\x93NUMPY": (
        "one array (.npy)",
        "Write it by numpy.savez, with its labels as 'y', or give genkern.read the array.",
    ),
    b"SQLite": ("a database", "Save the table as CSV, and give that file."),
    b"RDX": ("a file of R", "Save the table as CSV by write.csv, and give that file."),
    b"BAM\x01": ("a BAM file", "Write its sequences by samtools fasta, and give that file."),
    b"\x80": ("a pickle, which may hold code and is never loaded", NUMBERS),
}
DOCUMENTS = {  # names in a zip archive that tell whose it is
    "xl/workbook.xml": ("an Excel workbook", SHEET),
    "word/document.xml": ("a Word document", "Save it as plain text, and give a folder of such files."),
    "content.xml": ("a document of LibreOffice", "Save a sheet as CSV, or a text as plain text, and give that."),
}


def foreign(head: bytes) -> tuple[str, str] | None:
    """Return what a file is by its first bytes, and what to do, where it is of a kind that is not read here."""
    found = next((said for magic, said in FOREIGN.items() if head.startswith(magic)), None)
    if found is None and b"\x00" in head and not head.startswith(tuple(MARKS)):
        return "binary data of an unknown kind", f"{SHEET} {NUMBERS}"
    return found


def zipped(names: Sequence[str]) -> tuple[str, str]:
    """Return what a zip archive without arrays is by the names in it, and what to do."""
    found = next((said for name, said in DOCUMENTS.items() if name in names), None)
    return found or (f"a zip archive of {', '.join(names[:3])}", "Unpack it, and give the files in it.")
