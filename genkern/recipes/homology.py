"""Homology: from members of a superfamily of proteins and other sequences to a ranking of new ones."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from genkern.data.objects import as_alphabet
from genkern.kernels import LocalAlignment
from genkern.learn import KernelSVMClassifierCV
from genkern.models.profile.estimator import ProfileHMMEstimator
from genkern.preprocess.block_normalizer import BlockNormalizer
from genkern.preprocess.cross_fit import CrossFit
from genkern.preprocess.maps import PowerMap
from genkern.preprocess.unit_trace import UnitTrace
from genkern.recipes.homology_parts import CrossFitProfiles, Landmarks, ProfileOdds, ProfileScores
from genkern.recipes.learnt_sum import LearntSum
from genkern.recipes.recipe import Recipe
from genkern.recipes.symbols import symbols

ODDS = 0.1  # weight of the kernel of log-odds, one feature, beside those of the other parts
C = 10.0  # nearly no errors are allowed on training objects, however rare the positives
WORTH = 1.0  # independent sequences that the positives count as, for those sought are distant


def homology(
    *,
    profile: Any = None,
    n_landmarks: int = 1000,
    cv: int = 5,
    random_state: Any = 0,
    n_jobs: int | None = None,
    unknown: str | None = None,
    class_weight: Any = None,
) -> Pipeline:
    """Return a support vector machine that ranks proteins by their homology with some that are known.

    Labels say which training sequences belong to the superfamily (the second of the sorted labels, such as ``True`` or
    1) and which do not; ``decision_function`` is the ranking. The kernel is a sum of four, each of unit trace:

    - "symbols": the sum of kernels of ``symbols("protein")``;
    - "alignment": logarithms of the local alignment kernel, normalised, by landmarks (``Nystrom``): all positives, and
      as many of the others as there is room for;
    - "scores": Fisher scores of the match states of a profile of the positives, with signed roots and unit length;
    - "odds", of a tenth of the weight: the signed root of the log-odds of a profile, HMMER's score of one passage.

    Profiles have seen the positives, so that log-odds and scores of training sequences are out of fold (``CrossFit``).

    Parameters
    ----------
    profile : ProfileHMMEstimator, optional
        How a profile is fitted to the positives. The default takes them as they are, not aligned, BLOSUM62 as a prior,
        and counts them as one independent sequence. Whatever its ``flanks``, scores are of local passages, and the
        profile of the log-odds is fitted to glocal ones, which takes all positives from end to end.
    n_landmarks : int, default=1000
        Number of landmarks of the alignment kernel; all objects if there are fewer.
    cv : int, default=5
        Number of stratified folds in which features and the calibration leave sequences out. They keep groups whole,
        and are at most as many as the class with the fewest groups has.
    random_state : int, default=0
        Seed of the profiles, folds and landmarks.
    n_jobs : int, optional
        Threads.
    unknown : {"missing", "error"}, optional
        Symbols other than amino acids and their ambiguity codes are treated as missing, with a warning, or are an error
        (default).
    class_weight : None, "balanced" or dict of label to weight, default=None
        Weights of the losses of the classes' objects; "balanced" gives all classes the same weight together.

    Returns
    -------
    pipeline : Pipeline
        Steps "kernels" (a ``LearntSum`` of the four parts) and "svm". A part is left out by
        ``set_params(kernels__alignment="drop")``. ``explain`` takes decisions apart, also by the columns of the family
        (``Explanation.by_column``). Families that are known within the superfamily should be kept whole: ``fit(X, y,
        groups=families)``. Scores of each are then of profiles without it, as those of a new family will be.

    Notes
    -----
    Of more than two classes each is told from the rest, with a profile of its own.

    Settings were chosen in divisions of the training parts of eight families of SCOP 1.53 (``genkern reproduce
    homology``). The sum is not in a Gaussian kernel, as that of ``symbols`` is: features by landmarks are shorter for
    new objects than for landmarks, which says nothing about their inner products, but much about distances.

    References
    ----------
    Jaakkola, Diekhans & Haussler (2000), A discriminative framework for detecting remote protein homologies.
    Saigo, Vert, Ueda & Akutsu (2004), Protein homology detection using string alignment kernels.
    Liao & Noble (2003), Combining pairwise sequence similarity and support vector machines for detecting remote
    protein evolutionary and structural relationships.

    Examples
    --------
    >>> from genkern.recipes import homology
    >>> X = ["MKVLSEGAKWR", "AKVLSEGARW", "KVLTEGAKW", "KILSEGAKWG", "GGSPNNDTYQ", "PPNDSTQYGG", "NDPGSTYYQN", "SPNQTY"]
    >>> recipe = homology(cv=2).set_params(kernels__symbols="drop")
    >>> recipe.fit(X, [1, 1, 1, 1, 0, 0, 0, 0]).predict(["RKVLSDGAKW", "GSPNDTYQQ"])
    array([1, 0])
    """
    folds = StratifiedKFold(cv, shuffle=True, random_state=random_state)
    if profile is None:
        how = {"alphabet": "protein", "prior": "blosum", "effective": WORTH, "random_state": random_state}
        profile = ProfileHMMEstimator(**how, unknown=unknown)
    local, glocal = (clone(profile).set_params(flanks=kind) for kind in ("local", "glocal"))
    letters: Any = "protein" if unknown is None else as_alphabet("protein", unknown=unknown)
    aligned = LocalAlignment(alphabet=letters, logarithm=True).normalized()
    similar = Landmarks(aligned, n_landmarks, random_state, n_jobs)
    scores = CrossFitProfiles(BlockNormalizer(ProfileScores(local)), folds)
    odds = CrossFit(ProfileOdds(glocal), folds)
    known = symbols("protein", random_state=random_state, n_jobs=n_jobs, unknown=unknown)
    parts = [
        ("symbols", known.named_steps["kernels"]),
        ("alignment", Pipeline([("landmarks", similar), ("scale", UnitTrace())])),
        ("scores", Pipeline([("columns", scores), ("scale", UnitTrace())])),
        ("odds", Pipeline([("bits", odds), ("root", PowerMap(0.5)), ("scale", UnitTrace())])),
    ]
    svm = KernelSVMClassifierCV([C], "linear", cv=folds, n_jobs=n_jobs, class_weight=class_weight)
    return Recipe([("kernels", LearntSum(parts, transformer_weights={"odds": ODDS**0.5})), ("svm", svm)])
