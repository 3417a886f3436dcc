"""Profile models from alignments and from unaligned sequences, against HMMER's files, formulas and truth."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, softmax

from genkern import ProfileHMM, ProfileHMMEstimator, as_alphabet
from genkern.models.profile.priors import priors_of

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")) / "hmmer_tutorial"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="needs hmmer_tutorial of the data, see GENKERN_DATA")
PROTEIN = as_alphabet("protein")
UNIFORM = np.full(20, 0.05)


# --- priors


@pytest.mark.parametrize("prior", ["dirichlet", "blosum", 3.0])
def test_rows_are_posterior_means(prior):
    mixture = priors_of(prior, PROTEIN, UNIFORM, "").match
    counts = np.random.default_rng(0).poisson(1.0, 20).astype(float)

    def log_beta(alpha):
        return gammaln(alpha).sum() - gammaln(alpha.sum())

    logs = [np.log(q) + log_beta(counts + a) - log_beta(a) for q, a in zip(mixture.weights, mixture.alpha)]
    shares = softmax(logs)
    expected = sum(p * (counts + a) / (counts + a).sum() for p, a in zip(shares, mixture.alpha))
    np.testing.assert_allclose(mixture.mean(counts[None])[0], expected)


@pytest.mark.parametrize("prior", ["dirichlet", "blosum"])
def test_the_step_of_em_finds_a_mode(prior):
    mixture = priors_of(prior, PROTEIN, UNIFORM, "").match
    counts = np.random.default_rng(1).poisson(0.7, (1, 20)).astype(float)

    def loss(eta):
        row = softmax(eta)
        return -(counts[0] @ np.log(row)) - mixture.log_prior(row[None])

    row = mixture.mode(counts, np.full((1, 20), 0.05))
    for _ in range(30):
        row = mixture.mode(counts, row)
    best = minimize(loss, np.log(row[0]), method="BFGS", options={"gtol": 1e-8})
    assert loss(np.log(row[0])) <= best.fun + 1e-6


def test_exchanges_of_blosum_follow_its_scores():
    mixture = priors_of("blosum", PROTEIN, UNIFORM, "").match
    row = mixture.mean(np.eye(20)[[PROTEIN.symbols.index("I")]])[0]
    frequency = mixture.weights / mixture.weights.sum()
    odds = dict(zip(PROTEIN.symbols, row / frequency))
    assert odds["I"] > odds["V"] > odds["L"] > odds["A"] > odds["G"]


def test_priors_that_make_no_sense_are_refused():
    for prior, alphabet, message in (("mixture", "protein", "must be one of"), ("blosum", "dna", "is for proteins")):
        with pytest.raises(ValueError, match=message):
            ProfileHMMEstimator(prior=prior, alphabet=alphabet).fit(["ACG", "ACA"])
    with pytest.raises(ValueError, match="'effective' must be"):
        ProfileHMM.from_alignment(["ACG", "ACA"], "dna", effective="some")


# --- alignments


@needs_data
def test_an_alignment_gives_the_profile_of_hmmbuild():
    ours, theirs = ProfileHMM.from_alignment(DATA / "globins4.sto"), ProfileHMM.from_hmmer(DATA / "globins4.hmm")
    for name in ("match", "insert", "transitions"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=2e-3)


def test_counts_of_an_alignment():
    rows = ["AC-GT", "ACAGT", "A--GT"]
    model = ProfileHMM.from_alignment(rows, "dna", columns=0.6, prior=1e-5, effective="all")
    assert model.n_columns == 4
    np.testing.assert_allclose(model.match[:, [0, 1, 2, 3]], np.eye(4), atol=1e-4)
    with pytest.raises(ValueError, match="Row 0 has 3 letters, row 1 2"):
        ProfileHMM.from_alignment(["ACG", "AC"], "dna")
    with pytest.raises(ValueError, match="row 1 has gaps only"):
        ProfileHMM.from_alignment(["ACG", "---"], "dna")
    with pytest.raises(TypeError, match="a list of strings"):
        ProfileHMM.from_alignment([1, 2], "dna")


def test_transitions_of_an_alignment():
    """Rows with the rare column weigh (1/4 + 1/2 + 1/4) / 3, the others (1/4 + 1/4) / 2: as 4 to 3."""
    found = ProfileHMM.from_alignment(["AgC", "A-C", "A-C", "AgC"], "dna", columns=0.6, effective=1e7)
    np.testing.assert_allclose(found.transitions[1, :3], [3 / 7, 4 / 7, 0.0], atol=1e-5)
    np.testing.assert_allclose(found.transitions[1, 3:5], [1.0, 0.0], atol=1e-5)
    deleted = ProfileHMM.from_alignment(["ACG", "A-G"], "dna", columns=0.5, effective=1e7)
    np.testing.assert_allclose(deleted.transitions[1, :3], [0.5, 0.0, 0.5], atol=0.2)
    np.testing.assert_allclose(deleted.transitions[2, 5:], [1.0, 0.0], atol=1e-5)


def test_an_insertion_beside_a_deletion_is_a_match():
    moved = ProfileHMM.from_alignment(["A-tG", "AC-G", "AC-G"], "dna", columns=0.5, effective=1e7)
    assert moved.match[1, 3] > 0.2  # the t is in column 2
    np.testing.assert_allclose(moved.transitions[:, [1, 2]], 0.0, atol=1e-5)


def test_ends_of_fragments_are_no_deletions():
    rows = ["ACGTACGT", "ACGTACGT", "---TA---"]
    found = ProfileHMM.from_alignment(rows, "dna", effective=1e7)
    np.testing.assert_allclose(found.transitions[:-1, 2], 0.0, atol=1e-5)


def test_files_of_alignments(tmp_path):
    rows = ["VLSEK-A", "VLT-KGA", "V-TDKGA"]
    stockholm = ["# STOCKHOLM 1.0", "#=GF ID x"] + [f"s{i}  {row[:4]}" for i, row in enumerate(rows)]
    stockholm += [""] + [f"s{i}  {row[4:]}" for i, row in enumerate(rows)] + ["#=GC RF xxx", "//"]
    (tmp_path / "x.sto").write_text("\n".join(stockholm))
    (tmp_path / "x.fa").write_text("".join(f">s{i} text\n{row[:3]}\n{row[3:]}\n" for i, row in enumerate(rows)))
    expected = ProfileHMM.from_alignment(rows)
    assert ProfileHMM.from_alignment(tmp_path / "x.sto") == expected
    assert ProfileHMM.from_alignment(str(tmp_path / "x.fa")) == expected
    (tmp_path / "y.fa").write_text("no alignment")
    with pytest.raises(ValueError, match="neither Stockholm nor FASTA"):
        ProfileHMM.from_alignment(tmp_path / "y.fa")


# --- EM


def family(n=30, seed=0):
    """Return a family of 12 columns of a protein, and members."""
    rng = np.random.default_rng(seed)
    match = np.full((12, 20), 0.01)
    match[np.arange(12), rng.permutation(20)[:12]] = 0.81
    truth = ProfileHMM(match, alphabet="protein").with_flanks("glocal", flank=2.0)
    return truth, truth.sample(n, rng=seed)


@pytest.mark.parametrize(
    ("flanks", "hits"), [("glocal", "one"), ("glocal", "several"), ("local", "one"), ("global", "one")]
)
@pytest.mark.parametrize("prior", ["dirichlet", "blosum", 1.0])
def test_em_never_falls(flanks, hits, prior):
    _, X = family(12)
    fitted = ProfileHMMEstimator(
        flanks=flanks, hits=hits, prior=prior, alphabet="protein", n_init=1, max_iter=8, tol=0.0
    ).fit(X)
    steps = np.diff(fitted.history_)
    assert len(steps) == 8
    assert (steps >= -1e-9 * np.abs(fitted.history_[-1])).all()
    assert np.isfinite(fitted.model_.log_prob(X)).all()


def test_a_family_is_found_again():
    truth, X = family(60)
    new = truth.sample(100, rng=9)
    fitted = ProfileHMMEstimator(n_columns=12, alphabet="protein").fit(X)
    assert fitted.converged_
    found = fitted.model_.log_prob(new).mean()
    assert found > truth.log_prob(new).mean() - 3.0
    rng = np.random.default_rng(1)
    unrelated = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 16)) for _ in range(50)]
    assert fitted.model_.hmmer_score(new).mean() > fitted.model_.hmmer_score(unrelated).max()


def test_fewer_effective_sequences_make_a_more_general_profile():
    _, X = family(40)
    many = ProfileHMMEstimator(n_columns=12, alphabet="protein", n_init=1).fit(X).model_
    few = ProfileHMMEstimator(n_columns=12, alphabet="protein", n_init=1, effective=2.0).fit(X).model_
    entropy = (few.match * np.log(few.match)).sum(), (many.match * np.log(many.match)).sum()
    assert entropy[0] < entropy[1]


def test_weights_count_objects_and_their_order_does_not_matter():
    _, X = family(8)
    options = {"alphabet": "protein", "n_init": 1, "max_iter": 3, "tol": 0.0}
    first = ProfileHMMEstimator(**options).fit(X)
    again = ProfileHMMEstimator(**options).fit(X[::-1])
    np.testing.assert_allclose(first.model_.match, again.model_.match, rtol=1e-9)
    start = {**options, "init": first.model_}
    twice = ProfileHMMEstimator(**start).fit(X + X[:2]).model_
    weighted = ProfileHMMEstimator(**start).fit(X, sample_weight=[2.0] * 2 + [1.0] * 6).model_
    np.testing.assert_allclose(twice.match, weighted.match, rtol=1e-9)


def test_parameters_of_the_estimator():
    _, X = family(6)
    start = ProfileHMM.from_alignment(["ACDE", "ACDE"]).with_flanks("local")
    kept = ProfileHMMEstimator(init=start, fixed=("match",), max_iter=2, tol=0.0).fit(X).model_
    np.testing.assert_array_equal(kept.match, start.match)
    np.testing.assert_array_equal(kept.entry, start.entry)
    assert not np.allclose(kept.flanks, start.flanks)
    each = ProfileHMMEstimator(alphabet="protein", max_iter=2, tol=0.0).fit_each(X)
    assert [model.n_columns for model in each] == [len(x) for x in X]
    assert ProfileHMMEstimator(n_columns=40, alphabet="protein", max_iter=1, tol=0.0).fit(X).model_.n_columns == 40
    with pytest.raises(TypeError, match="'init' must be a ProfileHMM"):
        ProfileHMMEstimator(init="seed").fit(X)
    with pytest.raises(ValueError, match="flanks"):
        ProfileHMMEstimator(flanks="wide").fit(X)


def test_batches_of_a_stream():
    _, X = family(30)
    options = {"alphabet": "protein", "max_iter": 4, "tol": 0.0, "init": ProfileHMM.from_alignment(["ACDEF", "ACDEF"])}
    whole = ProfileHMMEstimator(**options).fit(X)
    found = ProfileHMMEstimator(**options).fit_stream(lambda: [X[:10], X[10:]])
    np.testing.assert_allclose(found.model_.match, whole.model_.match, rtol=1e-9)
    once = ProfileHMMEstimator(**options).fit_stream([X[:10], X[10:20], X[20:]], one_pass=True)
    assert once.model_.log_prob(X).mean() > options["init"].log_prob(X).mean()
