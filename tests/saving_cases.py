"""Estimators that are saved and loaded, with data on which to compare them: recipes, and what stands beside recipes."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import objects
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV, SGDClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, RepeatedKFold, ShuffleSplit, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from genkern import RBF, EmpiricalMean, Linear, recipes

RNG = np.random.default_rng(0)


def words(letters: str, length: int, count: int = 12) -> list[str]:
    shares = [np.linspace(1, 3, len(letters)), np.linspace(3, 1, len(letters))]
    return ["".join(RNG.choice(list(letters), length, p=shares[i % 2] / shares[i % 2].sum())) for i in range(count)]


STRINGS, LABELS = objects("strings")
DNA, PROTEINS, CODES = words("ACGT", 24), words("ACDEFGHIKLMNPQRSTVWY", 50), words("01234567", 40)
SERIES = [np.sin(np.arange(40) / (2 + i % 2)) + 0.1 * RNG.normal(size=40) for i in range(8)]
TEXTS = ["my thesis advisor", "my classes, my advisor", "professor of computing", "professor and chair"] * 2
NAMES = np.array(["student", "student", "faculty", "faculty"] * 2)
TABLE = RNG.normal(size=(30, 4)) + np.arange(30)[:, None] % 3
THREE = np.array(["a", "b", "c"])[np.arange(30) % 3]
TWO = np.arange(30) % 2
COUNTS = np.abs(TABLE)

RECIPES: dict[str, tuple[Any, Any, Any]] = {
    "aligned_symbols": (recipes.aligned_symbols(ks=(1, 2), region_ks=(1,), orders=(0, 1), cv=2), DNA, LABELS),
    "contours": (recipes.contours(n_components=3, n_states=2), CODES, LABELS),
    "fisher_svm": (recipes.fisher_svm(2), STRINGS, LABELS),
    "fisher_svm of series": (recipes.fisher_svm(2), SERIES, LABELS[:8]),
    "homology": (recipes.homology(cv=2).set_params(kernels__symbols="drop"), PROTEINS, LABELS),
    "meanmap_svm": (recipes.meanmap_svm(2), STRINGS, LABELS),
    "points": (recipes.points(3), SERIES, LABELS[:8]),
    "product_svm": (recipes.product_svm(2), SERIES, LABELS[:8]),
    "series": (recipes.series(3, 2), SERIES, LABELS[:8]),
    "spectrum_svm": (recipes.spectrum_svm(2), STRINGS, LABELS),
    "symbols": (recipes.symbols(n_lags=3, n_gaps=2), STRINGS, LABELS),
    "symbols of dna": (recipes.symbols("dna", n_lags=2, n_gaps=1), DNA, LABELS),
    "symbols of proteins": (recipes.symbols("protein", n_lags=2, n_gaps=1), PROTEINS, LABELS),
    "text": (recipes.text(cv=2), TEXTS, NAMES),
}

# Of later versions, where another default warns.
MODERN = {name: False for name in LogisticRegressionCV().get_params() if name == "use_legacy_attributes"}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
BESIDE: dict[str, tuple[Any, Any, Any]] = {
    "SVC": (SVC(), TABLE, THREE),
    "SVC, poly": (SVC(kernel="poly", degree=2, coef0=1.0), TABLE, TWO),
    "SVC of a kernel": (SVC(kernel=RBF(0.1)), TABLE, THREE),
    "SVC, precomputed": (SVC(kernel="precomputed"), TABLE @ TABLE.T, THREE),
    "SVC, sparse": (make_pipeline(OneHotEncoder(), SVC()), TABLE.round(), THREE),
    "NuSVC": (NuSVC(nu=0.2), TABLE, THREE),
    "SVR": (SVR(), TABLE, TABLE[:, 0]),
    "OneClassSVM": (OneClassSVM(), TABLE, None),
    "LinearSVC": (LinearSVC(), TABLE, THREE),
    "LogisticRegression": (LogisticRegression(), TABLE, THREE),
    "LogisticRegressionCV": (LogisticRegressionCV(cv=2, **MODERN), TABLE, THREE),
    "RidgeClassifierCV": (RidgeClassifierCV(), TABLE, THREE),
    "SGDClassifier": (SGDClassifier(loss="log_loss", random_state=0), TABLE, THREE),
    "SGDClassifier, hinge": (SGDClassifier(random_state=np.random.RandomState(1)), TABLE, TWO),
    "OneVsRest": (OneVsRestClassifier(LinearSVC()), TABLE, THREE),
    "OneVsOne": (OneVsOneClassifier(SVC()), TABLE, THREE),
    "scalers": (
        make_pipeline(StandardScaler(), MinMaxScaler(), Normalizer(), QuantileTransformer(n_quantiles=8)),
        TABLE,
        None,
    ),
    "PCA": (make_pipeline(PCA(2), LinearDiscriminantAnalysis()), TABLE, THREE),
    "KernelPCA": (KernelPCA(2, kernel="rbf"), TABLE, None),
    "TruncatedSVD": (TruncatedSVD(2, random_state=0), TABLE, None),
    "Nystroem": (Nystroem(n_components=8, random_state=0), TABLE, None),
    "KernelRidge": (KernelRidge(kernel="rbf"), TABLE, TABLE[:, 1]),
    "CountVectorizer": (make_pipeline(CountVectorizer(), MultinomialNB()), TEXTS, NAMES),
    "TfidfVectorizer": (make_pipeline(TfidfVectorizer(stop_words=["my"]), LinearSVC()), TEXTS, NAMES),
    "GridSearchCV": (GridSearchCV(SVC(), {"C": [1, 2.0], "kernel": [RBF(), Linear()]}, cv=FOLDS), TABLE, THREE),
    "GridSearchCV, several scores": (
        GridSearchCV(SVC(), {"C": [1, 2]}, scoring=["accuracy", "f1_macro"], refit="accuracy", cv=2),
        TABLE,
        THREE,
    ),
    "GridSearchCV, given folds": (
        GridSearchCV(SVC(), [{"C": [1.0]}, {"gamma": [1, "scale"]}], cv=[(np.arange(20), np.arange(20, 30))]),
        TABLE,
        TWO,
    ),
    "GridSearchCV, repeated folds": (
        GridSearchCV(SVC(), {"C": np.logspace(0, 1, 2)}, cv=RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)),
        TABLE,
        TWO,
    ),
    "RandomizedSearchCV": (
        RandomizedSearchCV(LogisticRegression(), {"C": [0.1, 1]}, n_iter=1, scoring="neg_log_loss", cv=ShuffleSplit(2)),
        TABLE,
        TWO,
    ),
    "calibrated, sigmoid": (CalibratedClassifierCV(LinearSVC(), cv=2), TABLE, THREE),
    "calibrated, isotonic": (CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2, ensemble=False), TABLE, TWO),
    "StackingClassifier": (
        StackingClassifier([("a", SVC()), ("b", GaussianNB())], LogisticRegression(), cv=2),
        TABLE,
        THREE,
    ),
    "VotingClassifier": (VotingClassifier([("a", SVC()), ("b", GaussianNB())]), TABLE, THREE),
    "neighbours": (KNeighborsClassifier(3, algorithm="brute"), TABLE, THREE),
    "neighbours by a tree": (KNeighborsClassifier(3, algorithm="kd_tree", leaf_size=5), TABLE, THREE),
    "neighbours by balls": (KNeighborsClassifier(3, algorithm="ball_tree", metric="manhattan"), TABLE, TWO),
    "NearestCentroid": (NearestCentroid(), TABLE, THREE),
    "IsotonicRegression": (IsotonicRegression(out_of_bounds="clip"), TABLE[:, 0], TABLE[:, 1]),
    "functions": (make_pipeline(FunctionTransformer(np.log1p), SelectKBest(f_classif, k=2), GaussianNB()), COUNTS, TWO),
    "FeatureUnion": (FeatureUnion([("a", StandardScaler()), ("b", "passthrough")]), TABLE, None),
    "columns": (ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", "drop", slice(2, 3))]), TABLE, None),
    "SVC of objects": (make_pipeline(recipes.product_svm(1)[:-1], SVC(kernel="precomputed")), STRINGS, LABELS),
    "Gram of sequences": (
        recipes.product_svm(1).set_params(models="passthrough", gram__kernel=EmpiricalMean()),
        STRINGS,
        LABELS,
    ),
}
METHODS = ("predict", "decision_function", "predict_proba", "transform", "score_samples")


def results(estimator: Any, X: Any) -> dict[str, Any]:
    """Return all that a fitted estimator says of objects."""
    found = {name: getattr(estimator, name)(X) for name in METHODS if hasattr(estimator, name)}
    if hasattr(estimator, "model_") and hasattr(estimator.model_, "log_prob"):
        found["log_prob"] = estimator.model_.log_prob(X)
    return found
