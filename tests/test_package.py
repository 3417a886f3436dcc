"""The package as a whole: lazy imports, documented public names, and house rules read off the source."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import genkern
from genkern.data.transformer import Transformer
from genkern.models.base import Model

SOURCES = sorted(Path(genkern.__file__).parent.rglob("*.py"))
PRINTING = {"demonstration.py"}
MAX_LINES, MAX_FUNCTION, MAX_JITTED_ARGUMENTS = 400, 60, 8
# Decorators of core/: those that compile what they decorate or take it for compiled code, and all others.
COMPILING = {"jit", "kernel", "part", "inlined", "overload", "_vectorised"}
OTHERS = {"cache", "lru_cache", "property", "register_model", "type_callable", "lower_builtin"}

# Phrases that leave the reader to guess what is meant: docstrings and comments name the thing instead.
RIDDLES = re.compile(
    r"what (stands|becomes|is made of|takes it|comes of|lies)\b|\b(stands?|standing) for\b|\bgoes? where\b|\blest\b"
    r"|\ball but coincide|\bover again\b|\bin vain\b|\b(the|our) house\b|\bhand(s|ed)? on\b"
)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


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
    for path, tree in zip(SOURCES, map(tree_of, SOURCES)):
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


def test_nothing_starts_a_shell_or_another_program() -> None:
    starting = re.compile(r"os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|startfile)$")
    for path, tree in zip(SOURCES, map(tree_of, SOURCES)):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"subprocess", "pty", "pexpect"} & {name.partition(".")[0] for name in names}, path
            assert not isinstance(node, ast.keyword) or node.arg != "shell", path
            assert not isinstance(node, ast.Attribute) or not starting.match(ast.unparse(node)), path
            assert (
                not isinstance(node, ast.ImportFrom)
                or node.module != "os"
                or not any(starting.match(f"os.{alias.name}") for alias in node.names)
            ), path


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
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and re.fullmatch("_[a-z].*", node.attr) and node.attr not in OF_VALUES:
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            assert getattr(owner, "id", None) in OWN, f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def test_nobody_outside_asks_a_model_for_its_class() -> None:
    root = Path(genkern.__file__).parent
    inside = [path for path in SOURCES if path.is_relative_to(root / "models")]
    names = [".".join(("genkern", *path.relative_to(root).with_suffix("").parts)) for path in inside]
    found = [value for name in names for value in vars(importlib.import_module(name)).values()]
    concrete = {kind.__name__ for kind in found if isinstance(kind, type) and issubclass(kind, Model)} - {"Model"}
    assert "ClassMixture" in concrete
    for path in set(SOURCES) - set(inside):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ("isinstance", "issubclass"):
                named = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                assert not named & concrete, f"{path.name}:{node.lineno}: {ast.unparse(node)}"


def test_what_a_subclass_must_give_is_abstract() -> None:
    assert [path.name for path in SOURCES if "must define" in path.read_text()] == []


BASES = {"genkern.data.transformer", "genkern.features.base"}
SCAFFOLDING = {"fit", "fit_transform", "transform", "position_features", "get_feature_names_out"}
SCAFFOLDING |= {"n_features_in_", "n_features_out_", "__sklearn_tags__", "__sklearn_is_fitted__"}
OWN_WAY = {  # what transformers do not leave to their base, and why
    ("CrossFit", "fit"): "takes groups",
    ("CrossFit", "fit_transform"): "takes groups",
    ("BlockNormalizer", "fit_transform"): "that of the embedding may be cheaper than its fit and transform, or differ",
    ("Views", "fit_transform"): "those of the embeddings may be cheaper than their fit and transform, or differ",
    ("Gram", "fit_transform"): "gives the symmetric matrix, which fit does not compute, at half the price",
}
CHECKS = {"check_is_fitted", "remember_width", "begin_fit", "refuse_unused", "validate_data"}
OWN_CHECKS = {  # of what a base checks for all
    ("base.py", "validate_data"): "of vectors or of models, as the kernel says",
    ("cross_fit.py", "remember_width"): "of a fit that takes groups",
    ("cross_fit.py", "check_is_fitted"): "of embeddings_of, which others have not",
    ("class_models.py", "refuse_unused"): "only if there is no model per class",
}


def test_every_public_transformer_leaves_its_scaffolding_to_the_base() -> None:
    transformers = [value for _, value in PUBLIC if inspect.isclass(value) and hasattr(value, "transform")]
    assert len(transformers) > 25
    assert not [value for value in transformers if not issubclass(value, Transformer)]
    classes = {own for value in transformers for own in value.__mro__ if own.__module__.startswith("genkern.")}
    found = {
        (own.__name__, name) for own in classes if own.__module__ not in BASES for name in SCAFFOLDING & {*vars(own)}
    }
    assert found == set(OWN_WAY)


def test_transformers_leave_checks_of_widths_and_readiness_to_the_base() -> None:
    found = set()
    for path, tree in zip(SOURCES, map(tree_of, SOURCES)):
        module = ".".join(path.with_suffix("").parts[-3:])
        if path.parent.name in ("features", "preprocess", "kernels", "gram") and module not in BASES:
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            found |= {(path.name, name) for name in map(ast.unparse, calls) if name in CHECKS}
    assert found == set(OWN_CHECKS)


def forbidden(rule: tuple[Any, ast.expr]) -> bool:
    """Say whether a flag, as a keyword or in a dictionary of flags, is one that compiled code must not have."""
    name, value = rule
    return name in ("fastmath", "parallel") and not (isinstance(value, ast.Constant) and value.value is False)


def test_all_decorators_of_compiled_code_are_known() -> None:
    source = tree_of(next(path for path in SOURCES if path.name == "jit.py"))
    made = {node.name for node in source.body if isinstance(node, ast.FunctionDef) and "Function" in ast.unparse(node)}
    assert made - {"_compiled", "_part"} == {"jit", "kernel", "part", "inlined"}  # of Function -> Function
    used: dict[str, int] = {}
    for path, tree in zip(SOURCES, map(tree_of, SOURCES)):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for name in decorators(node) & (decorators(node) if "core" in path.parts else COMPILING):
                    used[name] = used.get(name, 0) + 1
    assert set(used) == COMPILING | OTHERS
    assert used["part"] > 100  # it is the most frequent one


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_source_keeps_the_house_rules(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES
    for node in ast.walk(tree_of(path)):
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


@pytest.mark.parametrize("path", SOURCES, ids=[path.name for path in SOURCES])
def test_docstrings_and_comments_are_no_riddles(path: Path) -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree_of(path)) if isinstance(node, documented)]
    with path.open("rb") as lines:
        texts += [token.string for token in tokenize.tokenize(lines.readline) if token.type == tokenize.COMMENT]
    assert not [found.group() for text in texts for found in RIDDLES.finditer(" ".join(text.split()))]


def test_core_imports_nothing_of_ours() -> None:
    for path, tree in zip(SOURCES, map(tree_of, SOURCES)):
        if path.parent.name != "core":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("genkern"):
                assert node.module.startswith("genkern.core"), f"{path.name}:{node.lineno}"
