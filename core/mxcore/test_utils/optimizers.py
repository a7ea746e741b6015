"""Two optimizers that must do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import error
from .arrays import rand_ndarray
from .comparing import assert_almost_equal, compare_ndarray_tuple

__all__ = ["compare_optimizer"]


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shape: Sequence[Any],
    dtype: Any,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    compare_states: bool = True,
    ntensors: int = 1,
) -> None:
    """Check that two optimizers move random weights, and their states, alike in one update.

    Parameters
    ----------
    opt1, opt2 : Optimizer
    shape : tuple of int, or list of these
        Of the weight; or of each weight, as many as `ntensors`.
    dtype : dtype
    w_stype, g_stype : {'default', 'row_sparse', 'csr'}
        Storage types of the weight and, of single weights, its gradient.
    rtol, atol : float
        Tolerances.
    compare_states : bool
        Compare states too.
    ntensors : int
        How many weights are updated in one call.

    Raises
    ------
    AssertionError
        If weights or states differ.

    Examples
    --------
    >>> import mxcore as mx
    >>> one, two = (mx.optimizer.SGD(learning_rate=0.1, momentum=0.9) for _ in range(2))
    >>> compare_optimizer(one, two, (3, 4), "float32")
    """
    for what, stype in (("w_stype", w_stype), ("g_stype", g_stype)):
        if stype not in ("default", "row_sparse", "csr"):
            raise error(
                ValueError, f"compare_optimizer: {what} must be 'default', 'row_sparse' or 'csr', got {stype!r}"
            )
    several = ntensors > 1
    shapes = list(shape) if several or np.ndim(shape[0]) else [shape]
    if len(shapes) != ntensors or any(np.ndim(s) != 1 for s in shapes):
        raise error(AssertionError, f"compare_optimizer: {ntensors} weights need a list of as many shapes, got {shape}")
    # Weights with rows missing are no weights: every row is stored.
    weights = [rand_ndarray(s, w_stype, density=1, dtype=dtype) for s in shapes]
    grads = [rand_ndarray(s, g_stype, density=None if g_stype == "default" else 0.5, dtype=dtype) for s in shapes]
    outcomes = []
    for opt in (opt1, opt2):
        own, theirs = [w.copy() for w in weights], [g.copy() for g in grads]
        states = [opt.create_state_multi_precision(i, w) for i, w in enumerate(own)]
        outcomes.append((own, theirs, states))
    if compare_states:
        compare_ndarray_tuple(tuple(outcomes[0][2]), tuple(outcomes[1][2]), rtol, atol)
    for opt, (own, theirs, states) in zip((opt1, opt2), outcomes):
        if several:
            opt.update_multi_precision(list(range(ntensors)), own, theirs, states)
        else:
            opt.update_multi_precision(0, own[0], theirs[0], states[0])
    if compare_states:
        compare_ndarray_tuple(tuple(outcomes[0][2]), tuple(outcomes[1][2]), rtol, atol)
    for one, two in zip(outcomes[0][0], outcomes[1][0]):
        assert_almost_equal(one, two, rtol=rtol, atol=atol)
