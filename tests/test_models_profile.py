"""Profile models against sums over all paths, HMMER's scores and finite differences."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from genkern import FisherScore, ProfileHMM, check_score
from genkern.models.profile.visits import expected_draws
from tests.oracles_profile import all_paths, random_profile

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")) / "hmmer_tutorial"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="needs hmmer_tutorial of the data, see GENKERN_DATA")
KINDS = ["free", "several", "local", "glocal", "glocal, several", "global"]


def profile(kind, K=3, seed=0):
    rng = np.random.default_rng([seed, K])
    first = random_profile(rng, K, kind="several" if kind == "several" else "free")
    if kind in ("free", "several"):
        return first
    name, *several = kind.split(", ")
    return first.with_flanks(name, *several, **({} if kind == "global" else {"flank": 0.7}))


def sequences(seed, symbols=3, lengths=(1, 2, 3, 4)):
    rng = np.random.default_rng(seed)
    return [rng.integers(symbols, size=length) for length in lengths]


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_is_the_sum_over_paths(kind, K):
    model, X = profile(kind, K), sequences(K)
    expected = [sum(weight for _, weight in all_paths(model, x)) for x in X]
    np.testing.assert_allclose(model.log_prob(X), np.log(expected), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_best_path_and_posteriors(kind):
    model, X = profile(kind), sequences(1)
    columns = [name for name in model.hidden_states if name[0] != "D"]
    for x, best, value, gamma in zip(X, model.viterbi(X), model.viterbi_log_prob(X), model.posterior(X)):
        paths = all_paths(model, x)
        path, weight = max(paths, key=lambda pair: pair[1])
        assert best == path
        assert value == pytest.approx(np.log(weight), abs=1e-10)
        expected = np.zeros(gamma.shape)
        for path, weight in paths:
            for t, name in enumerate(name for name in path if name[0] != "D"):
                expected[t, columns.index(name)] += weight
        np.testing.assert_allclose(gamma, expected / sum(weight for _, weight in paths), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_visits_are_those_of_the_paths(kind):
    model, X = profile(kind), sequences(2)
    visits = model.visits(model.statistics(X))
    states = {name: place for place, name in enumerate(model.hidden_states)}
    for x, found in zip(X, visits):
        paths = all_paths(model, x)
        expected = np.zeros(found.shape)
        for path, weight in paths:
            for name in path:
                expected[states[name]] += weight
        np.testing.assert_allclose(found, expected / sum(weight for _, weight in paths), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(kind):
    assert max(check_score(profile(kind), sequences(3)).values()) < 1e-6


@pytest.mark.parametrize("kind", ["several", "local"])
def test_long_sequences_beside_each_other_and_alone(kind):
    model = profile(kind, 17)
    X = sequences(4, lengths=[40, 3, 8, 9, 7, 1, 16, 17, 24, 31, 2, 5])
    together = model.log_prob_grad(X, "raw")
    for i, x in enumerate(X):
        assert model.log_prob([x])[0] == model.log_prob(X)[i]
        np.testing.assert_array_equal(model.log_prob_grad([x], "raw")[0], together[i])
    packed = model.pack([X[0]])
    positions = list(model.position_statistics(packed))
    np.testing.assert_allclose(sum(model.gradient(part, "raw").sum(axis=0) for part in positions), together[0])
    np.testing.assert_allclose(sum(part.log_prob.sum() for part in positions), model.log_prob([X[0]])[0])
    total = model.statistics(X, totals=True)
    np.testing.assert_allclose(model.gradient(total, "raw")[0], together.sum(axis=0), rtol=1e-12)
    assert max(check_score(model, X[:2], "softmax").values()) < 1e-6


def test_what_leaves_the_range_of_doubles_is_taken_in_logarithms():
    match = np.full((400, 20), 1e-9)
    match[:, 0] = 1.0 - 19e-9
    model = ProfileHMM(match, transitions=no_gaps(400), alphabet="protein").with_flanks("glocal", flank=9.0)
    x = ["C" * 410, "A" * 400]
    found = model.log_prob(x)
    stay, background = np.log(0.9), np.log(model.null[1])
    expected = 400 * np.log(1e-9) + 10 * (stay + background) + np.log(11) + 2 * np.log(0.1)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    assert model.log_prob(x[1:])[0] == found[1]
    visits = model.visits(model.statistics(x))[0]
    np.testing.assert_allclose(visits[:400], 1.0)
    np.testing.assert_allclose(visits[-3:].sum(), 10.0)
    assert np.isfinite(model.log_prob_grad(x)).all()


@pytest.mark.parametrize("kind", ["several", "local", "glocal, several"])
def test_scores_of_samples_have_mean_zero_and_states_their_expected_visits(kind):
    model = profile(kind, 2)
    X = model.sample(8000, rng=0)
    scores = model.log_prob_grad(X)
    errors = scores.std(axis=0) / np.sqrt(len(X))
    assert (np.abs(scores.mean(axis=0)) <= 4.5 * errors + 1e-12).all()
    draws = expected_draws(model)
    deleted = draws["exits"][1:] - draws["match"]
    expected = np.concatenate([draws["match"], draws["insert"], deleted, draws["flanks"][:3] * model.flanks[:3, 0]])
    paths = [path for _, path in model.simulate(8000, rng=0)]
    for name, mean in zip(model.hidden_states, expected):
        counts = np.array([path.count(name) for path in paths])
        assert abs(counts.mean() - mean) <= 4.5 * counts.std() / np.sqrt(len(paths)) + 1e-12


def test_samples_of_a_length_follow_the_conditional_law():
    model = profile("several", 2)
    X = [tuple(x) for x in model.sample(8000, length=3, rng=0)]
    every = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    law = np.exp(model.log_prob([list(x) for x in every]))
    law /= law.sum()
    found = np.array([X.count(x) for x in every]) / len(X)
    assert np.abs(found - law).max() < 4.5 * np.sqrt(law.max() / len(X))
    with pytest.raises(ValueError, match=r"no sequence of length 1 is possible"):
        ProfileHMM([[0.5, 0.5]] * 3, transitions=no_gaps(3)).with_flanks("global").sample(1, length=1)


def no_gaps(K):
    table = np.tile([1.0, 0.0, 0.0, 0.5, 0.5, 1.0, 0.0], (K + 1, 1))
    return table


def test_alignments_show_columns_insertions_and_deletions():
    match = np.full((4, 5), 0.02)
    match[np.arange(4), np.arange(4)] = 0.92
    model = ProfileHMM(match, alphabet="ABCDE").with_flanks("glocal", "several")
    found = model.align(["EEABCDE", "ACD", "ABECD", "ABCDABCD"])
    assert found[0] == [(2, 6, "ABCD")]
    assert found[1] == [(0, 3, "A-CD")]
    assert found[2] == [(0, 5, "ABeCD")]
    assert found[3] == [(0, 4, "ABCD"), (4, 8, "ABCD")]


# --- HMMER


@pytest.mark.parametrize("hits", ["one", "several"])
def test_score_is_that_of_all_local_passages(hits):
    """Eddy's local model, whose weights are no probabilities: exits of one, entries by occupancy."""
    K = 3
    model = profile("free", K, seed=7)
    T, L = model.transitions, 4
    occupied = [T[0, 0] + T[0, 1]]
    for k in range(1, K):
        occupied.append(occupied[-1] * (T[k, 0] + T[k, 1]) + (1 - occupied[-1]) * T[k, 5])
    scale = sum(occupied[k] * (K - k) for k in range(K))
    move, again = (3 / (L + 3), 0.5) if hits == "several" else (2 / (L + 2), 0.0)

    def follow(name, t, x):
        kind, k = name[0], int(name[1:] or 0)
        total = 0.0
        after = [(f"M{k + 1}", T[k, {"M": 0, "I": 3, "D": 5}.get(kind, 0)])] if k < K else []
        if kind in "NJC":
            total = move * (follow("B", t, x) if kind != "C" else float(t == L))
            after = [(name, 1 - move)]
        elif kind == "B":
            after = [(f"M{j + 1}", occupied[j] / scale) for j in range(K)]
        elif kind == "E":
            return again * follow("J", t, x) + (1 - again) * follow("C", t, x) if again else follow("C", t, x)
        else:
            total = follow("E", t, x) if kind != "I" else 0.0
            if kind in "MD" and k < K:
                total += T[k, 2 if kind == "M" else 6] * follow(f"D{k + 1}", t, x)
            if kind in "MI" and k < K:
                after.append((f"I{k}", T[k, 1 if kind == "M" else 4]))
        if t < L:
            for state, weight in after:
                odds = model.match[int(state[1:]) - 1, x[t]] / model.null[x[t]] if state[0] == "M" else 1.0
                total += weight * odds * follow(state, t + 1, x)
        return total

    null = L * np.log(L / (L + 1)) + np.log(1 / (L + 1))
    for x in sequences(8, lengths=[L, L]):
        expected = (np.log(follow("N", 0, x)) - null) / np.log(2)
        assert model.hmmer_score([x], hits=hits)[0] == pytest.approx(expected, abs=1e-10)


@needs_data
def test_scores_of_hmmer():
    """Scores before bias correction that hmmsearch 3.4 reports for the globins of its tutorial."""
    lines = (DATA / "globins45.fa").read_text().split(">")[1:]
    X = {record.split()[0]: "".join(record.split("\n")[1:]) for record in lines}
    model = ProfileHMM.from_hmmer(DATA / "globins4.hmm")
    expected = GLOBINS
    found = model.hmmer_score([X[name] for name in expected])
    np.testing.assert_allclose(found, list(expected.values()), atol=0.01)


@pytest.mark.peers
@needs_data
@pytest.mark.parametrize("family", ["globins4", "fn3", "Pkinase"])
def test_scores_of_pyhmmer(family):
    easel, plan7 = pytest.importorskip("pyhmmer.easel"), pytest.importorskip("pyhmmer.plan7")
    amino = easel.Alphabet.amino()
    block = easel.DigitalSequenceBlock(amino)
    for name in ("globins45.fa", "7LESS_DROME", "HBB_HUMAN"):
        with easel.SequenceFile(str(DATA / name), digital=True, alphabet=amino) as file:
            block.extend(file.read_block())
    with plan7.HMMFile(str(DATA / f"{family}.hmm")) as file:
        hmm = file.read()
    search = plan7.Pipeline(amino, bias_filter=False, F1=1.0, F2=1.0, F3=1.0, E=1e9, domE=1e9, null2=False)
    expected = {hit.name: hit.pre_score for hit in search.search_hmm(hmm, block)}
    texts = {sequence.name: sequence.textize().sequence for sequence in block}
    found = ProfileHMM.from_hmmer(DATA / f"{family}.hmm").hmmer_score([texts[name] for name in expected])
    assert len(expected) > 15
    np.testing.assert_allclose(found, list(expected.values()), atol=0.01)


def test_files_of_hmmer_are_written_and_read(tmp_path):
    rng = np.random.default_rng(0)
    model = random_profile(rng, 5, 20, alphabet="protein")
    model.to_hmmer(tmp_path / "one.hmm", "family")
    again = ProfileHMM.from_hmmer(tmp_path / "one.hmm", "family")
    for name in ("match", "insert", "transitions"):
        np.testing.assert_allclose(getattr(again, name), getattr(model, name), atol=1e-6)
    text = (tmp_path / "one.hmm").read_text()
    (tmp_path / "two.hmm").write_text(text + text.replace("family", "other"))
    with pytest.raises(ValueError, match=r"has 2 profiles: family, other"):
        ProfileHMM.from_hmmer(tmp_path / "two.hmm")
    ProfileHMM.from_hmmer(tmp_path / "two.hmm", "other")
    lines = text.splitlines()
    for wrong, message in (
        (text.replace("HMMER3/f", "HMMER2"), "no line begins with 'HMMER3/'"),
        (text.replace("ALPH  amino", "ALPH  klingon"), "ALPH 'klingon'"),
        ("\n".join(lines[:20]), "expected 20 numbers"),
        (text.replace("\n      2 ", "\n      7 "), "expected node 2 at line"),
        (text.replace(lines[14], lines[14].replace(".", "x", 1)), "line 15"),
        (text.replace(lines[14], lines[14].replace(".", "9.", 1)), "probabilities sum to"),
    ):
        (tmp_path / "wrong.hmm").write_text(wrong)
        with pytest.raises(ValueError, match=message):
            ProfileHMM.from_hmmer(tmp_path / "wrong.hmm")
    with pytest.raises(ValueError, match="needs the alphabet"):
        profile("free").to_hmmer(tmp_path / "x.hmm")


# --- contradictions, values


def test_contradictions_are_refused():
    good = random_profile(np.random.default_rng(0))
    fields = {name: getattr(good, name) for name in good._fields}

    def wrong(name, index, value):
        table = np.array(fields[name])
        table[index] = value
        return {**fields, name: table}

    silent = wrong("flanks", 3, [0.5, 0.5])
    for changed, message in (
        (wrong("transitions", (3, slice(0, 3)), [0.5, 0.3, 0.2]), "MD of node 3 must be zero"),
        (wrong("transitions", (1, slice(3, 5)), [0.0, 1.0]), "never ends"),
        (wrong("flanks", 2, [1.0, 0.0]), "never ends"),
        (silent, "take no symbol at all"),
        (wrong("exits", (0, slice(None)), [0.5, 0.5]), r"exits\[0, 0\] must be zero"),
    ):
        with pytest.raises(ValueError, match=message):
            ProfileHMM(**changed)
    with pytest.raises(ValueError, match="one row per column"):
        ProfileHMM([0.5, 0.5])
    with pytest.raises(ValueError, match="takes the whole sequence"):
        good.with_flanks("global", "several")


def test_impossible_sequences_are_refused_by_position():
    match = [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    model = ProfileHMM(match, transitions=no_gaps(3)).with_flanks("global")
    np.testing.assert_array_equal(np.isfinite(model.log_prob([[0, 1, 0], [1, 1, 0], [0, 1]])), [True, False, False])
    with pytest.raises(ValueError, match=r"object 1 has probability zero under the model at position 0 \(symbol 1\)"):
        model.statistics([[0, 1, 0], [1, 1, 0]])
    with pytest.raises(ValueError, match=r"object 0 has probability zero under the model at its end"):
        model.viterbi([[0, 1]])


def test_stacks_and_copies():
    rng = np.random.default_rng(3)
    models = [random_profile(rng) for _ in range(2)]
    stack, X = ProfileHMM.stack(models), sequences(9)
    np.testing.assert_array_equal(stack.log_prob(X), np.stack([model.log_prob(X) for model in models], axis=1))
    np.testing.assert_array_equal(stack.statistics(X[:2])["match"][1], models[1].statistics(X[1:2])["match"][0])
    assert pickle.loads(pickle.dumps(stack)) == stack
    assert stack[1] == models[1]
    assert models[0].with_parameters(models[0].parameters()).log_prob(X) == pytest.approx(models[0].log_prob(X))


def test_missing_symbols_are_summed_out():
    model = random_profile(np.random.default_rng(0), 3, 20, alphabet="protein")
    letters = "ACDEFGHIKLMNPQRSTVWY"
    every = np.logaddexp.reduce(model.log_prob([f"C{a}D" for a in letters]))
    assert model.log_prob(["CXD"])[0] == pytest.approx(every)
    pair = np.logaddexp(*model.log_prob(["CND", "CDD"]))
    assert model.log_prob(["CBD"])[0] == pytest.approx(pair)
    assert max(check_score(model, ["CBXD"], "ratio").values()) < 1e-6


def test_fisher_scores_come_by_blocks():
    model = profile("several")
    features = FisherScore(model).fit(sequences(10))
    assert set(model.blocks) == {"match", "insert", "transitions", "entry", "exits", "flanks"}
    assert np.isfinite(features.transform(sequences(11))).all()


GLOBINS = {
    "MYG_ESCGI": 218.495,
    "HBA_PONPY": 202.387,
    "HBB_TACAC": 189.025,
    "HBA_AILME": 182.815,
    "HBA_ANSSE": 157.744,
    "HBA4_SALIR": 138.768,
}
