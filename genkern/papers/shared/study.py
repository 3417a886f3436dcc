"""The work of an experiment in parts, each kept on disk when it is done, so that an interrupted run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from genkern import Store, __version__
from genkern.data.whole_files import whole_file
from genkern.progress import Progress
from genkern.threads import one_blas_thread


class MissingDataError(FileNotFoundError):
    """A data set that an experiment needs and that is not there."""


class Study:
    """What an experiment is given: how large it shall be, where its data are, and how its parts are computed.

    Parameters
    ----------
    name : str
        Name of the experiment.
    quick : bool, default=False
        Whether it shall be small and take seconds.
    data : path, optional
        Folder of data sets.
    out : path, optional
        Folder where results of parts are kept, in ``NAME.jsonl`` or ``NAME-quick.jsonl``; without it none are.
    n_jobs : int, default=1
        Processes.
    verbose : bool, default=False
        Whether progress is reported.
    """

    def __init__(
        self,
        name: str,
        quick: bool = False,
        data: Path | None = None,
        out: Path | None = None,
        n_jobs: int = 1,
        verbose: bool = False,
    ):
        self.name, self.quick, self.data = name, quick, data
        self._n_jobs, self._verbose = n_jobs, verbose
        self._path = None if out is None else Path(out) / f"{name}{'-quick' if quick else ''}.jsonl"
        self._head = {"experiment": name, "quick": quick, "genkern": __version__}
        self._known = self._read()

    def folder(self, *parts: str) -> Path:
        """Return the place of a data set, or say how to name it."""
        if self.data is None:
            raise MissingDataError(
                f"reproduce {self.name}: the data set {'/'.join(parts)} is not part of the package. Name the folder "
                "that holds it by --data, or in the variable GENKERN_DATA; docs/papers/data.md says where to get it."
            )
        place = Path(self.data).joinpath(*parts)
        if not place.exists():
            raise MissingDataError(f"reproduce {self.name}: there is no {place}. Name another folder by --data.")
        return place

    def store(self, name: str) -> Store:
        """Return a memo of fits under a name, which experiments and processes share; in memory without a folder."""
        return Store() if self._path is None else Store(self._path.parent / f"{name}-fits")

    def map(self, function: Callable[..., Any], tasks: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Return ``function(*arguments)`` of every task, computing only those that are not on disk.

        Parameters
        ----------
        function : callable
            A function of a module, whose results JSON can hold.
        tasks : dict of str to tuple
            Arguments by the name of the part; the same name is the same work in every run.
        """
        missing = {key: arguments for key, arguments in tasks.items() if key not in self._known}
        with Progress(self.name, len(tasks), "parts", self._verbose) as progress:
            progress.advance(len(tasks) - len(missing))
            for key, result in self._compute(function, missing):
                self._known[key] = json.loads(json.dumps(result, allow_nan=False))
                self._append(key)
                progress.advance(note=key)
        return {key: self._known[key] for key in tasks}

    def _compute(self, function: Callable[..., Any], tasks: Mapping[str, tuple[Any, ...]]) -> Iterator[tuple[str, Any]]:
        if self._n_jobs == 1 or len(tasks) < 2:
            for key, arguments in tasks.items():
                yield key, function(*arguments)
            return
        work = (delayed(_named)(key, function, arguments) for key, arguments in tasks.items())
        yield from Parallel(n_jobs=self._n_jobs, return_as="generator_unordered", batch_size=1)(work)

    def _append(self, key: str) -> None:
        """Write one more line; a line that an interruption cut off is not read again."""
        if self._path is None:
            return
        with open(self._path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"part": key, "result": self._known[key]}) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _read(self) -> dict[str, Any]:
        """Return the results on disk; begin a new file where there is none."""
        if self._path is None:
            return {}
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True) if self._path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        entries = [json.loads(line) for line in whole]
        if entries and entries[0] != self._head:
            raise ValueError(
                f"reproduce {self.name}: {self._path} holds results of {entries[0]}, not of {self._head}. Move it away "
                "to begin anew, or name another folder."
            )
        if len(whole) < len(lines) or not whole:
            with whole_file(self._path, "reproduce") as stream:
                stream.write("".join(whole or [json.dumps(self._head) + "\n"]).encode())
        return {entry["part"]: entry["result"] for entry in entries[1:]}


def _named(key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    with one_blas_thread():  # the processes use the cores
        return key, function(*arguments)
