"""What the tests reach, for mutate.py: a plugin of pytest that keeps durations, and how what it recorded is asked.

Without compilation a few cases of each test are recorded, and only those that take some seconds at most.
"""

import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".mutants"
OTHER_TESTS = ("test_package.py", "test_docs.py")  # of the sources, of the pages
CASES, LONGEST = 3, 1.5  # without compilation: cases of each test, and seconds of a case
LEFT = 75  # the exit code of a process that leaves a test that cannot be left
PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def pytest_collection_modifyitems(items):
    """Keep a few cases of each test without compilation, and what an earlier process of the same file has not begun."""
    kept, seen = Path(os.environ["MUTATE_DURATIONS"]), Counter()
    begun = {json.loads(line)["test"] for line in kept.read_text().splitlines()} if kept.exists() else set()
    for item in list(items):
        seen[function_of(item.nodeid)] += 1
        if (PLAIN and seen[function_of(item.nodeid)] > CASES) or item.nodeid in begun:
            items.remove(item)


def write(test, **found):
    """Write down something of a test."""
    with Path(os.environ["MUTATE_DURATIONS"]).open("a") as file:
        file.write(json.dumps({"test": test, **found}) + "\n")


def pytest_runtest_logreport(report):
    write(report.nodeid, seconds=report.duration, outcome=report.outcome)


reached = set()  # code of functions that ran


def trace(frame, event, arg):
    reached.add(frame.f_code)


def stop(*_):
    """Skip a test that takes too long; if it cannot be left, leave the process."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(LEFT))
    signal.setitimer(signal.ITIMER_REAL, 10 * LONGEST)
    pytest.skip("too long without compilation")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Keep what functions of ``core`` a test calls without compilation; compiled ones, coverage tells."""
    reached.clear()
    write(item.nodeid, seconds=0.0, outcome="begun")
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        places = {(os.path.relpath(code.co_filename), code.co_firstlineno) for code in set(reached)}
        write(item.nodeid, reached=sorted(place for place in places if place[0].startswith("genkern/core")))


@pytest.hookimpl(wrapper=True)
def limited():
    """Run a part of a test, without compilation for some time at most."""
    if not PLAIN:
        return (yield)
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0.0)


pytest_runtest_setup = pytest_runtest_call = limited


def function_of(test):
    """Return the name of a test without its case."""
    return test.partition("[")[0]


def record_news(jobs):
    """Record what the tests of the copy reach: all if the package is new, else those of new test files."""
    kept, state = HOME / "state", {}
    for path in [*sorted((HOME / "genkern").rglob("*.py")), *sorted((HOME / "tests").glob("*.py"))]:
        if path.name not in (*OTHER_TESTS, "mutate.py", "mutate_map.py"):
            state[str(path.relative_to(HOME))] = hashlib.sha256(path.read_bytes()).hexdigest()
    old = json.loads(kept.read_text()) if kept.exists() else {}
    news = [path for path in state if state[path] != old.get(path)]
    whole = any(not path.startswith("tests/test_") for path in news)
    for compiled in (True, False) if news else ():
        record(compiled, jobs, [] if whole else news)
    kept.write_text(json.dumps(state))


def record(compiled, jobs, files):
    """Run test files of the copy, or all; keep what each test reaches and how long it takes."""
    name, parts = "compiled" if compiled else "plain", HOME / "parts"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    every = [str(path.relative_to(HOME)) for path in sorted((HOME / "tests").glob("test_*.py"))]
    chosen = [file for file in files or every if Path(file).name not in OTHER_TESTS]
    with ThreadPoolExecutor(jobs) as pool:
        lines = [line for some in pool.map(lambda file: record_file(file, compiled, parts), chosen) for line in some]
    keep(name, lines, files)
    if compiled:
        data = coverage.CoverageData(HOME / "map.compiled")
        _ = data.read() if files else data.erase()
        for part in sorted(parts.glob("map*")):
            one = coverage.CoverageData(part)
            one.read()
            data.update(one)
        data.write()


def keep(name, lines, files):
    """Keep how long tests that passed took, and what they called, with what is known of other files."""
    seconds, outcomes, calls = Counter(), defaultdict(set), {}
    for line in lines:
        if "reached" in line:
            calls[line["test"]] = line["reached"]
        else:
            seconds[line["test"]] += line["seconds"]
            outcomes[line["test"]].add(line["outcome"])
    passed = [test for test in seconds if outcomes[test] == {"begun", "passed"}]
    for what, table in (("durations", seconds), ("calls", calls)):
        kept = HOME / f"{what}.{name}"
        old = json.loads(kept.read_text()) if files and kept.exists() else {}
        old = {test: value for test, value in old.items() if test.partition("::")[0] not in files}
        kept.write_text(json.dumps(old | {test: table[test] for test in passed if test in table}))


def record_file(file, compiled, parts):
    """Return what the tests of a file write down; what coverage tells of compiled ones lies in a folder."""
    stem = Path(file).stem
    kept = parts / f"written.{stem}"
    command = [sys.executable, "-m", "pytest", "-qq", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-p", "mutate_map", *(["--cov=genkern", "--cov-context=test", "--cov-report="] if compiled else [])]
    environment = {**os.environ, "MUTATE_DURATIONS": str(kept), "NUMBA_DISABLE_JIT": str(int(not compiled))}
    environment["COVERAGE_FILE"] = str(parts / f"map.{stem}")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for _ in range(20):  # as often as a test that cannot be left ends the process
        if subprocess.run([*command, file], cwd=HOME, env=environment, check=False, **quiet).returncode != LEFT:
            break
    print(f"recorded {file}", flush=True)
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


@cache
def durations(compiled):
    """Return the seconds of each test that passed."""
    return json.loads((HOME / f"durations.{'compiled' if compiled else 'plain'}").read_text())


@cache
def contexts(path, compiled):
    """Return the tests that reach each line of a file; without compilation, the function that it is in."""
    found = defaultdict(set)
    if compiled:
        data = coverage.CoverageData(HOME / "map.compiled")
        data.read()
        for line, names in data.contexts_by_lineno(str(HOME / path)).items():
            found[line] = {name.rpartition("|")[0] for name in names}
        return found
    tests = defaultdict(set)
    for test, calls in json.loads((HOME / "calls.plain").read_text()).items():
        for file, line in calls:
            if file == str(path):
                tests[line].add(test)
    for node in ast.walk(ast.parse(sources()[path])):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            for line in range(node.lineno, node.end_lineno + 1):
                found[line] |= tests[first]
    return found


def reaching(places, compiled):
    """Return the tests that reach one of some places {path: lines}, in the order in which they are run."""
    seconds, found = durations(compiled), set()
    for path, lines in places.items():
        known = contexts(path, compiled)
        found.update(*(known.get(line, ()) for line in lines))
    return in_turn({test: seconds[test] for test in found if test in seconds})


def in_turn(seconds):
    """Return tests, the quickest first, but the second case of each test after the first of all."""
    rank, turn = Counter(), {}
    for test in sorted(seconds, key=seconds.get):
        turn[test] = rank[function_of(test)]
        rank[function_of(test)] += 1
    return sorted(seconds, key=lambda test: (turn[test], seconds[test]))


def places_of(path, nodes):
    """Return the lines {path: lines} by which tests reach the last of some nodes, each inside the one before."""
    functions = [i for i, node in enumerate(nodes) if isinstance(node, ast.FunctionDef)]
    if functions and nodes[functions[-1] + 1] in nodes[functions[-1]].body:
        return {path: lines_of([node for node in nodes if isinstance(node, ast.stmt)][-1])}
    if functions:  # what is said on the head of a function counts where it runs
        body = nodes[functions[-1]].body
        return {path: range(body[0].lineno, body[-1].end_lineno + 1)}
    statement = next(node for node in nodes if isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef))
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return lines_naming(names) if names else {path: range(1, 10**4)}


def lines_of(statement):
    """Return the lines of a statement, of its head only where it has a body."""
    last = statement.body[0].lineno - 1 if hasattr(statement, "body") else statement.end_lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def lines_naming(names):
    """Return the lines {path: lines} of the package with one of some names."""
    found, pattern = defaultdict(list), re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    for path, text in sources().items():
        if pattern.search(text):
            found[path] = [i for i, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    return found


@cache
def sources():
    """Return the texts of the package."""
    return {path.relative_to(HOME): path.read_text() for path in sorted((HOME / "genkern").rglob("*.py"))}


@cache
def definitions():
    """Return the functions of ``core`` by name, as (path, text)."""
    found = defaultdict(list)
    for path, text in sources().items():
        if path.parts[1] == "core":
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    found[node.name].append(ast.get_source_segment(text, node))
    return found


def callers_of(name):
    """Return the lines {path: lines} outside of ``core`` that name a function of it, or one that leads to it."""
    names, waiting = set(), {name}
    while waiting:
        names |= waiting
        pattern = re.compile(rf"\b({'|'.join(waiting)})\b")
        waiting = {caller for caller, texts in definitions().items() if any(map(pattern.search, texts))} - names
    return {path: lines for path, lines in lines_naming(names).items() if path.parts[1] != "core"}
