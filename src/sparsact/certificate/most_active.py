"""The door to every certificate."""

from __future__ import annotations

import time
from dataclasses import replace
from operator import index

import numpy as np

from sparsact.certificate.inputs import Inputs, InputsLike
from sparsact.certificate.methods import proved
from sparsact.certificate.sampled import Distribution, sample, sampled
from sparsact.certificate.statement import Certificate
from sparsact.certificate.verdicts import of_sample
from sparsact.checks import checked_generator
from sparsact.kernels.threads import threads
from sparsact.network import SparselyActivatedNetwork

METHODS = ("auto", "enumeration", "orbits", "milp", "sampled")


def certify(
    network: SparselyActivatedNetwork,
    method: str = "auto",
    *,
    inputs: InputsLike = None,
    time_limit: float = 60.0,
    max_active: int | None = None,
    n_samples: int = 10_000,
    confidence: float = 0.99,
    distribution: Distribution = None,
    rng: np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> Certificate:
    r"""The most units that any input switches on: the k for which the network is k-sparse ([A]_, Definition 1).

    .. math:: \max_{x \in \text{inputs}} |\{ j : \langle w_j, x \rangle - b_j > 0 \}|

    Parameters
    ----------
    network : SparselyActivatedNetwork
        n inputs, s units.
    method : {"auto", "enumeration", "orbits", "milp", "sampled"}
        - ``"enumeration"``: every point, n (or m, for a lift) up to 26;
        - ``"orbits"``: every orbit under permutations and sign changes that no unit notices, whatever n;
        - ``"milp"``: local search from below, mixed-integer programming (HiGHS) from above; an interval when the time
          runs out;
        - ``"sampled"``: no proof, but a bound on how often more than ``max_active`` units are active;
        - ``"auto"``: the cheaper of the first two where one is a matter of seconds, else ``"milp"``.
    inputs : None, scipy.optimize.LinearConstraint or a list of them, or Lift
        Which inputs are allowed: every point of the cube, those that meet the constraints (decided exactly for the
        numbers stored), or the image of a lift. The networks of Section 4 of [A]_ are 1-sparse over their lifts only.
    time_limit : float
        Seconds for ``"milp"``.
    max_active : int, optional
        The k of ``"sampled"``; by default the most that the sample shows.
    n_samples, confidence, distribution
        Of ``"sampled"``: ``distribution`` is a function of ``(n_samples, rng)`` that returns inputs (n_samples, n), an
        array of independent inputs (m, n), or None for the uniform distribution over the inputs. Real inputs are legal.
    rng : numpy.random.Generator, optional
        Draws the sample, and steers the local search of ``"milp"`` (which no proof rests on; seed 0 by default).
    n_jobs : int, optional
        Threads of the enumeration kernel, see :func:`sparsact.kernels.threads.threads`.

    Returns
    -------
    certificate : Certificate

    Raises
    ------
    ValueError
        If an argument is out of range, or there are too many points or orbits for the method.
    TypeError
        If ``network`` is something else.

    Notes
    -----
    A tie is off, as Definition 1 says, and what is on is decided exactly for the float64 numbers stored: by comparison
    for units whose sums do not round (integers, halves) or take few values (tenths), for all others by a bound on the
    error, and by exact sums within it. Points too many to settle leave an interval, and ``doubt`` says so.

    Cost: ``s * 2**n`` comparisons; ``s * F`` multiplications an orbit with F groups; ``"milp"`` may need its time.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 1, Remark 11.

    Examples
    --------
    >>> from sparsact.network import SparselyActivatedNetwork
    >>> opposite = SparselyActivatedNetwork([1.0, -1.0], [[1, 1], [-1, -1]], [0.0, 0.0])
    >>> certificate = certify(opposite)
    >>> certificate.max_active, certificate.exact, certificate.distribution
    (1, True, (2, 2))
    """
    start = time.perf_counter()
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(METHODS)}; got {method!r}.")
    if not isinstance(network, SparselyActivatedNetwork):
        raise TypeError(
            f"a certificate is of a SparselyActivatedNetwork; got {type(network).__name__}: of a learner pass its "
            "`network_`."
        )
    allowed = Inputs.of(inputs, network.n)
    if method == "sampled":
        certificate = _sampled(network, allowed, distribution, n_samples, max_active, confidence, rng)
    elif max_active is not None or distribution is not None:
        name = "distribution" if max_active is None else "max_active"
        raise ValueError(
            f"`{name}` is for method='sampled'; got method={method!r}: the others find the most themselves."
        )
    else:
        if not time_limit >= 0:
            raise ValueError(f"`time_limit` is a number of seconds, 0 or more; got {time_limit}.")
        search = np.random.default_rng(0) if rng is None else checked_generator(rng)
        certificate = proved(network, allowed, method, time_limit=time_limit, rng=search, n_threads=threads(n_jobs))
    return replace(certificate, seconds=time.perf_counter() - start)


def _sampled(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    distribution: Distribution,
    n_samples: int,
    max_active: int | None,
    confidence: float,
    rng: np.random.Generator | None,
) -> Certificate:
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` must lie strictly between 0 and 1; got {confidence}.")
    if index(n_samples) < 1:
        raise ValueError(f"`n_samples` must be at least 1; got {n_samples}.")
    if max_active is not None and not 0 <= index(max_active) <= network.s:
        raise ValueError(f"`max_active` is a number of units, 0 to {network.s}; got {max_active}.")
    if distribution is not None and (inputs.lift is not None or len(inputs.offsets)):
        raise ValueError("pass `inputs` or a `distribution`, not both: a distribution says which inputs there are.")
    at_most = None if max_active is None else index(max_active)
    seen = sampled(network, sample(inputs, distribution, index(n_samples), rng), at_most, float(confidence))
    return of_sample(seen, network, inputs, float(confidence), uniform=distribution is None)
