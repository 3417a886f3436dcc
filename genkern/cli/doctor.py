"""genkern doctor: what this installation has and what it lacks."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from genkern import __version__
from genkern.cli.options import common, read_data, reading, working
from genkern.cli.output import answer, table

NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "numba", "opt_einsum", "lazy_loader", "click")
OPTIONAL = {
    "isal": "bio",
    "zstandard": "bio",
    "narwhals": "tables",
    "pyarrow": "tables",
    "pandas": "frames",
    "awkward": "frames",
    "matplotlib": "plots",
    "umap-learn": "maps",
    "zarr": "scale",
    "distributed": "dask",
    "hmmlearn": "bench",
}
FEATURES = ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve")


@click.command("doctor")
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@reading
@common
def doctor_command(model: Path | None, files: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> None:
    """Show versions, threads, caches, optional parts and CPU features, and what is amiss.

    With a saved MODEL: its size and numbers instead; with a FILE of objects too, how long it takes to predict one.
    """
    if model is not None:
        _model(model, files, options, as_json)
        return
    import joblib
    import llvmlite.binding
    from numba.core import config
    from threadpoolctl import threadpool_info

    import genkern.models.hmm.model  # noqa: F401  loads what it computes with, so that its threads are seen
    from genkern.core.jit import cache_directory, source_digest

    versions = {name: _version(name) for name in NEEDED}
    optional = {name: _version(name) for name in OPTIONAL}
    known = llvmlite.binding.get_host_cpu_features()
    cache = cache_directory(source_digest("jit"), config.CACHE_DIR)
    folder = None if cache is None else cache.parent
    result: dict[str, Any] = {
        "genkern": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "features": [name for name in FEATURES if known.get(name)],
        "cores": os.cpu_count(),
        "usable_cores": joblib.cpu_count(),
        "thread_pools": {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()},
        "versions": versions,
        "optional": optional,
        "cache": None if folder is None else str(folder),
        "cache_bytes": 0 if folder is None else _size(folder),
        "cache_free_bytes": None if folder is None else shutil.disk_usage(folder).free,
        "data": os.environ.get("GENKERN_DATA"),
    }
    result["amiss"] = _amiss(result)
    answer(result, _page(result), as_json)


def _model(path: Path, files: tuple[str, ...], options: dict[str, Any], as_json: bool) -> None:
    """Tell what a saved model costs."""
    from genkern import load
    from genkern.evaluation import latency
    from genkern.saving import describe

    about, estimator = describe(path), load(path)
    result = {"model": str(path), "class": about["class"], "bytes": path.stat().st_size, "numbers": _numbers(estimator)}
    text = f"{path}: {about['class']}, {result['bytes'] / 2**20:.2f} MB, {result['numbers']:,} numbers"
    if files:
        if not hasattr(estimator, "predict"):
            raise ValueError(f"{path}: holds a {type(estimator).__name__}, which predicts nothing.")
        data = read_data(files, options)
        with working("predictions of one object"):
            found = latency(estimator, data.X)
        result |= {"median_seconds": found.median, "high_seconds": found.high, "calls": found.calls}
        text += (
            f"\none object: {1000 * found.median:.1f} ms (median), {1000 * found.high:.1f} ms (95 %), "
            f"{found.calls} calls"
        )
    answer(result, text, as_json)


def _numbers(value: Any, seen: set[int] | None = None) -> int:
    """Return how many numbers the arrays hold that a value is made of."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, type):
        return 0
    seen.add(id(value))
    if hasattr(value, "dtype") and hasattr(value, "size"):
        return int(value.size) if value.dtype.kind in "fiub" else 0
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return sum(_numbers(part, seen) for part in [*parts, *getattr(value, "__dict__", {}).values()])


def _page(result: dict[str, Any]) -> str:
    """Return the answer as text."""
    pools = ", ".join(f"{name} {count}" for name, count in result["thread_pools"].items())
    cache = "none: code is compiled anew in every process"
    if result["cache"]:
        used, free = result["cache_bytes"] / 2**20, result["cache_free_bytes"] / 2**30
        cache = f"{result['cache']} ({used:.0f} MB, {free:.0f} GB free)"
    head = [
        ("genkern", result["genkern"]),
        ("python", f"{result['python']} ({sys.executable})"),
        ("machine", result["platform"]),
        ("CPU", f"{result['cpu']}: {' '.join(result['features'])}"),
        ("cores", f"{result['usable_cores']} usable of {result['cores']}; threads: {pools}"),
        ("compiled code", cache),
        ("data folder", result["data"] or "GENKERN_DATA is not set"),
    ]
    lines = [f"{name:<14} {value}" for name, value in head]
    rows = [(name, version or "missing", "") for name, version in result["versions"].items()]
    rows += [
        (name, version or "not installed", f"genkern[{OPTIONAL[name]}]") for name, version in result["optional"].items()
    ]
    lines += ["", table(rows, ["package", "version", "part of"]), ""]
    return "\n".join(lines + ([f"amiss: {text}" for text in result["amiss"]] or ["all is well"]))


def _amiss(result: dict[str, Any]) -> list[str]:
    """Return what should be mended, with the remedy."""
    found = [f"{name} is missing; pip install genkern" for name, version in result["versions"].items() if not version]
    if result["cache"] is None:
        found.append("no folder for compiled code is safe to use; set NUMBA_CACHE_DIR to one of mode 700")
    elif result["cache_free_bytes"] < 2**28:
        found.append(f"less than 256 MB are free for {result['cache']}; make room or set NUMBA_CACHE_DIR")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        found.append("NUMBA_DISABLE_JIT is set: everything is some hundred times slower; unset it")
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _size(folder: Path) -> int:
    """Return how many bytes of compiled code of ours lie in a folder."""
    return sum(file.stat().st_size for own in folder.glob("genkern-*") for file in own.rglob("*") if file.is_file())
