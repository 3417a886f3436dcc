"""The defaults that the documentation states are those of the signatures."""

import ast
import inspect
import re

import pytest

import genkern

STATED = r"^ *(\w+(?:, \w+)*) : .*, default=(.+)$"
IN_WORDS = {("KernelRidgeClassifierCV", "alphas"), ("SetBhattacharyya", "kernel"), ("Spectrum", "dtype")}


def stated():
    """Yield (public name, parameter, default as text) of the docstrings."""
    for name in dir(genkern):
        for names, default in re.findall(STATED, getattr(genkern, name).__doc__ or "", re.M):
            yield from ((name, parameter, default) for parameter in names.split(", "))


@pytest.mark.parametrize(("name", "parameter", "default"), [case for case in stated() if case[:2] not in IN_WORDS])
def test_stated_defaults_are_those_of_the_signature(name, parameter, default):
    value = inspect.signature(getattr(genkern, name)).parameters[parameter].default
    assert value == (2**30 if default == "2**30" else ast.literal_eval(default))


def test_many_defaults_are_stated():
    assert len(list(stated())) > 250
