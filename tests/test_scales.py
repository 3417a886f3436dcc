"""Numbers so large or small that squares leave the range of float64: finite results, or an error that names them."""

import warnings

import numpy as np
import pytest
from checks import objects, outcome
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from test_sklearn import CASES

from genkern import (
    RBF,
    CharacteristicFeatures,
    GaussianEstimator,
    Gram,
    KernelSVMClassifierCV,
    Linear,
    ScaleSeries,
    Standardize,
    UnitTrace,
    check_objects,
)
from genkern.data.representations import Representations
from genkern.validation import check_sizes

SCALES = [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300]
NUMBERS = ("series", "positive", "counts")
TABLES = [name for name, case in CASES.items() if not case.kinds]


def numbers(result):
    """Return all numbers of what an estimator gives: arrays, lists of arrays, models, or several of them."""
    if isinstance(result, Representations):
        return np.concatenate([numbers(result[name]) for name in result.names])
    if isinstance(result, list | tuple):
        return np.concatenate([np.zeros(0), *(numbers(part) for part in result)])
    if hasattr(result, "_fields"):
        return numbers([getattr(result, name) for name in result._fields])
    if sparse.issparse(result):
        return result.data
    return np.asarray(result, float).ravel() if isinstance(result, np.ndarray | float) else np.zeros(0)


REMEDIES = ("Divide", "divide", "Scale X", "expected", "Take larger", "Check the labels", "need to be preprocessed")


def check_outcome(case, X, y):
    """Fit and apply an estimator; what it gives is finite, or what it raises says what to do. NumPy does not warn."""
    refused, found = "", np.zeros(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            found = numbers(outcome(case.make().fit(X, y), X))
        except ValueError as error:
            refused = str(error)
    assert not refused or any(remedy in refused for remedy in REMEDIES), refused
    assert np.isfinite(found).all()


LISTS = [(name, kind) for name, case in CASES.items() for kind in case.kinds if kind in NUMBERS]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("name", "kind"), LISTS)
def test_lists(name, kind, scale):
    X, y = objects(kind)
    if kind == "counts" and scale < 1:
        pytest.skip("counts are whole numbers")
    check_outcome(CASES[name], [np.round(scale * x) if kind == "counts" else scale * x for x in X], y)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", TABLES)
def test_tables(name, scale):
    y = np.arange(12) % 2
    X = np.abs(np.random.default_rng(0).standard_normal((12, 4)) + 2 * y[:, None])
    if "precomputed" in repr(CASES[name].make().get_params()):
        X = X @ X.T
    check_outcome(CASES[name], scale * X, y)


def test_errors_name_object_position_and_value():
    x = np.ones((3, 2))
    bad = x.copy()
    bad[2, 1] = -1e160
    message = r"object 1, position 2, column 1 is -1e\+160; expected numbers up to 1e\+75.*Divide column 1 by its scale"
    for call in (
        lambda: GaussianEstimator().fit([x, bad]),
        lambda: check_objects([x, bad], kind="points"),
        lambda: ScaleSeries().fit([x, bad]),
        lambda: GaussianEstimator().fit([x]).model_.log_prob([x, bad]),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=r"object 0, position 0, column 0 is inf; expected finite"):
        GaussianEstimator().fit([[[np.inf]]])
    with pytest.raises(ValueError, match=r"GaussianEstimator: column 1 of object 1 deviates by .*underflow. Divide"):
        GaussianEstimator().fit_each([x, np.array([[1.0, 1e-200], [2.0, 2e-200]])])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_errors_of_tables_name_row_and_column(make):
    table = np.eye(3)
    table[2, 1] = -1e160
    with pytest.raises(ValueError, match=r"me: row 2, column 1 is -1e\+160; expected numbers up to 1e\+75"):
        check_sizes(make(table), "me")
    assert check_sizes(make(np.eye(3)), "me").shape == (3, 3)


@pytest.mark.parametrize("step", [Standardize, UnitTrace])
def test_features_beyond_the_range_are_refused(step):
    X = np.random.default_rng(0).standard_normal((5, 2))
    X[3, 0] = 1e160
    with pytest.raises(ValueError, match=r"row 3, column 0 is 1e\+160"):
        step().fit(X)


def test_kernels_of_vectors_refuse_overflow_without_a_warning():
    X = 1e160 * np.random.default_rng(0).standard_normal((4, 2))
    for table in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match="range of floating point"):
            Linear()(table)
        with pytest.raises(ValueError, match="range of floating point"):
            Linear().diag(table)
    assert np.isfinite(RBF(1.0)(X)).all()


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_characteristic_features_of_large_and_small_models(scale):
    X, _ = objects("series")
    models = GaussianEstimator().fit_each([scale * x for x in X])
    assert np.isfinite(CharacteristicFeatures(length=3).fit_transform(models)).all()


def test_scales_of_series_do_not_see_rounding():
    constant = np.full((7, 2), 0.1)
    constant[:, 0] = np.arange(7) * 1e-200
    scaled = ScaleSeries().fit([constant])
    assert scaled.scale_[1] == 0.1 * np.sqrt(2)
    assert 1e-200 < scaled.scale_[0] < 1e-199


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("estimator", [Gram(Linear()), Standardize(), KernelSVMClassifierCV(kernel=Linear())])
def test_infinities_of_both_signs_are_refused_without_a_warning(estimator, dtype):
    X = np.array([[np.inf, -np.inf, 1.0], [-np.inf, np.inf, 2.0]] * 4, dtype)
    with pytest.raises(ValueError, match=r"infinity|finite"):  # and a warning is an error here
        estimator.fit(X, np.arange(8) % 2)
