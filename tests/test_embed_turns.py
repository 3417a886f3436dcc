"""Turns: against the sums written out, and what rotations and mirrors do to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genkern import Turns


def paths(seed, lengths=(1, 4, 30)):
    """Return random steps."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, 2)) for length in lengths]


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize(("lag", "width"), [(1, 1), (2, 3), (5, 5), (40, 7)])
def test_turns_by_direct_sums(lag, width, circular):
    for steps, turns in zip(paths(0), Turns(lag, width, circular).fit_transform(paths(0))):
        length = len(steps)

        def at(t, length=length):
            return t % length if circular else min(max(t, 0), length - 1)

        smooth = [sum(complex(*steps[at(t + j - width // 2)]) for j in range(width)) / width for t in range(length)]
        wanted = [smooth[at(t + lag)] * smooth[t].conjugate() for t in range(length)]
        np.testing.assert_allclose(turns[:, 0] + 1j * turns[:, 1], wanted, rtol=0, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.floats(0, 2 * np.pi), st.booleans())
def test_rotated_paths_have_the_same_turns(seed, angle, circular):
    X, recipe = paths(seed), Turns(3, 3, circular)
    rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    for here, there in zip(recipe.fit_transform(X), recipe.fit_transform([x @ rotation for x in X])):
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-10)
    for here, there in zip(recipe.fit_transform(X), recipe.fit_transform([x * [1, -1] for x in X])):
        np.testing.assert_allclose(there, here * [1, -1], rtol=0, atol=1e-12)


def test_missing_steps():
    steps = np.column_stack([np.arange(1.0, 8.0), np.zeros(7)])
    steps[2] = np.nan
    (turns,) = Turns(lag=1, width=3).fit_transform([steps])
    np.testing.assert_allclose(turns[0, 0], (1 + 1 + 2) / 3 * (1 + 2) / 2, rtol=1e-12)
    steps[3, 1] = np.nan  # a step that is half missing is missing
    (turns,) = Turns(lag=1, width=3).fit_transform([steps])
    assert np.isnan(turns[1:4]).all()
    assert np.isfinite(turns[[0, 4, 5, 6]]).all()


@pytest.mark.parametrize(
    ("options", "message"), [({"lag": 0}, "'lag'"), ({"width": 4}, "odd"), ({"width": 0}, "'width'")]
)
def test_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Turns(**options).fit(paths(0))


def test_paths_have_two_channels():
    with pytest.raises(ValueError, match="Turns: object 0 has 3 channels"):
        Turns().fit([np.zeros((4, 3))])
