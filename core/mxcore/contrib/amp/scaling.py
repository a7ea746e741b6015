"""Losses that are scaled up, and gradients that are scaled down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...base import error
from ...gluon import Trainer
from ...optimizer import Optimizer
from . import casting

__all__ = ["init_trainer", "scale_loss", "unscale"]


def _trainer(where: str, trainer: Any, ready: bool = True) -> Any:
    """The Trainer that was given; errors say what else it is, or what was forgotten."""
    if isinstance(trainer, Optimizer):
        raise error(
            TypeError,
            f"{where}: AMP is currently only compatible with Gluon Trainer; got an optimizer "
            f"({type(trainer).__name__}): "
            "give the trainer that holds it",
        )
    if not isinstance(trainer, Trainer):
        raise error(TypeError, f"{where}: optimizer_or_trainer should be a Gluon Trainer, got {type(trainer).__name__}")
    if ready and trainer._amp_loss_scaler is None:
        raise error(
            RuntimeError,
            f"{where}: the trainer knows nothing of mixed precision; "
            "call amp.init_trainer(trainer) once, after it was made",
        )
    return trainer


def init_trainer(optimizer_or_trainer: Any) -> None:
    """Prepare a trainer for losses that are scaled: it passes over updates whose gradients overflowed.

    Parameters
    ----------
    optimizer_or_trainer : Trainer

    Raises
    ------
    MXNetError
        (also AssertionError) before ``amp.init``; (also TypeError) for anything but a Gluon Trainer; (also ValueError)
        if its store updates the parameters, because it was told to or must: a store updates before anybody could look
        at the gradients.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``contrib.amp.init_trainer``. A trainer that was not told who updates does it itself
    from now on.

    Examples
    --------
    >>> from mxcore.contrib import amp
    >>> amp.init()                  # doctest: +SKIP
    >>> amp.init_trainer(trainer)   # doctest: +SKIP
    """
    if not casting.is_on():
        raise error(AssertionError, "AMP not initialized, did you forget to call amp.init()?")
    trainer = _trainer("amp.init_trainer", optimizer_or_trainer, ready=False)
    trainer._update_by_itself("amp.init_trainer")
    trainer._amp_loss_scaler = casting.scaler()
    trainer._amp_original_scale = trainer._scale


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Any) -> Iterator[Any]:
    """A with-block that gives the loss, or a list of losses, times the factor that the trainer divides gradients by.

    Parameters
    ----------
    loss : NDArray or list of NDArray
    optimizer_or_trainer : Trainer
        That `init_trainer` prepared.

    Raises
    ------
    MXNetError
        (also RuntimeError) if the trainer was not prepared; (also TypeError) for anything but a Gluon Trainer.

    Examples
    --------
    >>> with mx.autograd.record():                            # doctest: +SKIP
    ...     loss = loss_function(net(data), label)
    ...     with amp.scale_loss(loss, trainer) as scaled:
    ...         mx.autograd.backward(scaled)
    >>> trainer.step(batch_size)                              # doctest: +SKIP
    """
    trainer = _trainer("amp.scale_loss", optimizer_or_trainer)
    scale = trainer._amp_loss_scaler.loss_scale
    trainer._scale = trainer._amp_original_scale / scale
    yield [x * scale for x in loss] if isinstance(loss, (list, tuple)) else loss * scale


def unscale(optimizer_or_trainer: Any) -> None:
    """Divide the gradients by the factor now, e.g. to clip them by their norm before the trainer's step.

    Parameters
    ----------
    optimizer_or_trainer : Trainer
        That `init_trainer` prepared.

    Raises
    ------
    MXNetError
        As for `scale_loss`.

    Examples
    --------
    >>> amp.unscale(trainer)                                  # doctest: +SKIP
    >>> mx.gluon.utils.clip_global_norm(gradients, 1.0)       # doctest: +SKIP
    """
    trainer = _trainer("amp.unscale", optimizer_or_trainer)
    for p in trainer._params:
        if p.grad_req != "null":
            for g in p.list_grad():
                g[:] = g * trainer._scale
    trainer._scale = 1.0
