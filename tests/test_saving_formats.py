"""Files of every format that was ever written, kept for ever: they load, and say what they said."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from format_files import ROWS, SERIES, TEXTS, WORDS, answers, examples

from genkern import load
from genkern.saving import ModelFileError, describe

DATA = Path(__file__).parent / "data"
FOUR = [word.ljust(5, "a") for word in WORDS]
ANSWERS = {
    "spectrum_svm": (WORDS, [-0.9145487652, -0.7913795387, -0.518052313, -1.0376797441, 0.6402837961, 0.9686172491]),
    "fisher_svm": (SERIES, [-0.9127341817, -0.9851401499, -0.9893445392, -0.8067975711, 0.8449575485, 0.9527128826]),
    "product_svm": (WORDS, [-0.9999920915, -1.1294226115, -0.9999920915, -1.0002687471, 0.9997312617, 1.012895309]),
    "aligned_symbols": (FOUR, [-1.50023816, -1.50023816, -1.1122985084, -2.7656156092, 1.50023816, 1.50023816]),
    "symbols": (WORDS, [-0.9797016991, -1.0177061905, -0.9621188406, -1.0027896565, 0.9843696799, 0.9967885135]),
    "text": (TEXTS, [-0.5712382376, -0.6559075002, -0.5786810614, -0.4275598807, 0.6069399881, 0.4815186425]),
    "plug_in": (WORDS, [-14.6796458012, -16.1759926239, -11.1867459691, -20.9617013916, 10.8465846046, 16.1062835561]),
    "ridge": (ROWS, [-0.9574979866, -0.9872926091, -0.9741974672, -1.0346381544, 0.9751952359, 0.9818065486]),
    "svc": (ROWS, [-1.0001585373, -1.020025803, -0.9426077156, -1.0523754249, 1.0003170423, 0.9998414681]),
    "search": (ROWS, [-0.8787368595, -0.8195821703, -0.5198072722, -0.8310129629, 0.4386721114, 1.0993773229]),
    "calibrated": (ROWS, [1.0, 0.0, 1.0, 0.0, 0.8977372363, 0.1022627637]),
    "products": (ROWS, [-0.9995857757, -0.9999624891, -1.0000233509, -1.0803314945, 1.0005212539, 0.9995251788]),
    "nystrom": (ROWS, [-0.668109982, -0.9434982502, -0.8134448554, -0.8126366258, 0.9119983848, 0.5079289632]),
    "mixture": (SERIES, [-2.2551113696, -1.556690272, -0.9343991638, -0.3478706148, 0.3292265848, 0.9607798748]),
    "states": (WORDS, [-0.9041907658, -1.1649398984, -0.9174429792, -1.4258413919, 0.9041966439, 1.1654068562]),
    "auto": (WORDS, [-1.9669636496, -2.7947832585, -2.0830376624, -3.0012098855, 1.9732252588, 2.4612228406]),
    "hmm": (WORDS, [-2.7201253127, -3.2443109474, -2.8259641828, -1.2595436555, -3.3465245543, -2.140891504]),
    "gaussian": ([ROWS], [-45.0781052535]),
    "hmm_estimator": (
        WORDS,
        [-2.7714500026, -3.4651691447, -2.7713709824, -2.7725909014, -2.7737301471, -2.0800137429],
    ),
    "gaussian_estimator": ([ROWS], [-20.5258666023]),
    "kernel": (None, [1.3706418, 1.3706418, 1.3706418, 1.3706418]),
    "spectrum": (["ACGTN", "GGG"], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
}
FILES = sorted(DATA.glob("format*/*.gk"))


@pytest.mark.filterwarnings("ignore:genkern.load:UserWarning")  # of scikit-learn's version, which goes on
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_all_formats_say_what_they_said(path):
    about = describe(path)
    assert about["format"] == int(path.parent.name.removeprefix("format"))
    there = about["versions"]["scikit-learn"]
    X, expected = ANSWERS[path.stem]
    try:
        found = load(path)
    except ModelFileError as error:
        if there == version("scikit-learn") or f"scikit-learn {there}" not in str(error):
            raise
        return  # parameters of scikit-learn come and go, and the error names the version
    if X is None:
        law = load(path.with_stem("hmm"))
        X = [law, law]
    np.testing.assert_allclose(answers(found, X), expected, rtol=1e-7, atol=1e-9)


def test_no_file_is_missing():
    assert {path.stem for path in FILES} == set(ANSWERS)
    assert sum(path.stat().st_size for path in FILES) < 100_000


@pytest.mark.filterwarnings("ignore")
def test_files_are_of_what_is_written_today():
    assert set(examples()) == set(ANSWERS)
