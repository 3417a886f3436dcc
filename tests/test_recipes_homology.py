"""The recipe for homology: profiles, alignments and words of proteins in one ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from genkern import FisherScore, ProfileHMM, ProfileHMMEstimator, explain, load, save
from genkern.kernels.divergences import NotPositiveWarning
from genkern.preprocess import cross_fit
from genkern.recipes import homology, symbols
from genkern.recipes.homology_parts import Landmarks, ProfileOdds, ProfileScores

PARTS = ("symbols", "alignment", "scores", "odds")
RARE = "CHWMYFQN"  # letters of the columns that are conserved


def superfamily(seed: int, n_families: int = 3, columns: int = 24) -> list[ProfileHMM]:
    """Return profiles of families that share every third column."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(20, 0.3), columns)
    common[::3] = np.eye(20)[["ACDEFGHIKLMNPQRSTVWY".index(letter) for letter in RARE]] * 0.9 + 0.005
    found = []
    for _ in range(n_families):
        match = rng.dirichlet(np.full(20, 0.3), columns)
        match[::3] = common[::3]
        found.append(ProfileHMM(match, alphabet="protein").with_flanks("glocal", flank=8.0))
    return found


def sampled(n: int, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return members of three families of one superfamily, shuffled members of others, labels, and families."""
    rng = np.random.default_rng(seed)
    X = [x for i, model in enumerate(superfamily(0)) for x in model.sample(n, rng=seed + i)]
    others = [x for i, model in enumerate(superfamily(1, 6)) for x in model.sample(n, rng=seed + 10 + i)]
    others = ["".join(rng.permutation(list(x))) for x in others]
    return X + others, np.repeat([True, False], [len(X), len(others)]), np.repeat(np.arange(9), n)


def small(**settings: Any) -> Any:
    """Return the recipe without the kernels of words, which take longest."""
    return homology(**{"cv": 3, **settings}).set_params(kernels__symbols="drop")


@pytest.fixture(scope="module")
def data() -> Any:
    X, y, families = sampled(8, seed=0)
    known = families != 0  # one family of the superfamily is new, and one of the others
    known &= families != 3
    return [x for x, own in zip(X, known) if own], y[known], families[known], [x for x, own in zip(X, known) if not own]


@pytest.fixture(scope="module")
def fitted(data: Any) -> Any:
    X, y, families, _ = data
    return small().fit(X, y, groups=families)


def test_a_new_family_is_ranked_above_others(data: Any, fitted: Any) -> None:
    new = data[3]
    truth = np.repeat([True, False], len(new) // 2)
    assert roc_auc_score(truth, fitted.decision_function(new)) > 0.95
    probabilities = fitted.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.argsort(probabilities[:, 1]), np.argsort(fitted.decision_function(new)))


@pytest.mark.parametrize("part", PARTS[1:])
def test_each_part_ranks_alone(data: Any, part: str) -> None:
    X, y, families, new = data
    others = {f"kernels__{name}": "drop" for name in PARTS if name != part}
    alone = homology(cv=3).set_params(**others).fit(X, y, groups=families)
    assert list(alone["kernels"].factors_) == [part]
    assert roc_auc_score(np.repeat([True, False], len(new) // 2), alone.decision_function(new)) > 0.8


def test_symbols_are_those_of_their_recipe() -> None:
    ours = dict(homology(random_state=3)["kernels"].transformer_list)["symbols"]
    assert str(ours.get_params()) == str(symbols("protein", random_state=3)["kernels"].get_params())


def test_parts_have_their_weights(data: Any, fitted: Any) -> None:
    X = data[0]
    kernels = fitted["kernels"]
    features = {name: kernels.named_transformers[name].transform(X) for name in PARTS[1:]}
    for part in features.values():  # of unit trace
        assert ((part - part.mean(axis=0)) ** 2).sum() / len(X) == pytest.approx(1.0)
    expected = np.hstack([features["alignment"], features["scores"], np.sqrt(0.1) * features["odds"]]) / np.sqrt(2.1)
    np.testing.assert_allclose(kernels.transform(X), expected, atol=1e-12)


def test_profiles_of_training_objects_have_not_seen_their_families(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spy on all fits: what a sequence is scored by was fitted without its family."""
    X, y, families, new = data
    seen: list[Any] = []
    original = ProfileHMMEstimator.fit

    def spy(self: Any, packed: Any, **given: Any) -> Any:
        found = original(self, packed, **given)
        seen.append((found.model_, {tuple(piece) for piece in packed.pieces()}))
        return found

    monkeypatch.setattr(ProfileHMMEstimator, "fit", spy)
    recipe = small().fit(X, y, groups=families)
    parts = dict(recipe["kernels"].transformer_list)
    for step in (parts["scores"]["columns"], parts["odds"]["bits"]):
        for x, positive, family, own in zip(X, y, families, step.embeddings_of(X)):
            embedding = getattr(own, "embedding_", own)
            ((_, learnt),) = [each for each in seen if each[0] is embedding.models_[0]]
            mates = {tuple(embedding.models_[0].pack([X[i]]).values) for i in np.flatnonzero(y & (families == family))}
            assert not mates & learnt
            assert learnt
            assert not positive or tuple(embedding.models_[0].pack([x]).values) in mates
        (fresh,) = step.embeddings_of(new[:1])
        embedding = getattr(fresh, "embedding_", fresh)
        ((_, learnt),) = [each for each in seen if each[0] is embedding.models_[0]]
        assert learnt == {tuple(embedding.models_[0].pack([x]).values) for x, positive in zip(X, y) if positive}


def test_features_are_those_of_the_models(data: Any, fitted: Any) -> None:
    """New objects: HMMER's scores of one passage, and Fisher scores with signed roots and unit length."""
    new, parts = data[3], dict(fitted["kernels"].transformer_list)
    bits = parts["odds"]["bits"]
    np.testing.assert_array_equal(bits.transform(new)[:, 0], bits.embedding_.models_[0].hmmer_score(new, hits="one"))
    columns = parts["scores"]["columns"]
    (model,) = columns.embedding_.embedding_.models_
    plain = FisherScore(model, blocks=["match"]).fit(new).transform(new)
    roots = np.sign(plain) * np.sqrt(np.abs(plain))
    expected = roots / np.linalg.norm(roots, axis=1, keepdims=True)
    np.testing.assert_allclose(columns.transform(new), expected, atol=1e-12)
    for fold in columns.fold_embeddings_:  # columns are the same in all folds
        assert fold.embedding_.models_[0].n_columns == model.n_columns


def test_landmarks_are_the_rarest_first(data: Any, fitted: Any) -> None:
    X, y, _, new = data
    kernel = dict(fitted["kernels"].transformer_list)["alignment"]["landmarks"].kernel
    some = Landmarks(kernel, n_landmarks=int(y.sum()) + 5).fit(X, y)
    assert len(some.landmark_indices_) == y.sum() + 5
    assert set(np.flatnonzero(y)) <= set(some.landmark_indices_)
    assert [X[i] for i in some.landmark_indices_] == list(some.landmarks_)
    every = Landmarks(kernel).fit(X, y)
    with pytest.warns(NotPositiveWarning):
        values, vectors = np.linalg.eigh(kernel(X))
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    Z = every.transform(X)
    np.testing.assert_allclose(Z @ Z.T, positive, atol=1e-8)
    assert np.isfinite(every.transform(new)).all()


def test_decisions_are_explained_by_columns(data: Any) -> None:
    X, y, families, _ = data
    linear = small().fit(X, y, groups=families)
    member = superfamily(0)[0].sample(1, rng=77)[0]
    explanation = explain(linear, member)
    np.testing.assert_allclose(explanation.decision, linear.decision_function([member])[0])
    total = explanation.positions.sum() + explanation.rest + explanation.intercept
    np.testing.assert_allclose(total, explanation.decision)
    by_column, blocks = explanation.by_column(), explanation.by_block()
    (model,) = dict(linear["kernels"].transformer_list)["scores"]["columns"].embedding_.embedding_.models_
    assert len(by_column) == model.n_columns + 1
    np.testing.assert_allclose(by_column.sum(), blocks["scores"].sum())
    assert set(blocks) == set(PARTS[1:])
    assert any(" in column " in label for label in explanation.labels)


def test_results_repeat_and_are_saved(data: Any, fitted: Any, tmp_path: Any) -> None:
    X, y, families, new = data
    again = clone(fitted).fit(X, y, groups=families)
    np.testing.assert_array_equal(again.decision_function(new), fitted.decision_function(new))
    save(fitted, tmp_path / "homology.gk")
    np.testing.assert_array_equal(load(tmp_path / "homology.gk").decision_function(new), fitted.decision_function(new))


def test_more_classes_have_a_profile_each(data: Any) -> None:
    X, y, families, _ = data
    kinds = np.where(y, np.where(families == 1, "a", "b"), "rest")
    recipe = small().fit(X, kinds)
    assert recipe.decision_function(X).shape == (len(X), 3)
    names = [str(name) for name in recipe["kernels"].get_feature_names_out()]
    assert {"odds__a.odds", "odds__b.odds", "odds__rest.odds"} <= set(names)
    assert "scores__b.match[1,A]" in names
    assert np.mean(recipe.predict(X) == kinds) > 0.8


def test_errors_say_what_is_missing(data: Any) -> None:
    X, y, families, _ = data
    with pytest.raises(ValueError, match="one class"):
        small().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="class True has 1 group"):
        small().fit(X, y, groups=np.where(y, 0, families))
    with pytest.raises(ValueError, match="folds need 3 objects"):
        small().fit(X[:2] + X[-2:], [1, 1, 0, 0])
    with pytest.raises(ValueError, match=r"requires y|target y is None"):
        ProfileOdds(ProfileHMMEstimator(alphabet="protein")).fit(X)
    with pytest.raises(ValueError, match="inconsistent"):
        ProfileScores(ProfileHMMEstimator(alphabet="protein")).fit(X, y[1:])
    with pytest.raises(ValueError, match="object 0"):
        small().fit(["AC1D", *X[1:]], y)


def test_profiles_can_be_chosen(data: Any) -> None:
    X, y, families, _ = data
    own = ProfileHMMEstimator(n_columns=10, alphabet="protein", prior="dirichlet", n_init=1)
    recipe = small(profile=own).fit(X, y, groups=families)
    parts = dict(recipe["kernels"].transformer_list)
    assert parts["odds"]["bits"].embedding_.models_[0].n_columns == 10
    assert parts["scores"]["columns"].embedding_.embedding_.models_[0].n_columns == 10


def test_folds_are_of_cross_fit() -> None:
    parts = dict(homology()["kernels"].transformer_list)
    assert isinstance(parts["scores"]["columns"], cross_fit.CrossFit)
    assert isinstance(parts["odds"]["bits"], cross_fit.CrossFit)


def test_unknown_letters_are_missing_in_every_part(data: Any) -> None:
    """With unknown="missing" they count as X does; otherwise they are refused."""
    X, y, *_ = data
    odd = [x[:3] + "1" + x[4:] for x in X]
    plain = [x[:3] + "X" + x[4:] for x in X]
    with pytest.raises(ValueError, match="the symbol '1' is not in Alphabet"):
        homology(cv=2).set_params(kernels__symbols="drop").fit(odd, y)
    with pytest.warns(UserWarning, match="missing"):
        found = homology(cv=2, unknown="missing").set_params(kernels__symbols="drop").fit(odd, y)
    with pytest.warns(UserWarning, match="missing"):
        values = found.decision_function(odd[:5])
    expected = homology(cv=2).set_params(kernels__symbols="drop").fit(plain, y).decision_function(plain[:5])
    np.testing.assert_allclose(values, expected, rtol=1e-10)
