"""The embedded sets are what their attribution says; the synthetic problem is as hard as it claims."""

from __future__ import annotations

import hashlib
import itertools
import re
from importlib.resources import files

import numpy as np
import pytest

from genkern.datasets import (
    Dataset,
    load_japanese_vowels,
    load_splice_junctions,
    make_switching_systems,
    make_two_hmms,
    random_switching_lds,
    two_hmms,
)
from genkern.models.hmm.model import HMM


def test_splice_junctions() -> None:
    data = load_splice_junctions()
    assert len(data.X) == len(data.y) == len(data.ids) == 3186
    assert {len(window) for window in data.X} == {60}
    assert set("".join(data.X)) == set("ACGT")
    assert dict(zip(*np.unique(data.y, return_counts=True))) == {"EI": 767, "IE": 765, "N": 1654}
    assert data.ids[0] == "splice0001"
    assert data.split is None
    # The dinucleotides that define a junction: introns begin with GT and end with AG.
    after = np.array([window[30:32] for window in data.X])
    before = np.array([window[28:30] for window in data.X])
    assert (after[data.y == "EI"] == "GT").mean() > 0.98
    assert (before[data.y == "IE"] == "AG").mean() > 0.98


def test_japanese_vowels() -> None:
    data = load_japanese_vowels()
    assert data.X[0].dtype == np.float64
    assert {series.shape[1] for series in data.X} == {12}
    lengths = [len(series) for series in data.X]
    assert (len(lengths), min(lengths), max(lengths)) == (640, 7, 29)
    train, test = data.part("train"), data.part("test")
    assert dict(zip(*np.unique(train.y, return_counts=True))) == {str(k): 30 for k in range(1, 10)}
    assert [int((test.y == str(k)).sum()) for k in range(1, 10)] == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    assert train.X[0] is data.X[0]
    np.testing.assert_allclose(data.X[0][0, :2], [1.860936, -0.207383], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["splice_junctions.fasta.gz", "japanese_vowels.npz"])
def test_files_are_those_the_attribution_describes(name: str) -> None:
    folder = files("genkern.datasets")
    section = (folder / "README.md").read_text().split(f"## `{name}`")[1].split("\n## ")[0]
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert re.search(r"\*\*sha256\.\*\* `([0-9a-f]+)`", section).group(1) == digest  # type: ignore[union-attr]
    for word in ("Source", "Licence", "Cite", "Changes"):
        assert f"**{word}.**" in section


def test_dataset_unpacks_and_takes() -> None:
    data = make_two_hmms(n_per_class=3, length=5)
    X, y = data
    assert X is data.X
    assert y is data.y
    part = data.take([5, 0])
    assert [X[5], X[0]] == part.X
    assert list(part.y) == ["hurry", "linger"]
    assert part.ids == ["hurry003", "linger001"]
    assert list(data.classes) == ["hurry", "linger"]


def test_dataset_refuses_what_does_not_fit() -> None:
    data = make_two_hmms(n_per_class=2, length=5)
    with pytest.raises(ValueError, match="no official split"):
        data.part("train")
    with pytest.raises(ValueError, match="'which' parameter"):
        load_japanese_vowels().part("validation")
    with pytest.raises(ValueError, match="'y': 1"):
        Dataset(["a", "b"], np.array([0]), ["1", "2"])


def log_prob(model: HMM, codes: np.ndarray) -> np.ndarray:
    """Return log-likelihoods by the plain forward recursion; codes (n, T)."""
    emit = model.emissions.probs  # type: ignore[attr-defined]
    alpha, total = model.start * emit[:, codes[:, 0]].T, np.zeros(len(codes))
    for t in range(codes.shape[1]):
        if t:
            alpha = (alpha @ model.transitions) * emit[:, codes[:, t]].T
        scale = alpha.sum(axis=1)
        total += np.log(scale)
        alpha /= scale[:, None]
    return total


def test_two_hmms_have_the_documented_bayes_error() -> None:
    models = two_hmms()
    data = make_two_hmms(n_per_class=12_000, random_state=1)
    codes = np.array([np.frombuffer(sequence.encode(), np.uint8) - ord("0") for sequence in data.X])
    odds = log_prob(models[0], codes) - log_prob(models[1], codes)
    error = np.mean((odds > 0) != (data.y == "linger"))
    assert 0.055 < error < 0.065  # the standard error is 0.0016


def test_two_hmms_emit_both_symbols_equally_often_at_every_position() -> None:
    for model in two_hmms():
        here = model.start
        for _ in range(5):
            np.testing.assert_allclose(here @ model.emissions.probs, [0.5, 0.5], rtol=0, atol=1e-15)  # type: ignore[attr-defined]
            here = here @ model.transitions


def test_two_hmms_generator_follows_the_models() -> None:
    data = make_two_hmms(n_per_class=20_000, length=3, random_state=2)
    words = ["".join(word) for word in itertools.product("01", repeat=3)]
    for label, model in zip(("linger", "hurry"), two_hmms()):
        drawn = [word for word, its in zip(data.X, data.y) if its == label]
        expected = np.exp(log_prob(model, np.array([[int(c) for c in word] for word in words])))
        seen = np.array([drawn.count(word) for word in words]) / len(drawn)
        np.testing.assert_allclose(expected.sum(), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(seen, expected, rtol=0, atol=5 * 0.5 / np.sqrt(len(drawn)))


def test_generator_is_reproducible_and_checks_its_arguments() -> None:
    assert make_two_hmms(4, 6).X == make_two_hmms(4, 6, random_state=0).X
    assert make_two_hmms(4, 60).X != make_two_hmms(4, 60, random_state=1).X
    with pytest.raises(ValueError, match="'n_per_class' parameter of make_two_hmms"):
        make_two_hmms(0)
    with pytest.raises(ValueError, match="'length' parameter of make_two_hmms"):
        make_two_hmms(2, length=0)


def test_random_switching_systems_are_as_documented() -> None:
    drawn = [random_switching_lds(random_state=seed) for seed in range(200)]
    turns = np.array([model.systems.transition for model in drawn])
    radii = np.sqrt(np.linalg.det(turns))
    np.testing.assert_allclose(turns @ turns.swapaxes(-1, -2), radii[..., None, None] ** 2 * np.eye(2), atol=1e-12)
    assert 0.5 <= radii.min() < 0.51 < 0.99 < radii.max() <= 1.0
    np.testing.assert_allclose(radii.mean(), 0.75, atol=5 * 0.15 / np.sqrt(radii.size))
    angles = np.arctan2(turns[..., 1, 0], turns[..., 0, 0])
    np.testing.assert_allclose([angles.mean(), angles.std()], [0.0, np.pi / np.sqrt(3)], atol=0.3)
    for model in drawn[:5]:
        assert (model.n_regimes, model.n_states, model.n_channels) == (5, 2, 2)
        parts = model.systems.systems()
        assert (parts.C[0] == parts.C).all()  # what is seen does not depend on the regime
        for noise in (parts.Q, parts.R, parts.cov):
            np.testing.assert_array_equal(noise, np.broadcast_to(0.1 * np.eye(2), noise.shape))
    starts = np.array([model.start for model in drawn])
    np.testing.assert_allclose(starts.var(axis=0), 4 / (25 * 6), atol=0.01)  # of a uniform point of the simplex


def test_series_of_switching_systems() -> None:
    data = make_switching_systems(6, n_per_system=2, length=7, random_state=3)
    assert [series.shape for series in data.X] == [(7, 2)] * 12
    assert data.groups is not None
    assert data.groups.tolist() == np.repeat([f"system{i:02d}" for i in range(1, 7)], 2).tolist()
    assert data.y.tolist() == ["first"] * 6 + ["second"] * 6
    assert data.ids is not None
    assert (len(set(data.ids)), data.ids[3]) == (12, "system02-2")
    again, other = (make_switching_systems(6, 2, 7, random_state=seed) for seed in (3, 4))
    assert all((a == b).all() for a, b in zip(data.X, again.X))
    assert not any((a == b).all() for a, b in zip(data.X, other.X))
    rng = np.random.default_rng(3)
    first = random_switching_lds(5, rng).sample(2, length=7, rng=rng)
    np.testing.assert_array_equal(np.array(data.X[:2]), np.array(first))
    with pytest.raises(ValueError, match="'n_systems' must be even"):
        make_switching_systems(5)
