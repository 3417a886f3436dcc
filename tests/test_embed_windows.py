"""Windows against plain loops, their invariances and gaps, and the sum over widths against its parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct, idct
from sklearn.pipeline import FeatureUnion

from genkern import FisherScore, GaussianEstimator, MixtureEstimator, MultiScale, StateSpace, Windows


def series(seed=0, lengths=(1, 7, 30, 18), d=2):
    rng = np.random.default_rng(seed)
    return [np.cumsum(rng.standard_normal((length, d)), axis=0) for length in lengths]


def window(x, t, width, circular):
    """Return the entries (w,) of one channel around t."""
    places = np.arange(t - width // 2, t + width // 2 + 1)
    return x[places % len(x)] if circular else np.array([x[min(max(p, 0), len(x) - 1)] for p in places])


def described(x, t, width, count, circular, floors=None):
    """Return the channels of one width at position t of a series (T, d), by the definition."""
    row = []
    for c in range(x.shape[1]):
        piece = window(x[:, c], t, width, circular)
        waves = dct(piece - piece.mean(), norm="ortho")[1 : 1 + count]
        if floors is not None:
            waves = waves / (piece.std() + floors[c])
        row += [piece.mean(), *waves]
    return row


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("widths", [(1,), 3, (9, 33), (1, 5)])
def test_windows_are_what_loops_give(widths, normalize, circular):
    X = series()
    spread = np.concatenate(X).std(axis=0)
    windows = Windows(widths, n_dct=4, normalize=normalize, circular=circular, standardize=False)
    assert windows.fit(X) is windows
    for x, result in zip(X, windows.transform(X), strict=True):
        expected = [
            np.concatenate(
                [
                    described(x, t, w, min(4, w - 1), circular, 0.1 * spread if normalize else None)
                    for w in np.atleast_1d(widths)
                ]
            )
            for t in range(len(x))
        ]
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)
    assert result.shape[1] == len(windows.get_feature_names_out())


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_rest_is_what_mean_and_waves_leave(normalize, circular):
    """By subtracting both from the window, in units of the channel or, plus a tenth of that, of the window."""
    X = [100.0 * x for x in series()]
    spread = np.concatenate(X).std(axis=0)
    windows = Windows((3, 9), 2, normalize, circular, standardize=False, rest=True).fit(X)
    plain = Windows((3, 9), 2, normalize, circular, standardize=False).fit(X)
    names = list(windows.get_feature_names_out())
    assert [name for name in names if name not in plain.get_feature_names_out()] == ["x0_w9_rest", "x1_w9_rest"]
    for x, result, others in zip(X, windows.transform(X), plain.transform(X), strict=True):
        same = [not name.endswith("rest") for name in names]
        np.testing.assert_allclose(result[:, same], others, rtol=1e-12, atol=1e-10)
        for t in range(len(x)):
            for c in range(2):
                piece = window(x[:, c], t, 9, circular)
                waves = dct(piece, norm="ortho")
                waves[3:] = 0
                left = np.sqrt(np.mean((piece - idct(waves, norm="ortho")) ** 2))
                left = left / (piece.std() + 0.1 * spread[c]) if normalize else left / spread[c]
                np.testing.assert_allclose(result[t, names.index(f"x{c}_w9_rest")], np.log(left + 0.1), atol=1e-6)


def test_rest_tells_how_strong_a_fast_wave_is():
    t = np.arange(200)
    x = np.where(t < 100, 0.1, 1.0) * np.cos(2.5 * t)
    rest = Windows(33, n_dct=4, rest=True).fit([x]).transform([x])[0][:, -1]
    assert rest[20:80].max() < rest[120:180].min() - 1.0
    waves = Windows(33, n_dct=4, normalize=True).fit([x]).transform([x])[0]
    assert abs(waves[20:80].mean() - waves[120:180].mean()) < 0.1
    for scale in (1e-200, 1e70):
        scaled = Windows(33, n_dct=4, rest=True).fit([scale * x]).transform([scale * x])[0]
        np.testing.assert_allclose(scaled[:, -1], rest, rtol=1e-6, atol=1e-6)


def test_rest_with_gaps_and_without_any_variation():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    gaps = np.where(rng.random(60) < 0.3, np.nan, x)
    gaps[40:] = np.nan
    for normalize in (False, True):
        windows = Windows(9, n_dct=2, normalize=normalize, rest=True).fit([x, gaps])
        found = windows.transform([x, gaps, np.zeros(30), np.full(4, 1e3)])
        assert np.isfinite(found[0]).all()
        np.testing.assert_array_equal(np.isnan(found[1][:, -1]), np.isnan(found[1][:, 0]))
        assert np.isfinite(np.concatenate(found[2:])).all()
        flat = Windows(9, n_dct=2, normalize=normalize, rest=True).fit_transform([np.zeros(30)])
        assert np.isfinite(flat[0]).all()


def test_names_follow_the_channels():
    windows = Windows((1, 3), n_dct=1).fit(series())
    names = ["a_w1_mean", "b_w1_mean", "a_w3_mean", "a_w3_dct1", "b_w3_mean", "b_w3_dct1"]
    assert windows.get_feature_names_out(["a", "b"]).tolist() == names
    assert windows.get_feature_names_out()[1] == "x1_w1_mean"
    with pytest.raises(ValueError, match="must name 2 channels"):
        windows.get_feature_names_out(["a"])


def test_first_coefficient_of_three_points_is_the_delta():
    (x,) = series(lengths=(12,))
    (result,) = Windows(3, n_dct=1, standardize=False).fit_transform([x])
    delta = x[2:] - x[:-2]
    np.testing.assert_allclose(result[1:-1, [1, 3]], -delta / np.sqrt(2), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("d", "count"), [(1, 8), (2, 4), (3, 3), (4, 2), (12, 2)])
def test_default_number_of_coefficients(d, count):
    result = Windows(33).fit_transform(series(d=d))
    assert result[0].shape[1] == d * (1 + count)
    assert Windows(3).fit_transform(series(d=d))[0].shape[1] == d * 3


def test_all_coefficients_keep_all_there_is():
    X = series(lengths=(11, 20))
    result = Windows(5, n_dct=9, standardize=False).fit_transform(X)
    mean, waves = result[1][:, [0]], result[1][:, 1:5]
    pieces = np.array([window(X[1][:, 0], t, 5, False) for t in range(20)])
    np.testing.assert_allclose(((pieces - mean) ** 2).sum(axis=1), (waves**2).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("normalize", [False, True])
def test_closed_series_may_begin_anywhere(normalize):
    X = series(lengths=(24, 30))
    windows = Windows((3, 9), normalize=normalize, circular=True).fit(X)
    turned = windows.transform([np.roll(x, 5, axis=0) for x in X])
    for one, other in zip(windows.transform(X), turned):
        np.testing.assert_allclose(np.roll(one, 5, axis=0), other, rtol=0, atol=1e-12)


def test_strides_choose_positions():
    X = series(lengths=(1, 10, 130, 500))
    every = Windows(33).fit(X)
    third = Windows(33, stride=3).fit(X)
    for one, other in zip(every.transform(X), third.transform(X)):
        raw = one * every.scale_ + every.mean_
        np.testing.assert_allclose(other * third.scale_ + third.mean_, raw[::3], rtol=0, atol=1e-10)
    # min(33 / 8, T / 50), at least one; the narrowest of several widths counts
    assert [len(x) for x in Windows(33, stride="auto").fit_transform(X)] == [1, 10, 65, 125]
    assert [len(x) for x in Windows((9, 33), stride="auto").fit_transform(X)] == [1, 10, 130, 500]


def test_windows_are_standardised_by_the_training_series():
    X = series()
    windows = Windows((1, 5), normalize=True).fit(X)
    table = np.concatenate(windows.transform(X))
    np.testing.assert_allclose(table.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(table.std(axis=0), 1, rtol=1e-12)
    rescaled = Windows((1, 5), normalize=True).fit_transform([[100.0, 1e-3] * x + [5.0, 7.0] for x in X])
    np.testing.assert_allclose(np.concatenate(rescaled), table, rtol=0, atol=1e-8)
    new = windows.transform(series(seed=1))
    assert abs(np.concatenate(new).mean(axis=0)).max() > 0.1


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1])
@pytest.mark.parametrize("normalize", [False, True])
def test_constant_series_give_zeros(value, normalize):
    X = [np.full((length, 2), value) for length in (3, 10)]
    for x in Windows((1, 3, 33), normalize=normalize).fit_transform(X):
        np.testing.assert_allclose(x, 0, rtol=0, atol=1e-6 * max(value, 1))


def test_missing_entries_are_left_out_and_the_others_count_in_proportion():
    x = np.array([1.0, 4.0, np.nan, 2.0, 6.0, 5.0, 7.0])
    windows = Windows(5, n_dct=2, normalize=True, standardize=False).fit([x])
    floor = 0.1 * np.nanstd(x)
    waves = dct(np.eye(5), norm="ortho")[:, 1:3]
    for t, row in enumerate(windows.transform([x])[0]):
        piece = window(x, t, 5, False)
        seen = ~np.isnan(piece)
        gap = piece[seen] - piece[seen].mean()
        sums = gap @ waves[seen] * 5 / seen.sum() / (piece[seen].std() + floor)
        np.testing.assert_allclose(row, [piece[seen].mean(), *sums], rtol=0, atol=1e-12)


def test_windows_with_less_than_half_are_missing():
    x = np.array([[1.0, 1.0], [np.nan, 2.0], [np.nan, 5.0], [np.nan, 3.0], [4.0, 1.0], [5.0, 1.0]])
    first, third = (Windows(w, standardize=False).fit_transform([x])[0] for w in (1, 3))
    np.testing.assert_array_equal(first, x)
    missing = np.isnan(third)
    np.testing.assert_array_equal(missing[:, :3].any(axis=1), [False, True, True, True, False, False])
    np.testing.assert_array_equal(missing[:, :3].any(axis=1), missing[:, :3].all(axis=1))
    assert not missing[:, 3:].any()
    standard = Windows(3).fit_transform([x])[0]
    np.testing.assert_array_equal(np.isnan(standard), missing)
    np.testing.assert_allclose(np.nanstd(standard, axis=0), 1.0, rtol=1e-12)


def test_channels_without_any_window_are_refused():
    x = np.full((11, 2), np.nan)
    x[:, 0], x[4:6, 1] = np.arange(11), 1.0
    with pytest.raises(ValueError, match="x1_w9_mean is missing everywhere"):
        Windows((1, 9)).fit([x])


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 40), st.sampled_from([1, 3, 9, 33]), st.booleans(), st.integers(0, 5))
def test_rows_do_not_depend_on_neighbours(length, width, circular, seed):
    X = series(seed, lengths=(length, 5, 17))
    windows = Windows(width, circular=circular, normalize=True, stride="auto").fit(X)
    np.testing.assert_array_equal(windows.transform(X[:1])[0], windows.transform(X[::-1])[-1])
    np.testing.assert_array_equal(windows.fit_transform(X)[0], windows.transform(X)[0])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"widths": 4}, "use 3 or 5"),
        ({"widths": (3, 0)}, "widths"),
        ({"widths": ()}, "widths"),
        ({"widths": "wide"}, "widths"),
        ({"n_dct": -1}, "n_dct"),
        ({"stride": 0}, "stride"),
        ({"stride": "some"}, "stride"),
    ],
)
def test_wrong_windows_are_refused(options, error):
    with pytest.raises(ValueError, match=error):
        Windows(**options).fit(series())


def test_other_channels_are_refused():
    with pytest.raises(ValueError, match="object 0 has 3 channels"):
        Windows().fit(series()).transform(series(d=3))


# --- all widths


def scores(k=2):
    return FisherScore(MixtureEstimator(k, max_iter=3, tol=0), "diagonal", length_norm="length")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_multi_scale_is_the_concatenation_of_its_parts(n_jobs):
    X, new = series(lengths=(20, 30, 25, 28)), series(seed=1)
    scales = MultiScale(scores(), circular=True, n_dct=3, n_jobs=n_jobs)
    fitted = scales.fit_transform(X)
    columns, fresh = [], []
    for width, normalize in [(1, False), (3, False), (3, True), (5, False), (5, True)]:
        windows = Windows(width, 3, normalize, circular=True, stride="auto").fit(X)
        embedding = scores().fit(windows.transform(X))
        columns.append(embedding.transform(windows.transform(X)))
        fresh.append(embedding.transform(windows.transform(new)))
    np.testing.assert_allclose(fitted, np.hstack(columns), rtol=0, atol=1e-12)
    np.testing.assert_allclose(scales.transform(new), np.hstack(fresh), rtol=0, atol=1e-12)
    assert list(scales.blocks_) == ["w1", "w3", "w3_normalized", "w5", "w5_normalized"]
    np.testing.assert_allclose(fitted[:, scales.blocks_["w3"]], columns[1], rtol=0, atol=1e-12)
    names = scales.get_feature_names_out()
    assert len(names) == fitted.shape[1]
    assert names[scales.blocks_["w3_normalized"]][0] == "w3_normalized__weights[0]"


@pytest.mark.parametrize(
    ("length", "widest"), [(2, 1), (8, 1), (9, 3), (14, 3), (15, 5), (27, 9), (50, 9), (386, 65), (387, 129)]
)
def test_widths_go_to_a_third_of_the_median_length(length, widest):
    X = series(lengths=(length, 1, 1000 + length), d=1)
    parts = MultiScale(FisherScore(GaussianEstimator()), normalize=(True,), stride=50).fit(X).parts_
    assert [part["windows"].widths for part in parts.values()][-1] == widest
    assert len(parts) == [1, 3, 5, 9, 17, 33, 65, 129].index(widest) + 1
    assert next(iter(parts)) == "w1"


def test_given_widths_and_versions_are_taken():
    X = series()
    scales = MultiScale(scores(), widths=(1, 9), normalize=(True,), stride=2).fit(X)
    assert list(scales.parts_) == ["w1", "w9_normalized"]
    assert scales.parts_["w9_normalized"]["windows"].get_params()["stride"] == 2
    with pytest.raises(ValueError, match="normalize"):
        MultiScale(scores(), normalize=()).fit(X)
    with pytest.raises(ValueError, match="widths"):
        MultiScale(scores(), widths="all").fit(X)
    with pytest.raises(ValueError, match="use 3 or 5"):
        MultiScale(scores(), widths=(4,)).fit(X)


def test_several_embeddings_and_labels_pass_through():
    X, y = series(lengths=(10, 12, 15, 9)), [0, 0, 1, 1]
    per_class = StateSpace(MixtureEstimator(2, max_iter=2, tol=0), per_class=True)
    both = MultiScale(FeatureUnion([("a", scores()), ("b", per_class)]), widths=(1, 3)).fit(X, y)
    names = both.get_feature_names_out()
    assert both.transform(X).shape == (4, len(names))
    assert names[0].startswith("w1__a__weights")
    assert any(name.startswith("w3_normalized__b__1.") for name in names)


def test_closed_contours_have_the_same_bag_of_windows_wherever_they_begin():
    X = series(lengths=(24, 30, 27, 33))
    scales = MultiScale(scores(), circular=True).fit(X)
    turned = scales.transform([np.roll(x, 7, axis=0) for x in X])
    np.testing.assert_allclose(turned, scales.transform(X), rtol=0, atol=1e-9)
    assert abs(MultiScale(scores()).fit(X).transform([np.roll(x, 7, axis=0) for x in X]) - turned).max() > 1e-3
