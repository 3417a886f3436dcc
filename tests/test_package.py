"""The package as a whole: lazy imports, documented public names, and house rules read off the source."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import genkern

SOURCES = sorted(Path(genkern.__file__).parent.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in SOURCES}
PRINTING = {"cli.py", "demo.py"}
MAX_LINES, MAX_FUNCTION, MAX_JITTED_ARGUMENTS = 400, 60, 8
# Decorators of core/: those that compile what they decorate or take it for compiled code, and all others.
COMPILING = {"jit", "kernel", "inlined", "overload", "_vectorised"}
OTHERS = {"cache", "lru_cache", "property", "register_model", "type_callable", "lower_builtin"}


def decorators(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """Return the names of decorators, without their arguments."""
    called = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
    return {ast.unparse(item).rpartition(".")[2] for item in called}


def public_callables() -> list[tuple[str, Any]]:
    """Return the public functions and classes, also those of the public modules, by dotted name."""
    found = []
    for name in genkern.__all__:
        value = getattr(genkern, name)
        if isinstance(value, ModuleType):
            members = getattr(value, "__all__", [key for key in vars(value) if not key.startswith("_")])
            found += [
                (f"{name}.{key}", getattr(value, key))
                for key in members
                if callable(getattr(value, key)) and getattr(value, key).__module__.startswith(value.__name__)
            ]
        else:
            found.append((name, value))
    return found


PUBLIC = public_callables()


def run(code: str) -> str:
    """Return the output of a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_is_lazy() -> None:
    heavy = "('numpy', 'numba', 'scipy', 'sklearn', 'matplotlib', 'pandas')"
    assert run(f"import sys, genkern; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_nothing_reads_or_writes_pickles() -> None:
    """Reading one can run any code; objects of ours can be pickled by others, such as joblib."""
    running = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not running & {name.partition(".")[0] for name in names}, path
            if isinstance(node, ast.ImportFrom) and node.module == "joblib":  # of which some write pickles
                assert not {"dump", "load", "Memory"} & {alias.name for alias in node.names}, path
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in {"joblib.load", "joblib.dump", "joblib.Memory", "eval", "exec", "__import__"}, path
            if called in {"np.load", "np.save"}:
                assert any(word.arg == "allow_pickle" for word in node.keywords), path


def test_version_is_that_of_the_project() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'version = "{genkern.__version__}"' in text


def test_every_public_name_is_there_and_listed() -> None:
    assert sorted(set(genkern.__all__)) == sorted(genkern.__all__)
    assert set(genkern.__all__) <= set(dir(genkern))
    stub = ast.parse(Path(genkern.__file__).with_suffix(".pyi").read_text())
    listed = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(genkern.__all__) == sorted(listed)
    assert run("from genkern import *; print(HMM.__name__, affinity is not None)") == "HMM True"


def test_unknown_names_raise_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="HNM"):
        _ = genkern.HNM  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_public_parameters_are_documented(name: str, value: Any) -> None:
    document = inspect.getdoc(value)
    assert document, f"{name} has no docstring"
    target = value if inspect.isclass(value) or inspect.isfunction(value) else type(value).__call__
    parameters = [
        parameter.name
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and parameter.name != "self"
    ]
    # A plain value documents its constructor's arguments as the attributes that they become.
    sections = re.findall(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", document, flags=re.S | re.M)
    listed = re.findall(r"^([*\w, ]+?)(?: :|$)", "\n".join(sections), flags=re.M)
    known = {word.strip(" *") for line in listed for word in line.split(",")}
    assert set(parameters) <= known, f"{name}: undocumented {sorted(set(parameters) - known)}"


@pytest.mark.parametrize(("name", "value"), PUBLIC, ids=[name for name, _ in PUBLIC])
def test_public_methods_have_docstrings(name: str, value: Any) -> None:
    if not inspect.isclass(value):
        return
    own = [
        key
        for key, member in inspect.getmembers(value)
        if not key.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and "genkern" in str(getattr(member, "__module__", None) or getattr(member.fget, "__module__", ""))
    ]
    silent = [key for key in own if not inspect.getdoc(getattr(value, key))]
    assert not silent, f"{name}: no docstring on {silent}"


OWN = {"self", "cls", "super"}
OF_VALUES = {"_fields", "_replace", "_restore"}  # of named tuples and models, whose names are given by others
CALLERS = [p for p in SOURCES if p.parent.name in ("features", "preprocess", "recipes", "explanation")]


@pytest.mark.parametrize("path", CALLERS, ids=[path.stem for path in CALLERS])
def test_nobody_calls_private_methods_of_others(path: Path) -> None:
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Attribute) and re.fullmatch("_[a-z].*", node.attr) and node.attr not in OF_VALUES:
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            assert getattr(owner, "id", None) in OWN, f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def forbidden(rule: tuple[Any, ast.expr]) -> bool:
    """Say whether a flag, as a keyword or in a dictionary of flags, is one that compiled code must not have."""
    name, value = rule
    return name in ("fastmath", "parallel") and not (isinstance(value, ast.Constant) and value.value is False)


def test_all_decorators_of_compiled_code_are_known() -> None:
    source = TREES[next(path for path in SOURCES if path.name == "jit.py")]
    made = {node.name for node in source.body if isinstance(node, ast.FunctionDef) and "Function" in ast.unparse(node)}
    assert made - {"_compiled"} == {"jit", "kernel", "inlined"}  # of Function -> Function
    used: dict[str, int] = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for name in decorators(node) & (decorators(node) if "core" in path.parts else COMPILING):
                    used[name] = used.get(name, 0) + 1
    assert set(used) == COMPILING | OTHERS
    assert used["kernel"] > 100  # it is the most frequent one


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_source_keeps_the_house_rules(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or node.lineno) - node.body[0].lineno
            if isinstance(node.body[0], ast.Expr) and ast.get_docstring(node):
                length -= (node.body[0].end_lineno or 0) - node.body[0].lineno
            assert length <= MAX_FUNCTION, f"{path.name}:{node.lineno} {node.name} has {length} lines"
            if decorators(node) & COMPILING:
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given = [argument for argument in given if argument.arg != "typingctx"]  # which callers do not give
                assert len(given) <= MAX_JITTED_ARGUMENTS, f"{path.name}:{node.lineno} {node.name}"
                assert node.args.vararg is None, f"{path.name}:{node.lineno} {node.name}"
                assert node.args.kwarg is None, f"{path.name}:{node.lineno} {node.name}"
                assert ast.get_docstring(node), f"{path.name}:{node.lineno} {node.name} has no docstring"
        elif isinstance(node, ast.Call):
            assert path.name in PRINTING or ast.unparse(node.func) != "print", f"{path.name}:{node.lineno}"
            rules = [(word.arg, word.value) for word in node.keywords]
            assert not any(map(forbidden, rules)), f"{path.name}:{node.lineno}"
        elif isinstance(node, ast.Dict):
            rules = [(getattr(key, "value", None), value) for key, value in zip(node.keys, node.values)]
            assert not any(map(forbidden, rules)), f"{path.name}:{node.lineno}"
        elif isinstance(node, ast.Raise) and node.exc is not None:
            assert "NotImplementedError" not in ast.unparse(node.exc), f"{path.name}:{node.lineno}"


def test_core_imports_nothing_of_ours() -> None:
    for path, tree in TREES.items():
        if path.parent.name != "core":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("genkern"):
                assert node.module.startswith("genkern.core"), f"{path.name}:{node.lineno}"
