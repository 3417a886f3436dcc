"""Mutation testing: change one thing in a copy of the package, run the tests that may see it, list what none saw.

A mutant is shown to the test files that speak most of its module and of those that import it, until one fails; one that
takes too long says nothing, unless it is quick without the mutant. Mutants of ``core`` run without compilation. Texts
(messages, annotations, representations) are left alone. Survivors are to be judged: some change nothing that matters.
"""

import argparse
import ast
import compileall
import copy
import importlib
import math
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".mutants"
FOLDERS = [
    "models",
    "features",
    "kernels",
    "models",
    "affinities",
    "learn",
    "data",
    "preprocess",
    "core",
]  # mutants come in turn
OTHER_TESTS = {"test_package.py", "test_docs.py", "test_cost.py", "test_sklearn.py"}  # of the sources, of all, or slow
HEAVY = ("numba", "pandas", "pytest", "scipy.stats", "sklearn.linear_model", "sklearn.pipeline", "sklearn.svm")

PAIRS = [pair.split() for pair in ("Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "Mult Div")]
OPERATORS = {getattr(ast, a): getattr(ast, b) for pair in PAIRS for a, b in (pair, pair[::-1])}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}


def changed(node):
    """Return a copy of a node with one change of its own, none of its children; None where there is none to make."""
    new = copy.copy(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        new.ops = [OPERATORS[type(node.ops[0])]()]
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        new.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        new.value = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value or 1.0
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare):
        new.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        new.value = ast.Constant(None)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        new.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        new.attr = NAMES[node.attr]
    else:
        return None
    return new


def is_text(node, field):
    """Say whether a part of the tree speaks to people or to type checkers only."""
    return (
        field in ("annotation", "returns", "decorator_list", "bases")
        or isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__", "__sklearn_tags__"))
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        or (isinstance(node, ast.Call) and bool(re.search(r"warn|cast$|TypeVar|Error$", ast.unparse(node.func))))
    )


def sites(node, route=()):
    """Yield the places of a tree that can be changed: the way to a node, its line, the change."""
    for field, value in ast.iter_fields(node):
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or is_text(child, field):
                continue
            here, new = (*route, (field, i if isinstance(value, list) else None)), changed(child)
            if new is not None:
                texts = (ast.unparse(getattr(tree, "test", tree)) for tree in (child, new))
                yield here, child.lineno, "  ->  ".join(texts)
            yield from sites(child, here)


def mutated(source, route):
    """Return a source with the node at the end of a route changed."""
    tree = node = ast.parse(source)
    for field, i in route[:-1]:
        node = getattr(node, field) if i is None else getattr(node, field)[i]
    field, i = route[-1]
    value = getattr(node, field)
    setattr(node, field, changed(value) if i is None else [*value[:i], changed(value[i]), *value[i + 1 :]])
    return ast.unparse(ast.fix_missing_locations(tree))


def sample(count, seed, folders):
    """Return mutants (path, route, line, what), of one folder after the other."""
    rng, groups, chosen = random.Random(seed), defaultdict(list), {}
    for path in sorted((ROOT / "genkern").rglob("*.py")):
        if path.stem not in ("demo", "latex", "progress", "plots"):
            own = path.relative_to(ROOT)
            groups[(*own.parts[1:-1], ".")[0]] += [(own, *site) for site in sites(ast.parse(path.read_text()))]
    while len(chosen) < count:
        mutant = rng.choice(groups[folders[len(chosen) % len(folders)]])
        chosen.setdefault(mutant[:2], mutant)
    return list(chosen.values())


def ranked_files(module):
    """Return test files by how much they speak of a module's names and, less, of those of modules that import it."""
    files = [path for path in sorted((ROOT / "tests").glob("test_*.py")) if path.name not in OTHER_TESTS]
    texts = {path.name: path.read_text() for path in files}
    sources = {path: path.read_text() for path in (ROOT / "genkern").rglob("*.py") if path.name != "__init__.py"}
    dotted = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources}
    scores, level, seen = defaultdict(float), {module} & {*sources}, set()
    for depth in range(3):
        for path in level:
            weight = 3.0**-depth / len(level)
            for name in {dotted[path], *re.findall(r"^(?:class|def) (\w+)", sources[path], re.M)}:
                having = [file for file, text in texts.items() if re.search(rf"\b{re.escape(name)}\b", text)]
                for file in having:
                    scores[file] += weight * math.log(len(texts) / len(having))
            for file in texts:
                scores[file] += weight * len({*path.stem.split("_"), path.parent.name} & {*re.split(r"[_.]", file)})
        seen |= level
        level = {p for p, s in sources.items() if any(f"from {dotted[q]} import" in s for q in level)} - seen
    return sorted(texts, key=lambda file: -scores[file])


@cache
def passes(file, compiled, seconds):
    """Say whether a file passes, and in so many seconds, as it is."""
    return run(file, compiled, seconds) == 0


def run(file, compiled, seconds):
    """Return the exit code of pytest for a file of the copy, in a process of its own; None after so many seconds."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(HOME)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        sys.modules["numba"].config.DISABLE_JIT = int(not compiled)
        os._exit(sys.modules["pytest"].main(["-qx", "-p", "no:cacheprovider", "-m", "not slow", f"tests/{file}"]))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def verdict(path, route, options):
    """Return what became of a mutant, and by which file."""
    target, compiled, late = HOME / path, path.parts[1] != "core", []
    source = target.read_text()
    for file in ranked_files(ROOT / path)[: options.files]:
        try:
            target.write_text(mutated(source, route))
            code = run(file, compiled, options.seconds)
        finally:
            target.write_text(source)
        if code is None and not passes(file, compiled, options.seconds / 3):
            late.append(file)
        elif code != 0 and passes(file, compiled, 3 * options.seconds):
            return f"caught by {file}"
    return "survived" + f" (too slow: {', '.join(late)})" * bool(late)


def main():
    """Print the fate of each mutant, and the share that is caught."""
    parser = argparse.ArgumentParser()
    for name, default in (("count", 300), ("seed", 0), ("first", 0), ("files", 4), ("seconds", 120)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folders", nargs="*", default=FOLDERS)
    options = parser.parse_args()
    for folder in ("genkern", "tests"):
        shutil.rmtree(HOME / folder, ignore_errors=True)
        shutil.copytree(ROOT / folder, HOME / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", HOME)  # for pytest's settings
    # A mutant may have the size and the time of what it replaces, so that byte code is told by content.
    by_content = compileall.py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(HOME / "genkern", quiet=1, invalidation_mode=by_content)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(HOME), str(HOME / "tests")]
    os.environ["PYTHONPATH"], os.environ["CI"] = str(HOME), "1"
    _ = [importlib.import_module(name) for name in HEAVY]  # once for all mutants
    fates = []
    for path, route, line, what in sample(options.count, options.seed, options.folders)[options.first :]:
        fates.append(verdict(path, route, options))
        print(f"{fates[-1]}: {path}:{line}: {what}", flush=True)
    print(f"{sum(fate.startswith('caught') for fate in fates)} of {len(fates)} mutants caught")


if __name__ == "__main__":
    main()
