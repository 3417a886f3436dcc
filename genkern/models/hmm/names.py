"""What the names of hmmlearn are called here: told where somebody asks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

OURS = {
    "score": "log_prob(X).sum()",
    "score_samples": "posterior(X)",
    "predict": "viterbi(X)",
    "decode": "viterbi(X)",
    "predict_proba": "posterior(X)",
    "startprob_": "start",
    "transmat_": "transitions",
    "emissionprob_": "emissions.probs",
    "means_": "emissions.mean",
    "covars_": "emissions.cov",
    "weights_": "emissions.weights",
    "lambdas_": "emissions.rate",
}


class NamesOfHmmlearn:
    """Has none of them, and says what to ask for instead."""

    _path: ClassVar[str] = ""  # of the model

    if not TYPE_CHECKING:  # every other name would be known to type checkers

        def __getattr__(self, name: str) -> Any:
            hint = f"; here it is {self._path}{OURS[name]}" if name in OURS else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)
