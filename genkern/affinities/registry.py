"""Log kernel values between models: one callable, and the table of formulas behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np

from genkern.affinities.collection import Collection, Group, as_collection
from genkern.affinities.how import How
from genkern.affinities.rules import AffinityExplanation, PairError, Rule, Table
from genkern.validation import Floats, check_int

Formula = TypeVar("Formula", bound=Callable[..., Any])
Line = tuple[type, ...]  # a class and its ancestors, the nearest first


class Affinity:
    r"""Log kernel values between models.

    .. math:: \log \int p(x)^\rho q(x)^\rho dx \quad (\mathrm{Power}), \qquad
              \log E\, e^{-\frac{\lambda}{2}\|X - Y\|^2} \quad (\mathrm{Expected})

    Parameters
    ----------
    P, Q : Model, stack of models or list of models
        The models; a list of n models is a batch ``(n,)`` and may mix classes and sizes. If ``P is Q`` the result is
        symmetric, at half the cost.
    how : Power or Expected
        The comparison.
    length : int, optional
        Number of observations, which are symbols or points. Independent draws (leaves) give ``length`` times the
        value of one draw; a row of a ``BayesNet`` holds as many observations as there are observed nodes. Sequence
        models need it, unless both have ``stop`` probabilities: then the default is all lengths at once.
    method : str, default="exact"
        The kind of formula; approximations are never chosen silently.

    Returns
    -------
    ndarray of shape P.shape + Q.shape
        Logarithms; -inf where the supports are disjoint.

    Notes
    -----
    ``affinity.table()`` lists the formulas, ``affinity.explain(p, q, how)`` names the one that is used,
    ``affinity.register`` adds one, also for classes of other packages.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels. Mehta & Gray (2010), Generative and latent mean map
    kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Categorical, Expected, Power, affinity
    >>> p, q = Categorical([0.5, 0.5]), Categorical([[0.9, 0.1], [0.5, 0.5]])
    >>> affinity(p, q, Power(1.0)).round(4)
    array([-0.6931, -0.6931])
    >>> affinity.explain(p, q, Power(1.0)).kind
    'exact'
    """

    def __init__(self) -> None:
        self._rules: dict[tuple[type, type, type, str, str], Rule] = {}
        self._found: dict[tuple[Any, ...], tuple[Rule, bool]] = {}

    def __repr__(self) -> str:
        return f"affinity(P, Q, how, length=None, method='exact'), {len(self._rules)} formulas: see affinity.table()"

    # --- values

    def __call__(self, P: Any, Q: Any, how: How, length: int | None = None, method: str = "exact") -> Floats:
        """Return log kernel values of shape P.shape + Q.shape; see the class for the arguments."""
        length = _checked(how, length)
        left = as_collection(P, "affinity")
        right = left if Q is P else as_collection(Q, "affinity")
        return self._cross(left, right, how, length, method).reshape(left.shape + right.shape)

    def diag(self, P: Any, how: How, length: int | None = None, method: str = "exact") -> Floats:
        """Return log kernel values of each model with itself, shape P.shape, without the rest of the matrix.

        Parameters
        ----------
        P : Model, stack of models or list of models
            The models.
        how : Power or Expected
            The comparison.
        length : int, optional
            Number of observations.
        method : str, default="exact"
            The kind of formula.
        """
        length = _checked(how, length)
        models = as_collection(P, "affinity.diag")
        logs = models.diagonal((how, length, method), lambda whole: self._diagonal(whole, how, length, method))
        return logs.reshape(models.shape)

    def _diagonal(self, models: Collection, how: How, length: int | None, method: str) -> Floats:
        """Return logs (n,)."""
        out = np.empty(len(models))
        for stack, places in models.groups:
            pairs = stack[:, None]  # a batch (n, 1): n blocks of one pair each
            try:
                out[places] = self.block(pairs, pairs, how, length, method)[:, 0, 0]
            except PairError as error:
                raise _named(error, places[error.index[0]], places[error.index[0]]) from None
        return out

    def block(self, P: Any, Q: Any, how: How, length: int | None = None, method: str = "exact") -> Floats:
        """Return logs G + (a, b) for stacks of batch G + (a,) and G + (b,): for formulas that use others.

        As in a matrix product, the leading axes G are paired and the last ones crossed.

        Parameters
        ----------
        P, Q : stack of models
            Stacks of batch G + (a,) and G + (b,).
        how : Power or Expected
            The comparison.
        length : int, optional
            Number of observations.
        method : str, default="exact"
            The kind of formula.
        """
        rule, turned = self._find(P, Q, how, length, method)
        if not turned:
            return rule.block(P, Q, how, length)
        try:
            return np.swapaxes(rule.block(Q, P, how, length), -1, -2)
        except PairError as error:
            raise PairError((*error.index[:-2], error.index[-1], error.index[-2]), error.text) from None

    def factors(self, P: Any, Q: Any, how: How, method: str = "exact") -> tuple[Floats, Floats] | None:
        """Return rows G + (a, k) and G + (b, k), the inner products of which are the values of one observation.

        None where the formula has no such factors, or where their products might underflow.

        Parameters
        ----------
        P, Q : stack of models
            Stacks of batch G + (a,) and G + (b,).
        how : Power or Expected
            The comparison.
        method : str, default="exact"
            The kind of formula.
        """
        rule, turned = self._find(P, Q, how, None, method)
        if rule.factors is None:
            return None
        found = rule.factors(Q, P, how) if turned else rule.factors(P, Q, how)
        return (found[1], found[0]) if turned and found is not None else found

    def _cross(self, left: Collection, right: Collection, how: How, length: int | None, method: str) -> Floats:
        """Return logs (n, m) of two collections, symmetric if they are one and the same."""
        out = np.empty((len(left), len(right)))
        for g, first in enumerate(left.groups):
            for h, second in enumerate(right.groups):
                if left is right and h < g:
                    continue
                block = self._groups(first, second, how, length, method)
                if block.shape == out.shape:
                    return block
                out[np.ix_(first.places, second.places)] = block
                if left is right and h > g:
                    out[np.ix_(second.places, first.places)] = block.T
        return out

    def _groups(self, first: Group, second: Group, how: How, length: int | None, method: str) -> Floats:
        """Return logs between two stacks, naming the models if a pair cannot be compared."""
        try:
            if first.stack is second.stack:
                rule, _ = self._find(first.stack, first.stack, how, length, method)
                return rule.square(first.stack, how, length)
            return self.block(first.stack, second.stack, how, length, method)
        except PairError as error:
            i, j = error.index
            raise _named(error, first.places[i], second.places[j]) from None

    # --- the table

    def register(
        self,
        left: type,
        right: type,
        how: type,
        method: str = "exact",
        *,
        reference: str,
        name: str | None = None,
        length: Literal["iid", "given", "all"] = "iid",
        exact: Literal[True, "bound", "sampled"] = True,
        parts: tuple[str, ...] = (),
        factors: Callable[..., tuple[Floats, Floats] | None] | None = None,
        error: Callable[..., float] | None = None,
        whole: bool = False,
    ) -> Callable[[Formula], Formula]:
        """Return a decorator that enters a formula into the table.

        The formula takes stacks P of batch G + (a,) and Q of batch G + (b,) and the ``how``, and returns logs G +
        (a, b): as in a matrix product, the leading axes G are paired and the last ones crossed. It is also used for the
        reversed pair of classes, and for subclasses without a more specific formula.

        Parameters
        ----------
        left, right : type
            Classes of models.
        how : type
            Class of the comparison: Power, Expected or another.
        method : str, default="exact"
            Name in the parameter ``method``.
        reference : str
            Paper and equation.
        name : str, optional
            Name of the formula; the default is the function's.
        length : {"iid", "given", "all"}, default="iid"
            "iid": the formula compares one draw, and L independent ones are its L-th power. "given": it takes the
            length as a fourth argument. "all": it sums over all lengths, and is used without a length.
        exact : True, "bound" or "sampled", default=True
            The kind of values.
        parts : tuple of str, default=()
            Attributes of the models whose affinities the formula uses, such as ``"emissions"``.
        factors : callable, optional
            For formulas whose values are inner products of non-negative rows: a function of the same arguments that
            returns these rows, G + (a, k) and G + (b, k), or None where the products might underflow.
        error : callable, optional
            For sampled values: a function of two single models, the ``how`` and, where the formula takes one, the
            length, that returns the standard error of the log value.
        whole : bool, default=False
            Whether the formula bounds its memory itself and is symmetric to the last bit where P is Q. Otherwise a
            stack is compared with itself in bands of rows.

        Examples
        --------
        >>> from genkern.affinities import Affinity, Power
        >>> affinity = Affinity()  # an empty table; genkern.affinity is the full one
        >>> class Point: ...
        >>> @affinity.register(Point, Point, Power, reference="an example")
        ... def one(P, Q, how):
        ...     return 0.0
        >>> affinity.table()
        models         how    length  method  kind   formula  reference
        Point x Point  Power  iid     exact   exact  one      an example
        """

        def enter(formula: Formula) -> Formula:
            kind = "exact" if exact is True else exact
            title = formula.__name__ if name is None else name
            key = (left, right, how, method, length)
            # A formula is used for the reversed pair, too: two of them could make the affinity asymmetric.
            held = self._rules.get(key) or self._rules.get((right, left, how, method, length))
            if held is not None:
                raise ValueError(
                    f"affinity.register: {held.left.__name__} x {held.right.__name__} under {how.__name__} has the "
                    f"formula {held.name!r} already (method={method!r}, length={length!r}), which serves the reversed "
                    "pair too. Give another method= to have both."
                )
            self._rules[key] = Rule(
                left, right, how, method, length, title, reference, kind, parts, formula, factors, error, whole
            )
            self._found.clear()
            return formula

        return enter

    def table(self, *words: str) -> Table:
        """Return the rules, in the order of their registration; it prints as a table of at most 120 columns.

        Parameters
        ----------
        *words : str
            Keep rules that have every one of these as the name of a model's class, of the comparison, length, method
            or kind: ``affinity.table("HMM", "Power")``. Capitals do not matter.
        """
        return Table(self._rules.values()).having(*words)

    def explain(
        self, p: Any, q: Any, how: How, length: int | None = None, method: str = "exact"
    ) -> AffinityExplanation:
        """Return the formula for two models, its reference, and its kind.

        Parameters
        ----------
        p, q : Model
            Models or stacks.
        how : Power or Expected
            The comparison.
        length : int, optional
            Number of observations.
        method : str, default="exact"
            The kind of formula.
        """
        rule, turned = self._find(p, q, how, _checked(how, length), method)
        first, second = (q, p) if turned else (p, q)
        parts = {part: self.explain(getattr(first, part), getattr(second, part), how) for part in rule.parts}
        if rule.error is None or first.shape or second.shape:
            return AffinityExplanation(rule.name, rule.reference, rule.kind, parts)
        lengths = () if length is None else (length,)
        return AffinityExplanation(
            rule.name, rule.reference, rule.kind, parts, rule.error(first, second, how, *lengths)
        )

    def _find(self, P: Any, Q: Any, how: How, length: int | None, method: str) -> tuple[Rule, bool]:
        """Return the nearest rule, and whether it is for the reversed pair: not if it fits both ways equally well."""
        left, right = (getattr(models, "lineage", type(models).__mro__) for models in (P, Q))
        key = (left, right, type(how), length is None, method)
        if key not in self._found:
            self._found[key] = self._search((left, right), type(how), length is None, method)
        return self._found[key]

    def _search(self, lines: tuple[Line, Line], how: type, free: bool, method: str) -> tuple[Rule, bool]:
        found: list[tuple[int, bool, Rule]] = []
        for rule in self._rules.values():
            if rule.method != method or rule.length == ("given" if free else "all"):
                continue
            for turned in (False, True):
                sides = (*(reversed(lines) if turned else lines), how.__mro__)
                wanted = (rule.left, rule.right, rule.how)
                if all(kind in line for line, kind in zip(sides, wanted)):
                    found.append((sum(line.index(kind) for line, kind in zip(sides, wanted)), turned, rule))
        if not found:
            raise self._missing(lines, how, free, method)
        least = min(steps for steps, _, _ in found)
        # Both ways count, or two rules could win, one for each order of the pair.
        nearest = {id(rule): (rule, turned) for steps, turned, rule in reversed(found) if steps == least}
        if len(nearest) > 1:
            tied = [rule for rule, _ in reversed(nearest.values())]
            names = " and ".join(f"{r.name!r} ({r.left.__name__} x {r.right.__name__})" for r in tied)
            raise TypeError(
                f"affinity: {_pair(lines)} under {how.__name__} fits {names} equally well; "
                "register a formula for this very pair."
            )
        return next(iter(nearest.values()))

    def _missing(self, lines: tuple[Line, Line], how: type, free: bool, method: str) -> Exception:
        """Return the error for a pair without a formula, naming the available ones."""
        pair = f"{_pair(lines)} under {how.__name__}"
        fitting = [
            rule
            for rule in self._rules.values()
            if issubclass(how, rule.how) and any(rule.left in a and rule.right in b for a, b in (lines, lines[::-1]))
        ]
        if any(rule.method == method for rule in fitting):
            return needs_length(pair) if free else TypeError(f"affinity: {pair} takes no length: leave it out.")
        methods = ", ".join(sorted({repr(rule.method) for rule in fitting})) or "none"
        return TypeError(
            f"affinity: there is no formula for {pair} with method={method!r}. Methods for this pair: {methods}; "
            "affinity.table() lists all formulas, affinity.register adds one, and Sampled(model, n) compares any two "
            "models by draws."
        )


def _pair(lines: tuple[Line, Line]) -> str:
    return " x ".join(line[0].__name__ for line in lines)


def _checked(how: Any, length: Any) -> int | None:
    """Return the length, after checking it and the comparison."""
    if not isinstance(how, How):
        raise TypeError(f"affinity: 'how' must be Power(rho) or Expected(lam). Got {how!r} instead.")
    return None if length is None else check_int(length, "length", "affinity", 1)


def _named(error: PairError, i: int, j: int) -> ValueError:
    return ValueError(f"affinity: models {i} and {j}: {error.text}")


def needs_length(pair: str) -> ValueError:
    """Return the error for sequence models compared without a length."""
    return ValueError(
        f"affinity: {pair} needs length=, the number of observations to compare. Jebara, Kondor & Howard (2004) took "
        "about 10, Mehta & Gray (2010) tried several fixed ones. Try a small one (length=10, or the median length of "
        "your sequences, FitEach's median_length_, if they are short): normalised values fall exponentially with it. "
        "Or give both models 'stop' probabilities, which compares all lengths at once."
    )


affinity = Affinity()
