"""What features are called: the parts of a pipeline they belong to, their channel, and labels that can be read."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from genkern.features.log_odds import LogOddsWeights
from genkern.features.model_log_odds import ModelLogOdds
from genkern.features.positional import PlacedSpectrum, PositionalSpectrum
from genkern.features.spectrum import Spectrum
from genkern.preprocess.windows import Windows

PARAMETER = re.compile(r"(?P<before>.*?)(?P<owners>(?:emissions\.|components\.)*)(?P<field>\w+)\[(?P<index>[^\[\]]*)\]")
WINDOW, OFFSETS = re.compile(r"w(\d+)(_normalized)?"), re.compile(r"\d+(-\d+)+")
PRODUCT = re.compile(r"(?P<first>.+)\*(?P<second>.+)@(?P<lag>\d+)")
STATES = {"M": "match", "I": "insertion", "D": "deletion"}  # of profiles
OWNERS = {"emissions": "state", "components": "component"}
SPREADS = {"cov": "covariance", "obs_cov": "covariance", "probs": "probability", "prob": "probability"}
# Fields of models whose last index is a channel, if observations have channels.
LEVELS = ("mean", "means", "offset", "rate", "prob", "probs", "alpha")
OF_CHANNELS = (*LEVELS, "variance", "cov", "obs_cov", "scale", "shapes", "concentration", "size", "df")


class Column(NamedTuple):
    """A coordinate of the observations that an embedding reads.

    Attributes
    ----------
    name : str
        As ``get_feature_names_out`` gives it.
    channel : str
        The channel of the series that it is made of.
    text : str
        What it is, in words.
    """

    name: str
    channel: str
    text: str


class About(NamedTuple):
    """What is known of a feature: its block within the embedding, its label, its channel; empty if there is none."""

    block: str
    text: str
    channel: str = ""


class Part(NamedTuple):
    """Where features come from: names of parts of the pipeline, outermost first, and the step that made them."""

    path: tuple[str, ...]
    step: Any
    columns: list[Column] | None


class Features(NamedTuple):
    """The features of a pipeline.

    Attributes
    ----------
    own : (p,) str
        Names, as the step that made a feature gives them.
    owner : (p,) int
        The part of each feature.
    parts : tuple of Part
    """

    own: NDArray[np.object_]
    owner: NDArray[np.int64]
    parts: tuple[Part, ...]

    def names(self) -> NDArray[np.object_]:
        """Return unique names (p,), those of the parts in front."""
        fronts = ["".join(f"{piece}__" for piece in part.path) for part in self.parts]
        return np.array([fronts[i] + str(name) for i, name in zip(self.owner.tolist(), self.own)], dtype=object)

    def about(self, j: int) -> About:
        """Return what is known of a feature."""
        part = self.parts[self.owner[j]]
        return describe(part.step, str(self.own[j]), part.columns)

    def label(self, j: int) -> str:
        """Return the label of a feature, its parts in brackets behind it."""
        part, text = self.parts[self.owner[j]], self.about(j).text
        if isinstance(part.step, ModelLogOdds):  # the model says more than the name of the part
            return text
        said = [
            _piece(piece)
            for piece in part.path
            if piece != text and not ("window of" in text and WINDOW.fullmatch(piece))
        ]
        return f"{text} ({', '.join(said)})" if said else text

    def paths(self) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
        """Return the different blocks, as paths of parts and sub-parts in their order, and that of each feature."""
        blocks = [(*self.parts[i].path, self.about(j).block) for j, i in enumerate(self.owner.tolist())]
        return _numbered([tuple(filter(None, path)) or ("features",) for path in blocks])

    def channels(self) -> tuple[list[str], NDArray[np.int64]]:
        """Return the different channels in their order, empty for none, and that of each feature."""
        return _numbered([self.about(j).channel for j in range(len(self.own))])

    def select(self, kept: Any) -> Features:
        """Return some of the features."""
        return self._replace(own=self.own[kept], owner=self.owner[kept])


def made_by(step: Any, names: Any, columns: list[Column] | None = None) -> Features:
    """Return the features that a step makes."""
    own = np.asarray(names, dtype=object)
    return Features(own, np.zeros(len(own), np.int64), (Part((), step, columns),))


def united(parts: dict[str, Features]) -> Features:
    """Return the features of several parts side by side."""
    starts = np.cumsum([0, *(len(part.parts) for part in parts.values())])
    return Features(
        np.concatenate([part.own for part in parts.values()]),
        np.concatenate([part.owner + start for part, start in zip(parts.values(), starts)]),
        tuple(inner._replace(path=(name, *inner.path)) for name, part in parts.items() for inner in part.parts),
    )


def channels_of(x: Any, names: Any = None) -> list[Column] | None:
    """Return the columns of a series, x0, x1, ... or as named; None if the object is none."""
    shape = getattr(x, "shape", None) or np.shape(x)
    kind = getattr(x, "dtype", None) or np.asarray(x).dtype
    if kind.kind not in "fiub" or len(shape) > 2 or (len(shape) == 1 and kind.kind != "f"):
        return None
    return named([f"x{c}" for c in range(shape[1] if len(shape) == 2 else 1)] if names is None else list(names))


def named(names: list[str]) -> list[Column]:
    """Return columns that are channels with these names."""
    return [Column(name, name, f"channel {name}") for name in names]


def columns_after(step: Any, columns: list[Column], width: int) -> list[Column]:
    """Return the columns of series that a step has made of others, of which there are ``width``."""
    if isinstance(step, Windows):
        return _windowed(step, columns)
    if not hasattr(step, "get_feature_names_out"):
        return columns if len(columns) == width else named([f"x{c}" for c in range(width)])
    known = {column.name: column for column in columns}
    found = [str(name) for name in step.get_feature_names_out([column.name for column in columns])]
    return [known.get(column.name, column) for column in named(found)]


def _windowed(step: Windows, columns: list[Column]) -> list[Column]:
    """Return the columns of windows."""
    kind = "normalised window" if step.normalize else "window"
    found = []
    for name in step.get_feature_names_out([column.name for column in columns]):
        before, width, what = str(name).rsplit("_", 2)
        (column,) = (column for column in columns if column.name == before)
        said = {"mean": "average", "rest": "what is left"}.get(what, what.replace("dct", "cosine "))
        text = column.text if width == "w1" else f"{column.text}, {kind} of {width[1:]}, {said}"
        found.append(Column(str(name), column.channel, text))
    return found


def grouped(paths: list[tuple[str, ...]], owner: NDArray[np.int64], depth: int) -> tuple[list[str], Any]:
    """Return the names of the blocks of some depth, and which features belong to each, a sparse array (p, B)."""
    names, group = _numbered([" / ".join(path[:depth]) for path in paths])
    return names, membership(group[owner], len(names))


def membership(owner: NDArray[np.int64], count: int) -> Any:
    """Return which features (p,) belong to each of ``count`` owners, a sparse array (p, count) of ones."""
    return sparse.csr_array((np.ones(len(owner)), (np.arange(len(owner)), owner)), (len(owner), count))


# --- features, by the step that makes them


@singledispatch
def describe(step: Any, name: str, columns: list[Column] | None) -> About:
    """Return what is known of a feature by its name."""
    found = PARAMETER.fullmatch(name)
    if found is None:
        return About("v", "log-odds") if name == "v" else _product(name)
    if _of_network(step):  # names of nodes may be any, and their columns are no channels
        return About(name.rpartition("[")[0], name)
    index = found["index"].split(",")
    owners = [OWNERS[owner] for owner in found["owners"].split(".") if owner]
    channel, text = _channel(found["field"], index, len(owners), columns), ""
    if channel is not None:
        text = f"{channel.text}: "
    text += _parameter(found["field"], index, owners, channel is not None, step)
    block = name.rpartition("[")[0]
    return About(block, text + _before(found["before"]), "" if channel is None else channel.channel)


def _of_network(step: Any) -> bool:
    """Return whether features are parameters of a network, or of one for each class."""
    model = getattr(step, "model_", None)
    models = list(getattr(model, "class_models", {}).values()) or [model]
    return hasattr(models[0], "graph")


def _has_columns(step: Any) -> bool:
    """Return whether features are parameters of a profile, or of one for each class."""
    model = getattr(step, "model_", None)
    models = list(getattr(model, "class_models", {}).values()) or [model]
    return hasattr(models[0], "n_columns")


def _of_column(field: str, index: list[str]) -> str:
    """Return the words for a parameter of a profile: a letter, an insertion or a transition at a column."""
    first, *rest = index
    if field == "match":
        return f"{rest[0]} in column {first}"
    if field == "insert":
        return f"{rest[0]} inserted after column {first}"
    if field == "transitions":
        before, after = (STATES[letter] for letter in rest[0])
        return f"{before} to {after} after column {first}"
    if field in ("entry", "exits"):
        where = f"column {first}" if first != "0" else "the beginning"
        return f"entry at {where}" if field == "entry" else f"{rest[0]} {where}"
    names = {"N": "before", "J": "between", "C": "after"}
    if field == "flanks" and first in names:
        return f"flank {names[first]} the columns: {rest[0]}"
    return f"visits of {first}" if field == "occupancy" else " ".join([field, *index])


def _before(text: str) -> str:
    """Return the words for the prefix of a parameter: "B." for a class, "v[A]:B." for log-odds and a class."""
    odds, _, label = text.removesuffix(".").rpartition(":")
    if label.startswith("systems["):
        label, noun = label[8:-1], "system"
    else:
        noun = "class"
    said = [f"log-odds of {odds[2:-1] or odds}"] if odds else []
    return "".join(f", {part}" for part in [*said, *([f"{noun} {label}"] if label else [])])


def _product(name: str) -> About:
    """Return what is known of a feature that is no parameter: a product of two channels, or a name of its own."""
    found = PRODUCT.fullmatch(name)
    if found is None:
        return About("", name)
    first, second = (re.sub(r"_w\d+_mean$", "", found[which]) for which in ("first", "second"))
    return About("", f"{first} and {second}, {found['lag']} apart", first if first == second else "")


def _channel(field: str, index: list[str], owners: int, columns: list[Column] | None) -> Column | None:
    """Return the channel of a parameter, None if it has none or two."""
    if columns is None or field not in (*OF_CHANNELS, "observation"):
        return None
    rest = index[:1] if field == "observation" else index[owners:]
    if not rest or not all(part.isdigit() for part in rest) or int(rest[-1]) >= len(columns):
        return None
    if field.endswith("cov") and len(rest) > 1 and rest[-1] != rest[-2]:
        return None
    return columns[int(rest[-1])]


def _parameter(field: str, index: list[str], owners: list[str], has_channel: bool, step: Any) -> str:
    """Return the words for a parameter of a model: what it is, and whose."""
    if _has_columns(step):
        return _of_column(field, index)
    rest = index[len(owners) :]
    whose = "".join(f" of {owner} {number}" for owner, number in reversed(list(zip(owners, index))))
    if field in ("occupancy", "state"):
        nouns = ["component"] if hasattr(getattr(step, "model_", None), "components") else ["state", "component"]
        return "visits of " + ", ".join(f"{noun} {number}" for noun, number in zip(nouns, index))
    if field == "v":
        return f"log-odds of {index[0]}"
    if field == "mean" and not owners and len(rest) == 2:  # of observations in a state
        return f"mean in state {rest[0]}"
    if field in ("start", "starts"):
        return f"start in {' '.join(index)}"
    if field == "transitions":
        return _transition(index)
    if field == "weights" and index:
        return "weight of component " + " of state ".join(reversed(index))
    if field in ("count", "observations"):
        half = len(index) // 2
        states = ("states " if half > 1 else "state ") + " then ".join(index[:half])
        return f"{' then '.join(index[half:])} in {states}"
    if field == "probs" and not has_channel:
        return rest[-1] + whose.replace(" of state", " in state") + "".join(f" at position {at}" for at in rest[:-1])
    if has_channel and not field.endswith("cov"):
        rest = rest[:-1] if field != "observation" else rest[1:]
    return " ".join([SPREADS.get(field, field.replace("_", " ")) + whose, *rest])


def _transition(index: list[str]) -> str:
    """Return the words for a transition between states, or from letters to a letter."""
    *context, last = index
    if last.isdigit():
        chain = f", chain {context[0]}" if len(context) > 1 else ""
        return f"step from state {context[-1]} to {last}{chain}"
    place = f" at {context.pop(0)}" if context and context[0].isdigit() else ""
    return (f"{last} after {''.join(context)}" if context else last) + place


@describe.register
def _(step: Spectrum, name: str, columns: list[Column] | None) -> About:
    return About("", name)


@describe.register
def _(step: PlacedSpectrum, name: str, columns: list[Column] | None) -> About:
    place, _, word = name.partition(":")
    at = f"position {place}" if isinstance(step, PositionalSpectrum) else place.replace("region", "region ")
    return About(at, f"{word} {'at' if at.startswith('position') else 'in'} {at}")


@describe.register
def _(step: ModelLogOdds, name: str, columns: list[Column] | None) -> About:
    label = name[2:-1]
    return About("", f"log-odds of {_model(step.model_.models[0])}" + (f", class {label}" if label else ""))


@describe.register
def _(step: LogOddsWeights, name: str, columns: list[Column] | None) -> About:
    for label in step.classes_ if len(step.weights_) > 1 else ():
        if name.startswith(f"{label}."):
            return About(f"for {label}", f"{name[len(str(label)) + 1 :]} (weighted for {label})")
    return About("", name)


def _model(model: Any) -> str:
    """Return the words for a kind of model, as "Markov chain of order 4"."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(model).__name__).split()
    kind = " ".join(word if word.isupper() or word == "Markov" else word.lower() for word in words)
    found = [f"{name} {getattr(model, name)}" for name in ("order", "period") if hasattr(model, name)]
    if hasattr(model, "n_states"):
        found.append(f"{model.n_states} states")
    return f"{'an' if kind[0] in 'aeioH' else 'a'} {kind}" + (f" of {', '.join(found)}" if found else "")


def _piece(piece: str) -> str:
    """Return the words for the name of a part: "3 apart" for 0-3, "windows of 9" for w9."""
    window = WINDOW.fullmatch(piece)
    if window is not None:
        return f"{'normalised ' if window[2] else ''}windows of {window[1]}"
    if OFFSETS.fullmatch(piece):
        gaps = np.diff(np.array(piece.split("-"), int))
        return f"{' and '.join(map(str, gaps))} apart"
    return piece


def _numbered(keys: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different keys, in order, and the number of each."""
    places: dict[Any, int] = {}
    numbers = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
    return list(places), numbers
