"""Optimizer updates: one step of one weight, which may have a float32 master copy.

One weight at a time; :mod:`.many` has the operators over many. Each rule is a function
``(xp, p, lr, wd, weight, grad, *states) -> (weight, *states)``; the operators around it are made by tables. Scalars of
a step (``lr``, ``wd`` …) are dynamic, so a decaying rate fills no cache. States are inputs that the operator writes;
the new weight is its output, usually given as ``out=weight``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, Float, Int
from ...stypes import CSR, RowSparse
from ...typing import Array, Call
from ..common.bodies import is_half
from ..sparse.operators import dense_of, to_csr

__all__ = [
    "STEPS",
    "UPDATES",
    "adam_moments",
    "alike",
    "clipped",
    "docstring_of",
    "master_dtypes",
    "per_step",
    "rescaled",
    "sgd_mom_step",
    "sgd_step",
    "weight_dtype",
]


_F32 = np.dtype("float32")


def per_step(*default: Any) -> Any:
    """A number that may change from step to step."""
    return Float(*default, dynamic=True)


def _share(default: Any) -> Any:
    return Float(default, ge=0, le=1, dynamic=True)


def clipped(xp: Any, p: Params, x: Any, bound: Any = None) -> Any:
    """Values limited to the clip bound, if there is one."""
    bound = p.clip_gradient if bound is None else bound
    return xp.clip(x, x.dtype.type(-bound), x.dtype.type(bound)) if bound >= 0 else x


def rescaled(xp: Any, p: Params, g: Any) -> Any:
    """The gradient, rescaled and clipped."""
    return clipped(xp, p, p.rescale_grad * g)


def _decayed(xp: Any, p: Params, wd: Any, w: Any, g: Any) -> Any:
    """Decay before the clip, as in Adam and RMSProp."""
    return clipped(xp, p, p.rescale_grad * g + wd * w)


# -- the rules -----------------------------------------------------------------------------------------------------
def sgd_step(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any) -> Any:
    """The new weight of a plain step."""
    return (w - lr * (rescaled(xp, p, g) + wd * w),)


def sgd_mom_step(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, mom: Any) -> Any:
    """The new weight and the new momentum."""
    mom = p.momentum * mom - lr * (rescaled(xp, p, g) + wd * w)
    return w + mom, mom


def _nag_mom(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, mom: Any) -> Any:
    # MXNet writes the weight first and, in place as everybody calls it, decays the momentum by the new one (elsewhere
    # by the old one).
    g = rescaled(xp, p, g)
    step = lr * (g + wd * w)
    new = w + p.momentum * (p.momentum * mom - step) - step
    return new, p.momentum * mom - lr * (g + wd * new)


def _sign(x: Any) -> Any:
    """1, 0 or -1; 0 for NaN, as in MXNet."""
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _signsgd(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any) -> Any:
    return ((1 - lr * wd) * w - lr * _sign(g),)


def _signum(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, mom: Any) -> Any:
    mom = p.momentum * mom - (1 - p.momentum) * (wd * w + rescaled(xp, p, g))
    return (1 - lr * p.wd_lh) * w + lr * _sign(mom), mom


def adam_moments(p: Params, g: Any, mean: Any, var: Any) -> Any:
    """The moving averages of the gradient and of its square."""
    return p.beta1 * mean + (1 - p.beta1) * g, p.beta2 * var + (1 - p.beta2) * (g * g)


def _adam(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, mean: Any, var: Any) -> Any:
    mean, var = adam_moments(p, _decayed(xp, p, wd, w, g), mean, var)
    return w - lr * mean / (xp.sqrt(var) + p.epsilon), mean, var


def _ftml(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, d: Any, v: Any, z: Any) -> Any:
    g = clipped(xp, p, p.rescale_grad * g + wd * w, p.clip_grad)
    z, v = p.beta1 * z + (1 - p.beta1) * g, p.beta2 * v + (1 - p.beta2) * (g * g)
    step = (1 - p.beta1**p.t) / lr * (xp.sqrt(v / (1 - p.beta2**p.t)) + p.epsilon)
    z = z - (step - p.beta1 * d) * w
    return -z / step, step, v, z


def _ftrl(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, z: Any, n: Any) -> Any:
    g = rescaled(xp, p, g)
    grown = n + g * g
    z = z + g - (xp.sqrt(grown) - xp.sqrt(n)) * w / lr
    w = (xp.sign(z) * p.lamda1 - z) / ((p.beta + xp.sqrt(grown)) / lr + wd)
    return xp.where(xp.abs(z) <= p.lamda1, 0, w), z, grown


def _bounded(xp: Any, p: Params, w: Any) -> Any:
    return clipped(xp, p, w, p.clip_weights)


def _rmsprop(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, n: Any) -> Any:
    g = _decayed(xp, p, wd, w, g)
    n = (1 - p.gamma1) * (g * g) + p.gamma1 * n
    return _bounded(xp, p, w - lr * g / xp.sqrt(n + p.epsilon)), n


def _rmspropalex(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, n: Any, mean: Any, delta: Any) -> Any:
    g = _decayed(xp, p, wd, w, g)
    n = (1 - p.gamma1) * (g * g) + p.gamma1 * n
    mean = (1 - p.gamma1) * g + p.gamma1 * mean
    delta = p.gamma2 * delta - lr * g / xp.sqrt(n - mean * mean + p.epsilon)
    return _bounded(xp, p, w + delta), n, mean, delta


def _adagrad(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, history: Any) -> Any:
    g = rescaled(xp, p, g)
    history = history + g * g
    return w - lr * (g / xp.sqrt(history + p.epsilon) + wd * w), history


def _group_adagrad(xp: Any, p: Params, lr: Any, wd: Any, w: Any, g: Any, history: Any) -> Any:
    g = rescaled(xp, p, g)
    history = history + (g * g).mean(tuple(range(1, g.ndim))).reshape(history.shape)
    return w - lr * g / xp.sqrt(history.reshape(g.shape[:1] + (1,) * (g.ndim - 1)) + p.epsilon), history


# -- operators for one weight --------------------------------------------------------------------------------------
_MEANING = {
    "lr": "float\n    Learning rate.",
    "wd": "float\n    Weight decay.",
    "rescale_grad": "float\n    Factor on the gradient.",
    "clip_gradient": "float\n    Bound on the absolute value of the rescaled gradient; none if negative.",
    "clip_grad": "float\n    Bound on the absolute value of the gradient; none if negative.",
    "momentum": "float\n    Share of the last step in the next.",
    "wd_lh": "float\n    Weight decay beside the sign.",
    "lazy_update": "bool\n    With a row_sparse gradient, touch the rows that it holds and no others.",
    "beta1": "float\n    Decay of the mean.",
    "beta2": "float\n    Decay of the squares.",
    "epsilon": "float\n    Added to a divisor.",
    "t": "int\n    Number of the step, from 1.",
    "lamda1": "float\n    L1 penalty.",
    "beta": "float\n    Added to the root of `n`.",
    "gamma1": "float\n    Decay of the squares.",
    "gamma2": "float\n    Decay of the step.",
    "clip_weights": "float\n    Bound on the absolute value of the new weight; none if negative.",
    "bias_correction": "bool\n    Undo the pull of the zero start.",
    "eta": "float\n    Factor on the whole step.",
    "lower_bound": "float\n    Least norm of the weight; none if negative.",
    "upper_bound": "float\n    Greatest norm of the weight; none if negative.",
    "weight": "array\n    What moves; the output, usually given as ``out=weight``.",
    "grad": "array\n    Its gradient.",
    "weight32": "array\n    Master copy of the weight, float32; written.",
    "scale": "array (1,)\n    Factor on the gradient.",
}


def docstring_of(head: str, inputs: Any, params: Any) -> Any:
    """The docstring of an optimizer's operator, put together from what its inputs and parameters mean."""
    words = [f"{n} : " + _MEANING.get(n, "array\n    State; written.") for n in (*inputs, *params)]
    return "\n".join(
        [
            head,
            "",
            "Parameters",
            "----------",
            *words,
            "",
            "Notes",
            "-----",
            "Behaviour matched: MXNet 1.9.1's operator of this name.",
        ]
    )


def _stepping(clip: Any = "clip_gradient") -> Any:
    return {"wd": per_step(0.0), "rescale_grad": per_step(1.0), clip: per_step(-1.0)}


def _like(xp: Any, value: Any, old: Any) -> Any:
    """A new value in the storage type of the old one."""
    if isinstance(old, RowSparse):
        return RowSparse(old.shape, xp.arange(old.shape[0]), value)
    return to_csr(xp, value) if isinstance(old, CSR) else value


def _whole(xp: Any, x: Any) -> Any:
    """All rows of an array; not a copy where a row-sparse one holds them all. For reading."""
    whole = x.whole if isinstance(x, RowSparse) else None
    return dense_of(xp, x) if whole is None else whole


def _always(p: Params, weight: Any) -> Any:
    return True


def _body(rule: Any, lazy: Any = _always) -> Any:
    """The operator's body around a rule, with row-sparse arrays; `lazy` tells whether to touch their rows only."""

    def body(k: Call, p: Params, weight: Array, grad: Array, *states: Array) -> Any:
        xp, wd = k.xp, getattr(p, "wd", 0.0)
        given = (weight, *states)
        if not any(isinstance(x, (CSR, RowSparse)) for x in (grad, *given)):
            return rule(xp, p, p.lr, wd, weight, grad, *states)
        whole = [_whole(xp, x) for x in given]
        if isinstance(grad, RowSparse) and not isinstance(weight, CSR) and lazy(p, weight):
            rows = grad.indices
            new = []
            for x, part in zip(
                whole, rule(xp, p, p.lr, wd, whole[0][rows], grad.values, *[s[rows] for s in whole[1:]])
            ):
                x = x.copy()
                x[rows] = part
                new.append(x)
        else:
            new = rule(xp, p, p.lr, wd, whole[0], _whole(xp, grad), *whole[1:])
        return [_like(xp, v, old) for v, old in zip(new, given)]

    return body


def _master(rule: Any) -> Any:
    """The body for a weight of low precision: the step is made on its float32 copy."""

    def body(k: Call, p: Params, weight: Array, grad: Array, *states: Array) -> Any:
        *old, weight32 = states
        new, *written = rule(k.xp, p, p.lr, p.wd, weight32, grad.astype(_F32), *old)
        return [new.astype(weight.dtype), *written, new]

    return body


def weight_dtype(t: Any) -> Any:
    """The dtype of a weight, checked."""
    if t is not None and t.kind != "f" and not is_half(t):
        raise TypeError(f"weights must be float16, bfloat16, float32 or float64, got {t.name}")
    return t


def alike(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """Everything has one dtype, a float."""
    t = weight_dtype(next((t for t in (*ins, *outs) if t is not None), None))
    return [t] * len(ins), [t] * len(outs)


def master_dtypes(p: Params, ins: list[Any], outs: list[Any]) -> Any:
    """weight, gradient and output are alike, everything else float32."""
    t = weight_dtype(ins[0] or ins[1] or (outs[0] if outs else None))
    return [t, t, *[_F32] * (len(ins) - 2)], [t] * len(outs)


class Step(NamedTuple):
    """A rule, and what operators around it there are.

    `lazy`: for row_sparse arrays too; `mixed`: also with a master copy; `together`: the name of the one for many
    weights, with a place for ``mp_``.
    """

    name: str
    rule: Any
    states: Any
    params: Any
    head: str
    aliases: Any = ()
    lazy: Any = None
    mixed: bool = False
    together: str = ""


def _update(
    name: str, rule: Any, states: Any, params: Any, head: str, aliases: Any, lazy: Any, mixed: bool, together: str
) -> Iterator[Any]:
    """Declare the operators of a step for one weight."""
    names = ["weight", "grad", *states]
    o = Op(
        name,
        _body(rule, lazy),
        inputs=" ".join(names),
        mutates=" ".join(states),
        params=params,
        alias="weight->output",
        aliases=aliases,
        doc=docstring_of(head, names, params),
    )
    o.dtype(alike)
    if together:
        o.attach(together=together)
    if lazy:
        o.storage(lambda p, stypes: [stypes[0]])
    yield o
    if mixed:
        names = [*names, "weight32"]
        low = Op(
            "mp_" + name,
            _master(rule),
            inputs=" ".join(names),
            mutates=" ".join(names[2:]),
            params=params,
            doc=docstring_of(head + " The weight has a master copy in float32.", names, params),
        )
        low.dtype(master_dtypes)
        yield low


_LAZY = {"lazy_update": Bool(True)}


def _if_told(p: Params, weight: Any) -> Any:
    return p.lazy_update


def _if_sparse(p: Params, weight: Any) -> Any:
    return isinstance(weight, RowSparse)


_BETAS = {"beta1": per_step(0.9), "beta2": per_step(0.999), "epsilon": per_step(1e-8)}

STEPS = [
    Step(
        "sgd_update",
        sgd_step,
        [],
        {"lr": per_step(), **_stepping(), **_LAZY},
        "A step of gradient descent.",
        ["_sparse_sgd_update"],
        _if_told,
        mixed=True,
        together="multi_%ssgd_update",
    ),
    Step(
        "sgd_mom_update",
        sgd_mom_step,
        ["mom"],
        {"lr": per_step(), "momentum": per_step(0.0), **_stepping(), **_LAZY},
        "A step of gradient descent with momentum.",
        ["_sparse_sgd_mom_update"],
        _if_told,
        mixed=True,
        together="multi_%ssgd_mom_update",
    ),
    Step(
        "nag_mom_update",
        _nag_mom,
        ["mom"],
        {"lr": per_step(), "momentum": per_step(0.0), **_stepping()},
        "A step of Nesterov's accelerated gradient.",
        mixed=True,
        together="_multi_%snag_mom_update",
    ),
    Step(
        "signsgd_update",
        _signsgd,
        [],
        {"lr": per_step(), **_stepping()},
        "A step along the signs of the gradient.",
        together="_multi_%ssignsgd_update",
    ),
    Step(
        "signum_update",
        _signum,
        ["mom"],
        {"lr": per_step(), "momentum": per_step(0.0), **_stepping(), "wd_lh": per_step(0.0)},
        "A step along the signs of the momentum.",
        together="_multi_%ssignum_update",
    ),
    Step(
        "adam_update",
        _adam,
        ["mean", "var"],
        {"lr": per_step(), **_BETAS, **_stepping(), **_LAZY},
        "A step of Adam.",
        ["_sparse_adam_update"],
        _if_told,
        together="_multi_%sadam_update",
    ),
    Step(
        "ftml_update",
        _ftml,
        ["d", "v", "z"],
        {
            "lr": per_step(),
            "beta1": _share(0.6),
            "beta2": _share(0.999),
            "epsilon": per_step(1e-8),
            "t": Int(ge=1, dynamic=True),
            **_stepping("clip_grad"),
        },
        "A step of FTML, Follow the Moving Leader.",
        together="_multi_%sftml_update",
    ),
    Step(
        "ftrl_update",
        _ftrl,
        ["z", "n"],
        {"lr": per_step(), "lamda1": per_step(0.01), "beta": per_step(1.0), **_stepping()},
        "A step of FTRL, Follow the Regularized Leader.",
        ["_sparse_ftrl_update"],
        _if_sparse,
        together="_multi_%sftrl_update",
    ),
    Step(
        "rmsprop_update",
        _rmsprop,
        ["n"],
        {
            "lr": per_step(),
            "gamma1": per_step(0.95),
            "epsilon": per_step(1e-8),
            **_stepping(),
            "clip_weights": per_step(-1.0),
        },
        "A step of RMSProp, by Tieleman and Hinton.",
        together="_multi_%srmsprop_update",
    ),
    Step(
        "rmspropalex_update",
        _rmspropalex,
        ["n", "g", "delta"],
        {
            "lr": per_step(),
            "gamma1": per_step(0.95),
            "gamma2": per_step(0.9),
            "epsilon": per_step(1e-8),
            **_stepping(),
            "clip_weights": per_step(-1.0),
        },
        "A step of RMSProp, centred and with momentum, by Graves.",
        together="_multi_%srmspropalex_update",
    ),
    Step(
        "_sparse_adagrad_update",
        _adagrad,
        ["history"],
        {"lr": per_step(), "epsilon": per_step(1e-7), **_stepping()},
        "A step of AdaGrad.",
        lazy=_always,
    ),
]
UPDATES = [o for step in STEPS for o in _update(*step)]


@op(
    "_contrib_group_adagrad_update",
    inputs="weight grad history",
    mutates="history",
    alias="weight->output",
    lr=per_step(),
    rescale_grad=per_step(1.0),
    clip_gradient=per_step(-1.0),
    epsilon=per_step(1e-5),
)
def group_adagrad_update(k: Call, p: Params, weight: Array, grad: Array, history: Array) -> Any:
    """A step of AdaGrad with one rate for each row.

    Parameters
    ----------
    weight, grad : array (n, ...)
    history : array (n, 1)
        State; written.
    lr : float
        Learning rate.
    rescale_grad : float
        Factor on the gradient.
    clip_gradient : float
        Bound on the absolute value of the rescaled gradient; none if negative.
    epsilon : float
        Added to a divisor.
    """
    return _body(_group_adagrad)(k, p, weight, grad, history)


group_adagrad_update.dtype(alike)
group_adagrad_update.storage(lambda p, stypes: [stypes[0]])


@group_adagrad_update.shape
def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    w = ins[0] or ins[1] or outs[0]
    return [w, w, None if w is None else (w[0], 1)], [w]
