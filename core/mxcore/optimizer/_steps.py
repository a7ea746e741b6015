"""What SGD and its relatives share: the order of their states and the calls of their fused operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import ndarray as nd
from ..limits import whole_number
from ..ndarray import NDArray
from ._bound import update
from .base import Optimizer


def aggregation_size(default: int) -> int:
    """Return how many weights one call of `update` takes."""
    return whole_number("MXNET_OPTIMIZER_AGGREGATION_SIZE", default, least=0)


def state_and_master(optimizer: Optimizer, index: Any, weight: NDArray) -> Any:
    """Make ``(state, master)``, as SGD's fused operators want it, or the plain state without a master."""
    if optimizer._has_master(weight):
        master = weight.astype("float32")
        return optimizer.create_state(index, master), master
    optimizer._warn_of_half(weight)
    return optimizer.create_state(index, weight)


def move_one(
    weight: NDArray, grad: NDArray, state: Any, master: bool, name: str = "sgd_mom_update", **kwargs: Any
) -> None:
    """Call the fused operator for one weight: ``[mp_]sgd_[mom_]update``, or operator `name` with momentum."""
    momentum, copy = state if master else (state, None)
    name = ("mp_" if master else "") + (name if momentum is not None else "sgd_update")
    update(name, (weight, grad, *[a for a in (momentum, copy) if a is not None]), kwargs)


def move_all(
    weights: list[NDArray],
    grads: list[NDArray],
    states: Any,
    has_momentum: bool,
    master: bool,
    preloaded: Sequence[NDArray] = (),
    **kwargs: Any,
) -> None:
    """Call the fused operator for several: ``[preloaded_]multi_[mp_]sgd_[mom_]update``.

    `preloaded` holds the learning rates and weight decays as arrays; otherwise they are arguments ``lrs``
    and ``wds``.
    """
    operator = getattr(
        nd,
        f"{'preloaded_' if preloaded else ''}multi_{'mp_' if master else ''}sgd_{'mom_' if has_momentum else ''}update",
    )
    inputs = []
    for weight, grad, state in zip(weights, grads, states):
        inputs += [weight, grad]
        inputs += [a for a in (state if master else (state,)) if a is not None]
    operator(*inputs, *preloaded, out=weights, num_weights=len(weights), **kwargs)
