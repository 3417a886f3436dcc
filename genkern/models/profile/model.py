"""Profile hidden Markov models: match, insert and silent delete states by columns of an alignment."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from genkern.core.profile import passes as core
from genkern.core.profile.pairs import first_mass, moved
from genkern.data.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.models import simplex
from genkern.models.base import COORDINATES, Statistics, joined
from genkern.models.families.categorical import Categorical
from genkern.models.hmm.model import HMM
from genkern.models.information import InformationBlocks, n_free
from genkern.models.profile.alignment import fields_of
from genkern.models.profile.checks import BLOCKS, ROWS, check_profile, name_parameters
from genkern.models.profile.flanks import HITS, flanked, score_weights
from genkern.models.profile.hmmer import read_hmmer, write_hmmer
from genkern.models.profile.paths import ProfilePaths, as_sequences
from genkern.models.profile.visits import expected_draws, state_names, visits
from genkern.models.profile.weights import blocks_of, probability_weights
from genkern.validation import Floats, check_array, check_option, check_probabilities

WHOLE = (slice(None),)  # the rows of most fields are one distribution


class ProfileHMM(ProfilePaths):
    r"""A family of sequences, column by column: what is conserved, inserted and deleted where.

    Column k = 1, ..., K has a match state M_k, an insert state I_k and a silent delete state D_k. A sequence begins in
    a flank N of background symbols, passes through some or all columns, and ends in a flank C:

    .. math:: N^* \to B \to (M_k | D_k \to M_k | I_k^*)^+ \to E \to C^*, \qquad E \to J^* \to B

    A passage enters at match state k with probability ``entry[k]``, or from the begin node 0 with ``entry[0]``; it
    leaves each M_k and D_k to E with ``exits[k, 0]``, and goes on by the transitions of node k else. Through J, with
    background symbols between, it may come again. See ``with_flanks`` for local, glocal and global models.

    Parameters
    ----------
    match : array-like of shape batch + (K, m)
        Probabilities of the m symbols in the match states.
    insert : array-like of shape batch + (K + 1, m), optional
        The same of the insert states I_0, ..., I_K; the default is the background.
    transitions : array-like of shape batch + (K + 1, 7), optional
        Of nodes 0, ..., K in the order MM, MI, MD; IM, II; DM, DD, as in files of HMMER; each group sums to one. MM, IM
        and DM of node K lead to E. The default opens gaps with probability 0.01 and prolongs them with 0.5.
    entry : array-like of shape batch + (K + 1,), optional
        How a passage begins; the default is at node 0.
    exits : array-like of shape batch + (K + 1, 2), optional
        Probabilities to leave M_k or D_k to E, and to go on. The default leaves at the end only.
    flanks : array-like of shape batch + (4, 2), optional
        Of N, J and C: to emit one more symbol, and to go on; of E: to pass through the columns again, and to end. The
        default are flanks of K / 2 symbols on average around one passage.
    null : array-like of shape batch + (m,), optional
        Probabilities of symbols in flanks, which are no parameters: they are not fitted, and have no derivatives. The
        default is uniform, or for proteins that of HMMER.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        As in ``Categorical``: "protein", "dna", ..., or the symbols.

    Notes
    -----
    Passes take O(K L) for a sequence of length L, as deletions are summed within a step. It is a distribution over
    sequences of all lengths, so scores have mean zero; without local entries it includes the empty sequence.

    References
    ----------
    Krogh, Brown, Mian, Sjölander & Haussler (1994), Hidden Markov models in computational biology. Eddy (1998), Profile
    hidden Markov models.

    Examples
    --------
    >>> from genkern import ProfileHMM
    >>> model = ProfileHMM([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], alphabet="abc").with_flanks("global")
    >>> model.log_prob(["ab", "cc"]).round(3)
    array([-0.497, -4.655])
    >>> model.viterbi(["acb"])[0]
    ['M1', 'I1', 'M2']
    """

    _fields = ("match", "insert", "transitions", "entry", "exits", "flanks", "null", "alphabet")
    match: Floats
    insert: Floats
    transitions: Floats
    entry: Floats
    exits: Floats
    flanks: Floats
    null: Floats
    alphabet: Alphabet

    def __init__(
        self,
        match: ArrayLike,
        insert: ArrayLike | None = None,
        transitions: ArrayLike | None = None,
        *,
        entry: ArrayLike | None = None,
        exits: ArrayLike | None = None,
        flanks: ArrayLike | None = None,
        null: ArrayLike | None = None,
        alphabet: Any = None,
    ):
        table = check_probabilities(match, "match", "ProfileHMM")
        letters = as_alphabet(table.shape[-1] if alphabet is None else alphabet)
        given = {"insert": insert, "transitions": transitions, "entry": entry, "exits": exits, "flanks": flanks}
        self._freeze(**check_profile(table, given | {"null": null}, letters), alphabet=letters)

    @classmethod
    def from_hmmer(cls, path: Any, name: str | None = None) -> Self:
        """Return the profile in a file of HMMER3, with the default flanks; see ``with_flanks``.

        Parameters
        ----------
        path : str or path
            An ASCII file of format HMMER3/a to f, such as ``hmmbuild`` writes and Pfam has; ``.gz`` is unpacked.
        name : str, optional
            Which profile, if the file has several.
        """
        return cls(**read_hmmer(path, name))

    @classmethod
    def from_alignment(
        cls,
        alignment: Any,
        alphabet: Any = "protein",
        *,
        columns: float = 0.5,
        prior: Any = "auto",
        effective: Any = "entropy",
    ) -> Self:
        r"""Return the profile of an alignment, as hmmbuild makes it, with the default flanks.

        Sequences are weighted by position (Henikoff & Henikoff 1994), and probabilities are posterior means. An
        insertion beside a deletion counts as a match.

        Parameters
        ----------
        alignment : list of str, or path
            Rows of one length, with "-" or "." in gaps; or a file in Stockholm or FASTA format.
        alphabet : Alphabet, str or sequence, default="protein"
        columns : float, default=0.5
            Share of the (weighted) sequences with a symbol from which a column of the alignment is one of the profile.
        prior : {"auto", "dirichlet", "blosum"} or float, default="auto"
            Of columns: the Dirichlet mixture of Sjölander et al. (1996); exchanges of BLOSUM62; or so many
            pseudocounts. "auto" is "dirichlet" for proteins and half a pseudocount for each symbol of others.
        effective : {"entropy", "all"} or float, default="entropy"
            How many independent sequences the alignment is worth: as few as give columns of 0.59 bits on average
            (more for short profiles), which keeps profiles of close relatives general; the number of sequences; or so
            many.

        References
        ----------
        Durbin et al. (1998), Biological sequence analysis, sections 5.6 to 5.8. Karplus, Barrett & Hughey (1998),
        Hidden Markov models for detecting remote protein homologies.

        Examples
        --------
        >>> from genkern import ProfileHMM
        >>> model = ProfileHMM.from_alignment(["VLSEK.A", "VLT-K.A", "V-TDKGA"])
        >>> model.n_columns, model.with_flanks("glocal").align(["VLTEKGA"])[0][0].text
        (6, 'VLTEKgA')
        """
        return cls(**fields_of(alignment, alphabet, columns, prior, effective))

    def to_hmmer(self, path: Any, name: str = "profile") -> None:
        """Write match, insert and transition probabilities as a file of format HMMER3/f.

        Such files have no entries, exits, flanks and background: programs choose them. There are no statistics for
        E-values: ``hmmsearch`` needs a file that ``hmmbuild`` or ``hmmsim`` has calibrated.
        """
        self._require_single("to_hmmer")
        write_hmmer(path, self, name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.match.shape[:-2]

    @property
    def n_columns(self) -> int:
        """Number of columns, K."""
        return self.match.shape[-2]

    def _facts(self) -> list[str]:
        return [f"{self.n_columns} columns", f"{self.alphabet.size} symbols"]

    def with_flanks(self, kind: str = "local", hits: str = "one", flank: float | None = None) -> Self:
        r"""Return the model with other ways in and out of the columns, and other flanks.

        Parameters
        ----------
        kind : {"local", "glocal", "global"}, default="local"
            Passages through any part of the columns, all parts being as probable as each other but for deletions:
            entry_k ∝ occ_k (K − k + 1) and exits_k = 1 / (K − k + 1), the distribution behind HMMER's local scores;
            through all columns, within flanks; or through all columns without flanks.
        hits : {"one", "several"}, default="one"
            Whether a sequence may pass the columns again: then as probably as not.
        flank : float, optional
            Mean number of symbols of N, C and, for several, J; the default is K / 2.

        References
        ----------
        Eddy (2008), A probabilistic model of local sequence alignment that simplifies statistical significance
        estimation, section "Uniform entry/exit".
        """
        self._require_single("with_flanks")
        return flanked(self, kind, hits, flank)

    # --- likelihood

    def pack(self, X: Any) -> Packed:
        """Encode raw sequences for this model."""
        return pack_symbols(X, self.alphabet, type(self).__name__)

    def weights(self) -> core.Profile:
        """Return one model in the form of ``core.profile``."""
        return self._once("weights", lambda: probability_weights(self))

    def log_prob(self, X: Any, n_jobs: int | None = None) -> Floats:
        """Return the log-likelihood of each sequence, shape (n_objects,) + batch; -inf where it is impossible."""
        packed = self.pack(X)
        if self.shape:
            columns = [self[index].log_prob(packed, n_jobs) for index in np.ndindex(self.shape)]
            return np.stack(columns, axis=-1).reshape((-1, *self.shape))
        return core.log_prob(self.weights(), as_sequences(packed), n_jobs)

    def hmmer_score(self, X: Any, hits: str = "several", n_jobs: int | None = None) -> Floats:
        """Return HMMER's Forward score of each sequence, in bits, before its correction for biased composition.

        It is the log-odds of local passages through the columns to HMMER's null model: geometric length and symbols of
        the ``null``. Flanks have the length of each sequence, insert states the background; ``entry``, ``exits``
        and ``flanks`` of the model are not used.

        Parameters
        ----------
        X : list of sequences
        hits : {"several", "one"}, default="several"
            Whether a sequence may have several passages; HMMER's default.

        References
        ----------
        Eddy (2011), Accelerated profile HMM searches. HMMER 3.4, modelconfig.c and p7_bg.c.
        """
        self._require_single("hmmer_score")
        packed = self.pack(X)
        lengths = packed.lengths.astype(np.float64)
        profile = score_weights(self, lengths, check_option(hits, HITS, "hits", "ProfileHMM.hmmer_score"))
        null = lengths * np.log(lengths / (lengths + 1.0)) - np.log(lengths + 1.0)
        score: Floats = (core.log_prob(profile, as_sequences(packed), n_jobs) - null) / np.log(2.0)
        return score

    # --- E-step, gradient, information

    def statistics(self, X: Any, totals: bool = False) -> Statistics:
        """Return posterior expected statistics per object, or summed over objects (``totals``).

        Blocks are the raw derivatives of the fields of probabilities, each of shape (G,) + the field's: ``match``,
        ``insert``, ``transitions``, ``entry``, ``exits`` and ``flanks``. A stack of batch (n_objects,) treats object i
        under its own model i.
        """
        packed = self.pack(X)
        if self.shape:
            return self._own_statistics(packed, totals)
        log_prob = np.empty(packed.n_objects)
        sums = {name: np.zeros((1 if totals else packed.n_objects, *getattr(self, name).shape)) for name in BLOCKS}
        for members, found in core.derivatives(self.weights(), as_sequences(packed)):
            log_prob[members] = found.log_prob
            self._refuse_impossible(found.log_prob, members, packed)
            for name, block in blocks_of(self, found).items():
                sums[name][[0] if totals else members] += block.sum(axis=0, keepdims=True) if totals else block
        return Statistics(self, log_prob, packed.lengths, sums)

    def _own_statistics(self, packed: Packed, totals: bool) -> Statistics:
        """Return the statistics of each object under its own model of a stack."""
        if totals or self.shape != (packed.n_objects,):
            raise ValueError(
                "ProfileHMM.statistics needs one model, or one per object and no totals. Got a stack of "
                f"{self.shape} for {packed.n_objects} objects."
            )
        found = joined(self[i].statistics(packed.take([i])) for i in range(packed.n_objects))
        return Statistics(self, found.log_prob, found.lengths, found.blocks)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Floats:
        """Return derivatives (G, p) of the log-likelihood from the statistics of one model."""
        parts = []
        for name in BLOCKS:
            raw, theta = statistics[name], getattr(self, name)
            turned = np.empty(raw.shape)
            for rows in ROWS.get(name, WHOLE):
                turned[..., rows] = simplex.gradient(raw[..., rows], theta[..., rows], coordinates)
            parts.append(turned.reshape(len(raw), -1))
        return np.concatenate(parts, axis=1)

    def information(self, lengths: ArrayLike, coordinates: str = "softmax") -> InformationBlocks:
        """Return the complete-data Fisher information as pairs (index, block), one block per distribution.

        Each is weighted by the expected number of draws from it, in sequences of all lengths: the model has a law of
        lengths of its own, and ``lengths`` are not used.
        """
        self._require_single("information")
        draws, at = expected_draws(self), 0
        pairs: InformationBlocks = []
        for name in BLOCKS:
            theta = getattr(self, name)
            index = np.arange(at, at + theta.size).reshape(-1, theta.shape[-1])
            groups = ROWS.get(name, WHOLE)
            counts = draws[name].reshape(len(index), -1)
            for row, values in enumerate(theta.reshape(-1, theta.shape[-1])):
                for group, rows in enumerate(groups):
                    block = simplex.row_information(values[rows], float(counts[row, group]), coordinates)
                    pairs.append((index[row, rows], block))
            at += theta.size
        return pairs

    # --- parameters

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the parameter vector (p,): match, insert, transitions, entry, exits and flanks, each flattened."""
        self._require_single("parameters")
        check_option(coordinates, COORDINATES, "coordinates", "ProfileHMM.parameters")
        return np.concatenate([simplex.coordinates_of(getattr(self, name), coordinates).ravel() for name in BLOCKS])

    def with_parameters(self, vector: ArrayLike, coordinates: str = "softmax") -> Self:
        """Return the model at a parameter vector; raw coordinates are not normalised."""
        self._require_single("with_parameters")
        check_option(coordinates, COORDINATES, "coordinates", "ProfileHMM.with_parameters")
        fields, at = {name: getattr(self, name) for name in self._fields}, 0
        given = np.asarray(vector, dtype=np.float64)
        hidden = np.isneginf(given)  # the softmax coordinate of a zero probability
        size = sum(fields[name].size for name in BLOCKS)
        values = check_array(np.where(hidden, 0.0, given), "vector", "ProfileHMM", shape=(size,))
        values = np.where(hidden, -np.inf, values)
        for name in BLOCKS:
            theta = fields[name]
            part = values[at : at + theta.size].reshape(theta.shape)
            table = np.empty(theta.shape)
            for rows in ROWS.get(name, WHOLE):
                table[..., rows] = simplex.from_coordinates(part[..., rows], coordinates)
            fields[name] = table
            at += theta.size
        return self._restore(*fields.values())

    @property
    def n_free_parameters(self) -> int:
        """Number of parameters of reachable states that can be chosen freely, as for all models.

        It is a bound: node 0 and entries into column 1, and node K and exits from column K, are two ways of the same.
        """
        blocks = [block for _, block in self.information([1])]
        return sum(n_free(block) for block in blocks if np.asarray(block).any())

    @property
    def parameter_names(self) -> list[str]:
        """Names such as ``match[3,A]`` (column 3), ``insert[0,C]``, ``transitions[3,MM]``, ``flanks[N,stay]``."""
        self._require_single("parameter_names")
        return name_parameters({name: getattr(self, name) for name in BLOCKS}, self.alphabet)

    # --- hidden variables

    @property
    def hidden_states(self) -> list[str]:
        """Names M1, ..., I0, ..., D1, ... and N, J, C of the states."""
        return state_names(self.n_columns)

    def visits(self, statistics: Statistics) -> Floats:
        """Return how often each state is expected to be visited, (G, S); N, J and C, to emit."""
        return visits(self, statistics)

    def to_hmm(self) -> HMM:
        """Return the hidden Markov model of the states that emit, with the same ``log_prob`` of every sequence.

        Silent states are summed out, so that its steps take O(K^2). If a sequence may be empty, which hidden Markov
        models do not know, its start probabilities sum to less than one.
        """
        self._require_single("to_hmm")
        weights, S = self.weights(), 2 * self.n_columns + 4
        steps, first = moved(weights, np.eye(S)).T, moved(weights, first_mass(self.n_columns)[:, None])[:, 0]
        emissions = Categorical._restore(self.emission_table(), self.alphabet)
        return HMM._restore(first[:-1], steps[:, :-1], emissions, None, steps[:, -1])
