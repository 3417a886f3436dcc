"""The command line: one table of commands, each imported when it is called, and how errors are told.

Exit codes: 0 done, 1 a defect of the program, 2 wrong usage, 3 bad data (or a file that cannot be read or written), 130
interrupted. Errors are one paragraph with the remedy; ``--debug`` shows the traceback.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from genkern import __version__
from genkern.cli.interruption import interruptible
from genkern.progress import report

DEFECT, USAGE, DATA, INTERRUPTED = 1, 2, 3, 130
WRITING = "Look at its path, its permissions and the room that is left."

# The module genkern.cli.<name> has a function of that name; the texts are here so that --help imports none of them.
COMMANDS = {
    "info": "Say what a file holds, and what was done in reading it.",
    "evaluate": "Cross-validate recipes side by side, with intervals and paired tests.",
    "train": "Train a classifier and save it as one file.",
    "predict": "Classify the objects of a file by a saved model, in constant memory.",
    "explain": "Say what a saved model saw in a set, or in an object and where.",
    "map": "Draw the objects of a file in the plane.",
    "cluster": "Group the objects of a file.",
    "gram": "Save the kernel values between all objects of a file.",
    "compare": "Test whether two files come from the same law.",
    "convert": "Write a file in another format.",
    "demo": "See it at work on the two sets of the package: errors, a report, an explanation.",
    "reproduce": "Run the experiments of the papers.",
    "bench": "Measure how fast this machine is.",
    "warmup": "Compile now what would be compiled on first use.",
    "doctor": "Show versions, threads, caches, optional parts and CPU features.",
}


class Commands(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; its module imports nothing heavy."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"genkern.cli.{cmd_name}"), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest command where there is none of that name."""
        if args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else " See genkern --help."
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, prog_name="genkern", message="%(prog)s %(version)s")
def genkern() -> None:
    """Kernels and feature maps from generative models: from a file to an answer.

    A file holds sequences (FASTA, FASTQ, Stockholm), series (.ts, .arff, tables), documents, point sets or arrays; see
    "genkern info FILE". Completion: eval "$(_GENKERN_COMPLETE=bash_source genkern)", or zsh_source, fish_source.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; the default is those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    shown = warnings.showwarning
    try:
        warnings.showwarning = _notes(quiet=not {"--quiet", "-q"}.isdisjoint(arguments))
        with interruptible():
            result = genkern.main(arguments, prog_name="genkern", standalone_mode=False, obj=arguments)
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        return _say(error.format_message(), USAGE)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "genkern"
        return _say(f"{where}: {error.format_message()}\nSee {where} --help.", USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _say("\nInterrupted. Files that were complete are kept.", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _explain(error)
    finally:
        warnings.showwarning = shown


def _explain(error: Exception) -> int:
    """Say an error in one paragraph; errors of data and files are not defects."""
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}. {WRITING}" if error.filename else error.strerror or str(error)
        text = f"standard output: {text}. {WRITING}" if text == os.strerror(error.errno or 0) else text
    elif isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, ValueError | TypeError | ImportError | MemoryError):
        text = _in_options(error) or type(error).__name__
    else:
        text = f"a defect of the program ({type(error).__name__}: {error}). Run again with --debug and report it."
        return _say(f"genkern: {text}", DEFECT)
    return _say(f"genkern: {text.removeprefix('genkern: ')}", DATA)


def _in_options(error: Exception) -> str:
    """Return the text of an error, in which a remedy names options of commands, not arguments in Python."""
    from genkern.cli.options import as_options

    text, remedy = str(error), getattr(error, "remedy", "")
    if text.startswith("write: "):
        return text.replace("name it by format=", "name it by --to")
    if text.startswith("explain: "):
        return re.sub(r"fit one that is linear: candidates=\['(\w+)'\]", r"train one that is linear: --recipe \1", text)
    if text.startswith("read: "):
        return as_options(text)
    text = re.sub(r"', as (\w+)= says\. Got ", r"', as --\1 says. Got ", text, count=1)
    return text.removesuffix(remedy) + as_options(remedy)


def _notes(quiet: bool) -> Any:
    """Return what writes warnings, each text once, as one line without the place in the code."""
    told: set[str] = set()

    def show(message: Any, category: Any, filename: Any, lineno: Any, file: Any = None, line: Any = None) -> None:
        if not quiet and str(message) not in told:
            told.add(str(message))
            report(f"note: {message}")

    return show


def _say(text: str, code: int) -> int:
    click.echo(text, err=True)
    return code
