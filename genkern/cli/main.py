"""The command line. Heavy imports happen only after the arguments are understood."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from genkern import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; the default is those of the process.
    """
    options = parser().parse_args(argv)
    try:  # that there is no place for the picture should be known before the work, not after it
        options.output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.output):
            pass
    except OSError as error:
        parser().error(f"argument --output: cannot write to {options.output}: {error.strerror}; name another folder")
    from genkern.cli import demo

    demo.run(output=options.output, fast=options.fast, n_jobs=options.jobs)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="genkern", description="Kernels and feature maps from generative models of sequences and series."
    )
    top.add_argument("--version", action="version", version=f"genkern {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    shown = commands.add_parser(
        "demo",
        help="compare classifiers on the two embedded data sets and draw a picture",
        description="Cross-validate plug-in models, Fisher, product, mean map and spectrum kernels on splice "
        "junctions and Japanese vowels, print the errors, and save a kernel PCA map and a Gram heat map.",
    )
    shown.add_argument("--fast", action="store_true", help="fewer objects and folds, for a first look")
    shown.add_argument(
        "--output",
        type=Path,
        default=Path("genkern-demo"),
        metavar="DIR",
        help="folder for the picture (default: %(default)s)",
    )
    shown.add_argument(
        "--jobs", type=_jobs, default=-1, metavar="N", help="threads; -1 is all cores (default: %(default)s)"
    )
    return top


def _jobs(text: str) -> int:
    """Return a number of threads: positive, or -1 for all cores."""
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1 and count != -1:
        raise argparse.ArgumentTypeError(f"expected a positive number, or -1 for all cores; got {text!r}")
    return count
