"""Mutation testing: change one thing in a copy of the package, run the tests that reach it, list what none saw.

Once for a state of the sources, the suite is run twice with coverage, compiled and not, and what each test reaches is
kept. A mutant is then shown to the tests that reach its line, the quickest first, until one fails. Mutants of ``core``
run without compilation; what is left of them is shown to the compiled tests whose calls may lead there. A mutant lives
in the memory of a process of its own, and its compiled code in a folder of its own. Every outcome is kept, so that a
run can be stopped and resumed. Texts (messages, annotations, representations) are left alone. Survivors are to be
judged: some change nothing that matters.
"""

import argparse
import ast
import compileall
import copy
import importlib
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
from collections import defaultdict
from importlib.machinery import SourceFileLoader
from pathlib import Path

from mutate_map import HOME, ROOT, callers_of, durations, places_of, reaching, record_news

HEAVY = ("numba", "pandas", "scipy.stats", "sklearn.linear_model", "sklearn.pipeline", "sklearn.svm")

FAULT = 70  # the exit code of a process that could not run pytest

PAIRS = [pair.split() for pair in ("Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "Mult Div")]
OPERATORS = {getattr(ast, a): getattr(ast, b) for pair in [*PAIRS, ["And", "Or"]] for a, b in (pair, pair[::-1])}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}


def changed(node):
    """Return a copy of a node with one change of its own, none of its children; None where there is none to make."""
    new = copy.copy(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        new.ops = [OPERATORS[type(node.ops[0])]()]
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OPERATORS:
        new.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        new.value = not node.value
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        new.value = node.value + 1 if isinstance(node.value, int) else 2.0 * node.value or 1.0
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return node.operand
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.BoolOp):
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


def along(tree, route):
    """Return the nodes on the way to a node, itself the last."""
    nodes = [tree]
    for field, i in route:
        nodes.append(getattr(nodes[-1], field) if i is None else getattr(nodes[-1], field)[i])
    return nodes


def mutated(source, route):
    """Return the tree of a source with the node at the end of a route changed."""
    tree = ast.parse(source)
    *_, parent, node = along(tree, route)
    field, i = route[-1]
    if i is None:
        setattr(parent, field, changed(node))
    else:
        getattr(parent, field)[i] = changed(node)
    return ast.fix_missing_locations(tree)


def sample(count, seed, under):
    """Return mutants (path, route, line, what): one change each of lines drawn at random."""
    lines = defaultdict(list)
    for path in sorted((HOME / under).rglob("*.py")):
        for site in sites(ast.parse(path.read_text())):
            lines[path.relative_to(HOME), site[1]].append(site)
    rng = random.Random(seed)
    return [(path, *rng.choice(lines[path, line])) for path, line in rng.sample(sorted(lines), count)]


class Changed(SourceFileLoader):
    """Loads one module of the copy with a change; others as they are."""

    def __init__(self, path, tree):
        self.name, self.tree = ".".join(path.with_suffix("").parts).removesuffix(".__init__"), tree
        super().__init__(self.name, str(HOME / path))

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, name):
        return compile(self.tree, self.path, "exec")


def keep_apart(path, own):
    """Let what is compiled of a mutant, and of all that may call it, lie in a folder of its own."""
    jit, config = importlib.import_module("genkern.core.jit"), sys.modules["numba"].config
    compiled, name, common = jit._compiled, ".".join(path.with_suffix("").parts[2:]), config.CACHE_DIR

    def apart(function, flags):
        module = jit._module_of(Path(function.__code__.co_filename))
        config.CACHE_DIR = str(own) if name in jit._reached(module) else common
        try:
            return compiled(function, flags)
        finally:
            config.CACHE_DIR = common

    jit._compiled = apart


class Failures:
    """Writes down the first test that fails."""

    def __init__(self, path):
        self.path = path

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.path.write_text(report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.path.write_text(f"{report.nodeid} (on import)")


def show(path, tree, tests, compiled, own, seconds):
    """Run tests with a mutant, or without if there is none, in this process, and leave it."""
    os.chdir(HOME)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    sys.modules["numba"].config.DISABLE_JIT = int(not compiled)
    os.environ["NUMBA_DISABLE_JIT"] = str(int(not compiled))
    for stream in (1, 2):
        os.dup2(os.open(own / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    if tree is not None:
        sys.meta_path.insert(0, Changed(path, tree))
    if tree is not None and compiled and path.parts[1] == "core":
        keep_apart(path, own)
    flags = ["-qx", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:pytest_cov", "-m", "not slow"]
    os._exit(sys.modules["pytest"].main([*flags, *tests], plugins=[Failures(own / "failure")]))


def run(path, tree, tests, compiled, own, seconds):
    """Return the test that fails with a mutant, in a process of its own, or "no end" if it takes long, or None."""
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(mode=0o700, exist_ok=True)
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            show(path, tree, tests, compiled, own, seconds)
        except BaseException as error:
            (own / "output").write_text(repr(error))
        finally:
            os._exit(FAULT)
    end, status = time.monotonic() + 8 * seconds, None
    while status is None and time.monotonic() < end:
        ended, code = os.waitpid(child, os.WNOHANG)
        status = code if ended else time.sleep(0.05)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    failure = (own / "failure").read_text() if (own / "failure").exists() else None
    output = (own / "output").read_text() if (own / "output").exists() else ""
    shutil.rmtree(own)
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return "no end"
    if status == FAULT << 8:
        raise RuntimeError(f"a process of {path} broke: {output}")
    return failure or (f"exit {os.waitstatus_to_exitcode(status)}" if status else None)


def within(tests, compiled, seconds):
    """Return the first of some tests that take so many seconds together, and how many these are."""
    total, chosen = 0.0, []
    for test in tests:
        total += durations(compiled)[test]
        if chosen and total > seconds:
            break
        chosen.append(test)
    return chosen, min(total, seconds)


def verdict(path, route, options, own):
    """Return what became of a mutant, and by which test."""
    source = (HOME / path).read_text()
    nodes, core = along(ast.parse(source), route), path.parts[1] == "core"
    places, shown = places_of(path, nodes), []
    stages = [(not core, reaching(places, not core))]
    if core:
        functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
        more = callers_of(functions[0]) if functions else {}
        stages.append((True, reaching(places, True) + reaching(more, True)))
    for compiled, tests in stages:
        chosen, expected = within(dict.fromkeys(tests), compiled, options.seconds)
        if not chosen:
            continue
        spare = 300 if core and compiled else 30
        seconds = int(spare + 4 * expected)
        failure = run(path, mutated(source, route), chosen, compiled, own, seconds)
        if failure is not None:
            slow = failure == "no end" and core and compiled
            clear = "::" in failure or (not slow and run(path, None, chosen, compiled, own, seconds) is None)
            return {"fate": "caught" if clear else "unclear", "by": failure, "how": "compiled" if compiled else "plain"}
        shown.append(f"{len(chosen)} of {len(tests)} tests, {'compiled' if compiled else 'plain'}")
    return {"fate": "survived" if shown else "not reached", "by": "; ".join(shown), "how": ""}


def prepare(jobs):
    """Make a copy of the package and its tests, and record what these reach if the sources are new."""
    for folder in ("genkern", "tests"):
        shutil.rmtree(HOME / folder, ignore_errors=True)
        shutil.copytree(ROOT / folder, HOME / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", HOME)  # for pytest's settings
    (HOME / "cache").mkdir(mode=0o700, exist_ok=True)
    compileall.compile_dir(HOME / "genkern", quiet=1)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(HOME), str(HOME / "tests")]
    os.environ |= {"PYTHONPATH": f"{HOME}:{HOME / 'tests'}", "CI": "1", "NUMBA_CACHE_DIR": str(HOME / "cache")}
    record_news(jobs)


def judge(i, mutant, kept, options, worker):
    """Keep and print the fate of a mutant, unless another process has taken it."""
    path, route, line, what = mutant
    try:
        file = (kept / f"{i:04}").open("x")
    except FileExistsError:
        return
    start = time.monotonic()
    fate = verdict(path, route, options, HOME / f"own{worker}")
    fate |= {"where": f"{path}:{line}", "what": what, "seconds": round(time.monotonic() - start)}
    with file:
        json.dump(fate, file)
    print("{fate}: {where}: {what} [{how} {by}]".format(**fate), flush=True)


def unreliable(fates):
    """Return the tests that caught a mutant and fail without one, too."""
    found = []
    for how in ("compiled", "plain"):
        tests = sorted({fate["by"] for fate in fates if fate["how"] == how and "::" in fate["by"]})
        while tests and (failure := run(Path(), None, tests, how == "compiled", HOME / "own", 3600)):
            found.append(failure)
            tests = [test for test in tests if test != failure] if failure in tests else []
    return found


def main():
    """Print the fate of each mutant, and the share that is caught."""
    parser = argparse.ArgumentParser()
    for name, default in (("count", 300), ("seed", 0), ("seconds", 30), ("jobs", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--under", default="genkern")
    options = parser.parse_args()
    HOME.mkdir(exist_ok=True)
    prepare(options.jobs)
    _ = [importlib.import_module(name) for name in ("pytest", *HEAVY)]  # once for all mutants
    kept = HOME / f"fates-{options.seed}-{options.count}-{options.under.replace('/', '.')}"
    kept.mkdir(exist_ok=True)
    for file in kept.iterdir():
        if not file.stat().st_size:  # begun and not ended, when the last run was stopped
            file.unlink()
    mutants = sample(options.count, options.seed, options.under)
    children = []
    for worker in range(options.jobs):
        child = os.fork()
        if child == 0:
            for i, mutant in enumerate(mutants):
                judge(i, mutant, kept, options, worker)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    fates = [json.loads(file.read_text()) for file in sorted(kept.iterdir())]
    for test in unreliable(fates):
        print(f"fails without a mutant: {test}")
    print(f"{sum(fate['fate'] == 'caught' for fate in fates)} of {len(fates)} mutants caught")


if __name__ == "__main__":
    main()
