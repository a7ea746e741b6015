"""Optimizer updates: one pass over the weight, in place, states too.

The gradient is rescaled, clipped to [-clip_gradient, clip_gradient] where that is not negative, and joined by
``wd * weight`` before or after clipping, as MXNet 1.9.1 does it for each operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..jit import Kernel, helper, kernel
from ..math import like, where
from ..typing import Array, Scalar
from ._arrays import flat, writable

__all__ = ["UPDATES", "adam", "adamw", "lamb_phase1", "move", "nag_mom", "sgd", "sgd_mom", "update"]


#: Elements whose updates take longer than a sleeping thread to wake up (up to 50 us on virtual machines), as they come
#: from behind the nearest caches: those that multiply and add, and those with roots and quotients.
LIGHT, HEAVY = 1 << 16, 1 << 15


@helper
def _clip(g: Scalar, c: Scalar) -> Scalar:
    """Return g within [-c, c], or g where c is negative; NaN stays."""
    bounded = where(g > c, c, where(g < -c, -c, g))
    return where(c < like(c, 0.0), g, bounded)


@helper
def _sign(x: Scalar) -> Scalar:
    zero = like(x, 0.0)
    return where(x > zero, like(x, 1.0), where(x < zero, like(x, -1.0), zero))


@kernel(threshold=LIGHT)
def sgd(first: int, last: int, w: Array, g: Array, lr: Scalar, wd: Scalar, rescale: Scalar, clip: Scalar) -> None:
    """Plain steps over the elements from `first` to `last`."""
    w, g = w[first:last], g[first:last]
    real = w.dtype.type
    lr, wd, rescale, clip = real(lr), real(wd), real(rescale), real(clip)
    for i in range(w.size):
        w[i] -= lr * (_clip(g[i] * rescale, clip) + wd * w[i])


@kernel(threshold=LIGHT)
def sgd_mom(
    first: int,
    last: int,
    w: Array,
    g: Array,
    m: Array,
    lr: Scalar,
    momentum: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """Steps with momentum over the elements from `first` to `last`."""
    w, g, m = w[first:last], g[first:last], m[first:last]
    real = w.dtype.type
    lr, momentum, wd, rescale, clip = real(lr), real(momentum), real(wd), real(rescale), real(clip)
    for i in range(w.size):
        m[i] = momentum * m[i] - lr * (_clip(g[i] * rescale, clip) + wd * w[i])
        w[i] += m[i]


@kernel(threshold=LIGHT)
def nag_mom(
    first: int,
    last: int,
    w: Array,
    g: Array,
    m: Array,
    lr: Scalar,
    momentum: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """Nesterov's momentum over the elements from `first` to `last`."""
    w, g, m = w[first:last], g[first:last], m[first:last]
    real = w.dtype.type
    lr, momentum, wd, rescale, clip = real(lr), real(momentum), real(wd), real(rescale), real(clip)
    for i in range(w.size):
        v = _clip(g[i] * rescale, clip)
        step = momentum * m[i] - lr * v
        old = lr * wd * w[i]
        w[i] += momentum * (step - old) - (lr * v + old)
        m[i] = step - lr * wd * w[i]  # MXNet decays its momentum by the weight it has just updated


@kernel(threshold=HEAVY)
def adam(
    first: int,
    last: int,
    w: Array,
    g: Array,
    mean: Array,
    var: Array,
    lr: Scalar,
    beta1: Scalar,
    beta2: Scalar,
    epsilon: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """Steps of Adam over the elements from `first` to `last`."""
    w, g, mean, var = w[first:last], g[first:last], mean[first:last], var[first:last]
    real = w.dtype.type
    lr, beta1, beta2, epsilon = real(lr), real(beta1), real(beta2), real(epsilon)
    wd, rescale, clip, one = real(wd), real(rescale), real(clip), real(1)
    for i in range(w.size):
        v = _clip(g[i] * rescale + wd * w[i], clip)
        mean[i] = beta1 * mean[i] + (one - beta1) * v
        var[i] = beta2 * var[i] + (one - beta2) * v * v
        w[i] -= lr * mean[i] / (np.sqrt(var[i]) + epsilon)


@kernel(threshold=HEAVY)
def adamw(
    first: int,
    last: int,
    w: Array,
    g: Array,
    mean: Array,
    var: Array,
    lr: Scalar,
    beta1: Scalar,
    beta2: Scalar,
    epsilon: Scalar,
    wd: Scalar,
    eta: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """AdamW over the elements from `first` to `last`."""
    w, g, mean, var = w[first:last], g[first:last], mean[first:last], var[first:last]
    real = w.dtype.type
    lr, beta1, beta2, epsilon, wd = real(lr), real(beta1), real(beta2), real(epsilon), real(wd)
    eta, rescale, clip, one = real(eta), real(rescale), real(clip), real(1)
    for i in range(w.size):
        v = _clip(g[i] * rescale, clip)
        mean[i] = beta1 * mean[i] + (one - beta1) * v
        var[i] = beta2 * var[i] + (one - beta2) * v * v
        w[i] -= eta * (lr * mean[i] / (np.sqrt(var[i]) + epsilon) + wd * w[i])


@kernel(threshold=HEAVY)
def _rmsprop(
    first: int,
    last: int,
    w: Array,
    g: Array,
    n: Array,
    lr: Scalar,
    gamma1: Scalar,
    epsilon: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
    clip_weights: Scalar,
) -> None:
    w, g, n = w[first:last], g[first:last], n[first:last]
    real = w.dtype.type
    lr, gamma1, epsilon, wd = real(lr), real(gamma1), real(epsilon), real(wd)
    rescale, clip, clip_weights, one = real(rescale), real(clip), real(clip_weights), real(1)
    for i in range(w.size):
        v = _clip(g[i] * rescale + wd * w[i], clip)
        n[i] = gamma1 * n[i] + (one - gamma1) * v * v
        w[i] = _clip(w[i] - lr * v / np.sqrt(n[i] + epsilon), clip_weights)


@kernel(threshold=HEAVY)
def _rmspropalex(
    first: int,
    last: int,
    w: Array,
    g: Array,
    n: Array,
    average: Array,
    delta: Array,
    lr: Scalar,
    gamma1: Scalar,
    gamma2: Scalar,
    epsilon: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
    clip_weights: Scalar,
) -> None:
    w, g, n = w[first:last], g[first:last], n[first:last]
    average, delta = average[first:last], delta[first:last]
    real = w.dtype.type
    lr, gamma1, gamma2, epsilon, wd = real(lr), real(gamma1), real(gamma2), real(epsilon), real(wd)
    rescale, clip, clip_weights, one = real(rescale), real(clip), real(clip_weights), real(1)
    for i in range(w.size):
        v = _clip(g[i] * rescale + wd * w[i], clip)
        n[i] = gamma1 * n[i] + (one - gamma1) * v * v
        average[i] = gamma1 * average[i] + (one - gamma1) * v
        delta[i] = gamma2 * delta[i] - lr * v / np.sqrt(n[i] - average[i] * average[i] + epsilon)
        w[i] = _clip(w[i] + delta[i], clip_weights)


@kernel(threshold=HEAVY)
def _ftrl(
    first: int,
    last: int,
    w: Array,
    g: Array,
    z: Array,
    n: Array,
    lr: Scalar,
    lamda1: Scalar,
    beta: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    w, g, z, n = w[first:last], g[first:last], z[first:last], n[first:last]
    real = w.dtype.type
    lr, lamda1, beta = real(lr), real(lamda1), real(beta)
    wd, rescale, clip = real(wd), real(rescale), real(clip)
    for i in range(w.size):
        v = _clip(g[i] * rescale, clip)
        total = n[i] + v * v
        z[i] += v - (np.sqrt(total) - np.sqrt(n[i])) * w[i] / lr
        n[i] = total
        kept = (_sign(z[i]) * lamda1 - z[i]) / ((beta + np.sqrt(total)) / lr + wd)
        w[i] = where(abs(z[i]) <= lamda1, real(0), kept)


@kernel(threshold=HEAVY)
def _ftml(
    first: int,
    last: int,
    w: Array,
    g: Array,
    d: Array,
    v: Array,
    z: Array,
    lr: Scalar,
    beta1: Scalar,
    beta2: Scalar,
    epsilon: Scalar,
    t: int,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    w, g, d, v, z = w[first:last], g[first:last], d[first:last], v[first:last], z[first:last]
    real = w.dtype.type
    step, spread = real((1.0 - beta1**t) / lr), real(1.0 - beta2**t)
    beta1, beta2, epsilon = real(beta1), real(beta2), real(epsilon)
    wd, rescale, clip, one = real(wd), real(rescale), real(clip), real(1)
    for i in range(w.size):
        q = _clip(g[i] * rescale + wd * w[i], clip)
        v[i] = beta2 * v[i] + (one - beta2) * q * q
        now = step * (np.sqrt(v[i] / spread) + epsilon)
        z[i] = beta1 * z[i] + (one - beta1) * q - (now - beta1 * d[i]) * w[i]
        d[i] = now
        w[i] = -z[i] / now


@kernel(threshold=LIGHT)
def _signsgd(first: int, last: int, w: Array, g: Array, lr: Scalar, wd: Scalar, rescale: Scalar, clip: Scalar) -> None:
    w, g = w[first:last], g[first:last]
    real = w.dtype.type
    keep, lr = real(1.0 - lr * wd), real(lr)
    for i in range(w.size):  # the sign of a gradient is that of the rescaled and clipped one
        w[i] = keep * w[i] - lr * _sign(g[i])


@kernel(threshold=LIGHT)
def _signum(
    first: int,
    last: int,
    w: Array,
    g: Array,
    m: Array,
    lr: Scalar,
    momentum: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
    wd_lh: Scalar,
) -> None:
    w, g, m = w[first:last], g[first:last], m[first:last]
    real = w.dtype.type
    keep, one = real(1.0 - lr * wd_lh), real(1)
    lr, momentum, wd, rescale, clip = real(lr), real(momentum), real(wd), real(rescale), real(clip)
    for i in range(w.size):
        m[i] = momentum * m[i] - (one - momentum) * (_clip(g[i] * rescale, clip) + wd * w[i])
        w[i] = keep * w[i] + lr * _sign(m[i])


@kernel(threshold=HEAVY)
def _adagrad(
    first: int,
    last: int,
    w: Array,
    g: Array,
    history: Array,
    lr: Scalar,
    epsilon: Scalar,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    w, g, history = w[first:last], g[first:last], history[first:last]
    real = w.dtype.type
    lr, epsilon, wd, rescale, clip = real(lr), real(epsilon), real(wd), real(rescale), real(clip)
    for i in range(w.size):
        v = _clip(g[i] * rescale, clip)
        history[i] += v * v
        w[i] -= lr * (v / np.sqrt(history[i] + epsilon) + wd * w[i])


@kernel(threshold=HEAVY)
def lamb_phase1(
    first: int,
    last: int,
    out: Array,
    g: Array,
    mean: Array,
    var: Array,
    w: Array,
    beta1: Scalar,
    beta2: Scalar,
    epsilon: Scalar,
    t: int,
    bias_correction: bool,
    wd: Scalar,
    rescale: Scalar,
    clip: Scalar,
) -> None:
    """The direction of LAMB over the elements from `first` to `last`."""
    out, g, mean, var, w = out[first:last], g[first:last], mean[first:last], var[first:last], w[first:last]
    real = w.dtype.type
    c1 = real(1.0 - beta1**t if bias_correction != 0.0 else 1.0)
    c2 = real(1.0 - beta2**t if bias_correction != 0.0 else 1.0)
    beta1, beta2, epsilon = real(beta1), real(beta2), real(epsilon)
    wd, rescale, clip, one = real(wd), real(rescale), real(clip), real(1)
    for i in range(w.size):
        v = _clip(g[i] * rescale, clip)
        mean[i] = beta1 * mean[i] + (one - beta1) * v
        var[i] = beta2 * var[i] + (one - beta2) * v * v
        out[i] = mean[i] / c1 / (np.sqrt(var[i] / c2) + epsilon) + wd * w[i]


class Update(NamedTuple):
    """A kernel, its arrays (first the one it is for), its numbers with MXNet's defaults (None: required)."""

    kernel: Kernel
    arrays: str
    numbers: dict[str, float | None]


_USUAL = {"wd": 0.0, "rescale_grad": 1.0, "clip_gradient": -1.0}

#: MXNet's operator -> what computes it.
UPDATES = {
    "sgd_update": Update(sgd, "weight grad", {"lr": None, **_USUAL}),
    "sgd_mom_update": Update(sgd_mom, "weight grad mom", {"lr": None, "momentum": 0.0, **_USUAL}),
    "nag_mom_update": Update(nag_mom, "weight grad mom", {"lr": None, "momentum": 0.0, **_USUAL}),
    "adam_update": Update(
        adam, "weight grad mean var", {"lr": None, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, **_USUAL}
    ),
    "_adamw_update": Update(
        adamw,
        "weight grad mean var",
        {
            "lr": None,
            "beta1": 0.9,
            "beta2": 0.999,
            "epsilon": 1e-8,
            "wd": 0.0,
            "eta": None,
            "rescale_grad": 1.0,
            "clip_gradient": -1.0,
        },
    ),
    "rmsprop_update": Update(
        _rmsprop, "weight grad n", {"lr": None, "gamma1": 0.95, "epsilon": 1e-8, **_USUAL, "clip_weights": -1.0}
    ),
    "rmspropalex_update": Update(
        _rmspropalex,
        "weight grad n g delta",
        {"lr": None, "gamma1": 0.95, "gamma2": 0.9, "epsilon": 1e-8, **_USUAL, "clip_weights": -1.0},
    ),
    "ftrl_update": Update(_ftrl, "weight grad z n", {"lr": None, "lamda1": 0.01, "beta": 1.0, **_USUAL}),
    "ftml_update": Update(
        _ftml,
        "weight grad d v z",
        {
            "lr": None,
            "beta1": 0.6,
            "beta2": 0.999,
            "epsilon": 1e-8,
            "t": None,
            "wd": 0.0,
            "rescale_grad": 1.0,
            "clip_grad": -1.0,
        },
    ),
    "signsgd_update": Update(_signsgd, "weight grad", {"lr": None, **_USUAL}),
    "signum_update": Update(_signum, "weight grad mom", {"lr": None, "momentum": 0.0, **_USUAL, "wd_lh": 0.0}),
    "_sparse_adagrad_update": Update(_adagrad, "weight grad history", {"lr": None, "epsilon": 1e-7, **_USUAL}),
    "lamb_update_phase1": Update(
        lamb_phase1,
        "out grad mean var weight",
        {
            "beta1": 0.9,
            "beta2": 0.999,
            "epsilon": 1e-6,
            "t": None,
            "bias_correction": 1.0,
            "wd": None,
            "rescale_grad": 1.0,
            "clip_gradient": -1.0,
        },
    ),
}


def update(name: str, *arrays: Array, **numbers: float) -> None:
    """Apply one of :data:`UPDATES` in place.

    Parameters
    ----------
    name : str
        MXNet's operator, e.g. 'sgd_mom_update'.
    *arrays : ndarray
        In the order of ``UPDATES[name].arrays``; all but the gradient (and, for 'lamb_update_phase1', the
        weight) are written.
    **numbers : float
        Under MXNet's names; what is missing takes MXNet's default.

    Notes
    -----
    Behaviour matched: the MXNet 1.9.1 operator, with ``out=weight``.

    Examples
    --------
    >>> weight = np.array([1.0, 2.0])
    >>> update("sgd_update", weight, np.array([1.0, -1.0]), lr=0.5)
    >>> weight
    array([0.5, 2.5])
    """
    kernel, _, defaults = UPDATES[name]
    values = {key: numbers.get(key, default) for key, default in defaults.items()}
    given = {key: value for key, value in values.items() if value is not None}
    if len(given) < len(values):
        raise TypeError(f"{name}: {next(key for key in values if key not in given)} is required")
    move(kernel, arrays, given.values())


def move(kernel: Callable[..., None], arrays: Sequence[Array], numbers: Iterable[float]) -> None:
    """Run the kernel of an update on its arrays, with its numbers in their order."""
    rows = []
    for a in arrays:  # small weights are moved in a microsecond: a generator would show
        if not a.flags.c_contiguous:
            break
        rows.append(a if a.ndim == 1 else a.reshape(-1))
    else:
        kernel(arrays[0].size, *rows, *map(float, numbers))
        return
    grad = flat(arrays[1])
    with writable(arrays[0], *arrays[2:]) as (weight, *states):
        kernel(weight.size, weight.reshape(-1), grad, *(s.reshape(-1) for s in states), *map(float, numbers))
