"""One embedding on windows of many widths."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from genkern.data.objects import Packed, handed_on, pack_series
from genkern.data.transformer import Transformer
from genkern.preprocess.windows import Windows
from genkern.progress import divided
from genkern.threads import one_blas_thread
from genkern.validation import Floats, carried, check_int, made_once, one_warning_each

WIDTHS = (1, 3, 5, 9, 17, 33, 65, 129)
LEAST = 200  # series that an embedding is fitted to, where there are as many


class MultiScale(Transformer):
    r"""Embed the windows of series at several widths, each as it is and normalised, and put the features side by side.

    .. math:: \phi(x) = \big(\phi_{wv}(\mathrm{Windows}_{wv}(x))\big)_{w, v}, \qquad
       \langle \phi(x), \phi(x') \rangle = \sum_{w, v} k_{wv}(x, x')

    a sum of kernels over all scales, so that none need be chosen.

    Parameters
    ----------
    embedding : transformer
        Of lists of series to features, such as ``FisherScore(MixtureEstimator(32))``; a clone is fitted to the windows
        of each kind. Several embeddings are several ``MultiScale`` in a ``sklearn.pipeline.FeatureUnion``.
    widths : "auto" or sequence of ints, default="auto"
        "auto" is 1, 3, 5, 9, 17, 33, 65, 129, up to a third of the median length of the training series.
    normalize : sequence of bool, default=(False, True)
        The versions of the windows, as in ``Windows``. Width 1 has only one.
    n_dct, circular, stride : see Windows
        Here the default of ``stride`` is "auto".
    n_jobs : int, optional
        Threads, over kinds of windows.
    most : int, optional
        The embedding is fitted to series drawn at random that have so many positions together, but to 200 of them at
        least; by default to all.
    rest : see Windows

    Attributes
    ----------
    parts_ : dict of str to Pipeline
        The fitted steps "windows" and "embedding" of each kind: "w1", "w3", "w3_normalized", ...
    blocks_ : dict of str to slice
        The features of each kind.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import FisherScore, GaussianEstimator, MultiScale
    >>> X = [np.sin(np.arange(length) / 3.0) for length in (20, 30, 25)]
    >>> scales = MultiScale(FisherScore(GaussianEstimator())).fit(X)
    >>> list(scales.parts_), scales.transform(X).shape
    (['w1', 'w3', 'w3_normalized', 'w5', 'w5_normalized'], (3, 34))
    >>> str(scales.get_feature_names_out()[2])
    'w3__mean[0]'
    """

    _fitted = "n_channels_"
    _refuses_y = False

    def __init__(
        self,
        embedding: Any,
        widths: Any = "auto",
        normalize: Any = (False, True),
        n_dct: int | None = None,
        circular: bool = False,
        stride: int | str = "auto",
        n_jobs: int | None = None,
        most: int | None = None,
        rest: bool = False,
    ):
        self.embedding = embedding
        self.widths = widths
        self.normalize = normalize
        self.n_dct = n_dct
        self.circular = circular
        self.stride = stride
        self.n_jobs = n_jobs
        self.most = most
        self.rest = rest

    _work = 30.0

    @one_warning_each()
    def _fit(self, X: Any, y: Any) -> Floats | None:
        packed = pack_series(X, "MultiScale")
        parts = self._parts(float(np.median(packed.lengths)))
        rows = self._drawn(packed.lengths)
        some = len(rows) < packed.n_objects
        if some:
            part, labels = handed_on(packed.take(rows)), None if y is None else np.asarray(y)[rows]
            features = self._run(_fit_transform, parts, part, labels)
        else:
            features = self._run(_fit_transform, parts, _as_list(X, packed), y)
        ends = np.cumsum([0, *(block.shape[1] for block in features)]).tolist()
        self.blocks_ = {name: slice(*bounds) for name, bounds in zip(parts, pairwise(ends))}
        self.parts_, self.n_channels_ = parts, packed.values.shape[1]
        return None if some else _side_by_side(features)

    @one_warning_each()
    def _transform(self, X: Any) -> Floats:
        packed = pack_series(X, "MultiScale", n_channels=self.n_channels_)
        with one_blas_thread():
            return _side_by_side(self._run(_transform, self.parts_, _as_list(X, packed)))

    def _names_out(self, given: Any) -> Any:
        """Return the names that the embedding gives, with the kind of window in front."""
        return [f"{kind}__{name}" for kind, part in self.parts_.items() for name in part[-1].get_feature_names_out()]

    def _drawn(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the series that the embedding is fitted to."""
        order = np.random.default_rng(0).permutation(len(lengths))
        if self.most is None:
            return np.sort(order)
        most = check_int(self.most, "most", "MultiScale", 1)
        enough = 1 + int(np.searchsorted(np.cumsum(lengths[order]), most))
        return np.sort(order[: max(enough, LEAST)])

    def _parts(self, length: float) -> dict[str, Pipeline]:
        """Return unfitted pipelines by kind of window, for series of this median length."""
        widths, versions = self.widths, tuple(np.atleast_1d(np.asarray(self.normalize, dtype=object)))
        if isinstance(widths, str) and widths == "auto":
            widths = [width for width in WIDTHS if width == 1 or 3 * width <= length]
        widths = [check_int(width, "widths", "MultiScale (if not 'auto')", 1) for width in widths]
        if not versions or not set(versions) <= {False, True}:
            raise ValueError(
                "The 'normalize' parameter of MultiScale must hold the versions wanted: (False,), (True,) or both. "
                f"Got {self.normalize!r} instead."
            )
        plain = Windows(n_dct=self.n_dct, circular=self.circular, stride=self.stride, rest=self.rest)
        kinds = [(width, version) for width in widths for version in versions if width > 1 or version == versions[0]]
        return {
            f"w{width}{'_normalized' if version and width > 1 else ''}": Pipeline(
                [
                    ("windows", clone(plain).set_params(widths=width, normalize=version)),
                    ("embedding", clone(self.embedding)),
                ]
            )
            for width, version in kinds
        }

    def _run(self, work: Any, parts: dict[str, Pipeline], *given: Any) -> list[Floats]:
        """Return the result of the work on every part."""
        first, *others = parts.values()
        # The first is run alone, since threads must not load or compile code at the same time.
        work = divided(work, len(parts))
        block = work(first, *given)
        if effective_n_jobs(self.n_jobs) == 1:
            return [block, *(work(part, *given) for part in others)]
        tasks = (delayed(carried(work))(part, *given) for part in others)
        return [block, *Parallel(n_jobs=self.n_jobs, require="sharedmem")(tasks)]


def _as_list(X: Any, packed: Packed) -> list[Any]:
    """Return X itself if it is a list, whose encoding the call under way remembers, else the packed series as one."""
    if type(X) is list:
        return X
    return made_once(X, "series", lambda: handed_on(packed), lambda _: int(packed.values.nbytes))


def _side_by_side(blocks: list[Floats]) -> Floats:
    """Return the blocks of features in one table; the list is emptied, so that memory never holds them twice."""
    whole = np.empty((len(blocks[0]), sum(block.shape[1] for block in blocks)))
    end = whole.shape[1]
    while blocks:
        block = blocks.pop()
        end -= block.shape[1]
        whole[:, end : end + block.shape[1]] = block
    return whole


def _fit_transform(part: Pipeline, series: Any, y: Any) -> Floats:
    """Fit a pipeline in place; return its features (n, p)."""
    return np.asarray(part.fit_transform(series, y), np.float64)


def _transform(part: Pipeline, series: Any) -> Floats:
    """Return the features (n, p) of a pipeline."""
    for _, step in part.steps:  # as the pipeline would, without asking for the tags of all
        series = step.transform(series)
    return np.asarray(series, np.float64)
