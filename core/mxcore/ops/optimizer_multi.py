"""Optimizer updates of layers as wholes (LAMB, LARS, AdamW), and updates of many weights in one call."""

from __future__ import annotations

import numpy as np

from .._core.op import Op, op
from ..parameters import Bool, Float, Floats, Int, Shape
from ..testing.sample import Ints, Sample, Values
from .optimizer import (
    _EXACT,
    _adam_moments,
    _alike,
    _clipped,
    _doc,
    _f,
    _grad,
    _inputs,
    _master_dtypes,
    _real,
    _sgd,
    _sgd_mom,
    _uses,
)

__all__ = ["MANY"]

_F32 = np.dtype("float32")


class _Steps(Shape):
    """Numbers of steps, which are counted from 1."""

    element = staticmethod(Int(ge=1).convert)


# -- LAMB: the direction, then the step by the ratio of two norms -------------------------------------------------
def _direction(xp, p, t, wd, w, g, mean, var):
    mean, var = _adam_moments(p, _grad(xp, p, g), mean, var)
    m, v = (mean / (1 - p.beta1**t), var / (1 - p.beta2**t)) if p.bias_correction else (mean, var)
    return m / (xp.sqrt(v) + p.epsilon) + wd * w, mean, var


def _by_norms(xp, p, lr, w, g, r1, r2):
    """Scale the step by the ratio of the norms r1 (bounded) and r2; by 1 where one of them is 0."""
    if p.lower_bound >= 0:
        r1 = xp.maximum(r1, p.lower_bound)
    if p.upper_bound >= 0:
        r1 = xp.minimum(r1, p.upper_bound)
    bad = (r1 == 0) | (r2 == 0)
    return w - lr * xp.where(bad, 1.0, r1 / xp.where(bad, 1.0, r2)).astype(w.dtype) * g


def _norm(xp, x):
    return xp.sqrt((x * x).sum())


_BETAS = {"beta1": _f(0.9), "beta2": _f(0.999)}
_PHASE1 = {
    **_BETAS,
    "epsilon": _f(1e-6),
    "t": Int(ge=1, dynamic=True),
    "bias_correction": Bool(True),
    "wd": _f(),
    "rescale_grad": _f(1.0),
    "clip_gradient": _f(-1.0),
}
_PHASE2 = {"lr": _f(), "lower_bound": _f(-1.0), "upper_bound": _f(-1.0)}


def _phase1(k, p, weight, grad, mean, var, weight32=None):
    w = weight if weight32 is None else weight32
    return _direction(k.xp, p, p.t, p.wd, w, grad.astype(w.dtype), mean, var)


def _phase2(k, p, weight, g, r1, r2):
    return _by_norms(k.xp, p, p.lr, weight, g, r1, r2)


def _phase2_mixed(k, p, weight, g, r1, r2, weight32):
    new = _by_norms(k.xp, p, p.lr, weight32, g, r1, r2)
    return new.astype(weight.dtype), new


def _phases():
    first = ["weight", "grad", "mean", "var"]
    head = "The direction of a step of LAMB; a second operator scales it. The output is the direction."
    choices = ({}, {"bias_correction": False}, {"clip_gradient": -1.0, "t": 1})
    for mixed in (False, True):
        names = [*first, "weight32"] if mixed else first
        o = Op(
            "mp_" * mixed + "lamb_update_phase1",
            _phase1,
            inputs=" ".join(names),
            mutates="mean var",
            params=_PHASE1,
            doc=_doc(head, names, _PHASE1),
            samples=list(_uses(names, _PHASE1, choices, mixed)),
        )
        if mixed:
            o.dtype(lambda p, ins, outs: (_master_dtypes(p, ins, [])[0], [_F32]))
        else:
            o.dtype(_alike)
        yield o
    second = ["weight", "g", "r1", "r2"]
    head = "A step of LAMB along `g`, scaled by the ratio of r1 (norm of the weight) to r2 (norm of `g`)."
    for mixed in (False, True):
        names = [*second, "weight32"] if mixed else second

        def use(shape, r1, r2, values, mixed=mixed):
            arrays = [
                Values(shape, dtype="float16") if mixed else shape,
                shape,
                [r1],
                [r2],
                *([shape] if mixed else []),
            ]
            return Sample(
                *arrays,
                params=values,
                grad=False,
                dtypes="float32" if mixed else "float32 float64",
                mxnet="outputs only: MXNet leaves weight32 as it was" if mixed else True,
            )

        o = Op(
            "mp_" * mixed + "lamb_update_phase2",
            _phase2_mixed if mixed else _phase2,
            inputs=" ".join(names),
            params=_PHASE2,
            mutates="weight32" if mixed else "",
            alias="weight->output",
            doc=_doc(head, names, _PHASE2),
            samples=[use((3, 4), 2.0, 4.0, {"lr": 0.25, **c}) for c in ({}, {"lower_bound": 3.0}, {"upper_bound": 1.0})]
            + [
                use((5,), 2.0, 4.0, {"lr": "0.25", "lower_bound": "0.5", "upper_bound": "8.0"}),
                use((1,), 0.0, 4.0, {"lr": 0.5}),
                use((2, 1, 3), 2.0, 0.0, {"lr": 0.5}),
                use((2, 2), 0.0, 4.0, {"lr": 0.5, "lower_bound": 1.0}),
                use((3,), 2.0, 4.0, {"lr": 0.5, "upper_bound": 0.0}),
                use((0, 3), 2.0, 4.0, {"lr": 0.5}),
            ],
        )
        o.shape(_phase2_shape)
        if mixed:
            o.dtype(lambda p, ins, outs: ([_real(ins[0] or outs[0]), *[_F32] * 4], [ins[0] or outs[0]]))
        else:
            o.dtype(_alike)
        yield o


def _phase2_shape(p, ins, outs):
    w = ins[0] or ins[1] or outs[0]
    return [w, w, (1,), (1,), *([w] if len(ins) > 4 else [])], [w]


LAMB = [*_phases()]


# -- many weights in one call --------------------------------------------------------------------------------------
def _lamb_rule(xp, p, i, lr, wd, extra, w, g, mean, var):
    step, mean, var = _direction(xp, p, p.step_count[i], wd, w, g, mean, var)
    return _by_norms(xp, p, lr, w, step, _norm(xp, w), _norm(xp, step)), mean, var


def _adamw(xp, p, eta, lr, wd, scale, w, g, mean, var):
    """`scale` multiplies the gradient; where it is zero or not finite, the step is left out."""
    scale = scale.reshape(-1)[:1]
    fine = xp.isfinite(scale) & (scale != 0)
    g = _clipped(xp, p, xp.where(fine, scale, 1.0).astype(w.dtype) * g)
    new_mean, new_var = _adam_moments(p, g, mean, var)
    new = w - eta * (lr * new_mean / (xp.sqrt(new_var) + p.epsilon) + wd * w)
    return xp.where(fine, new, w), xp.where(fine, new_mean, mean), xp.where(fine, new_var, var)


def _adamw_rule(xp, p, i, lr, wd, extra, w, g, mean, var):
    return _adamw(xp, p, p.etas[i], lr, wd, extra[0], w, g, mean, var)


def _plain(rule):
    return lambda xp, p, i, lr, wd, extra, w, g, *states: rule(xp, p, lr, wd, w, g, *states)


_MANY_MEANING = {
    "lrs": "tuple of float\n    Learning rates.",
    "wds": "tuple of float\n    Weight decays.",
    "learning_rates": "tuple of float",
    "etas": "tuple of float\n    Factors on the whole steps.",
    "step_count": "tuple of int\n    Numbers of the steps, from 1.",
    "num_weights": "int\n    How many weights.",
    "num_tensors": "int\n    How many weights.",
}


#: Outputs may be the weights themselves; 256 are more than is ever updated at once.
_IN_PLACE = " ".join(f"weight_{i}->output{i}" for i in range(256))


def _many(name, rule, states, params, head, count="num_weights", last=(), rates=("lrs", "wds"), sample=None):
    """Declare ``name`` over the weights of one dtype and ``name % 'mp_'`` over weights with master copies.

    `last` are arrays after all the weights; those named in `rates` may be among them.
    """
    lists = [m for m, s in params.items() if isinstance(s, Shape)]
    for mixed in (False, True):
        names = ["weight", "grad", *states, *(["weight32"] if mixed else [])]
        own = {count: Int(1, ge=1)}

        def body(k, p, *data, mixed=mixed, names=names):
            xp, per, n = k.xp, len(names), getattr(p, count)
            more = dict(zip(last, data[n * per :]))
            lrs, wds = (more[r] if r in more else getattr(p, r) for r in rates)
            _one_each(p, count, lists)
            outs, written = [], []
            for i in range(n):
                w, g, *old = data[i * per : (i + 1) * per]
                if mixed:
                    *old, low = *old[:-1], w
                    w, g = data[(i + 1) * per - 1], g.astype(_F32)
                lr, wd = (v if isinstance(v, (int, float)) else v.astype(w.dtype) for v in (lrs[i], wds[i]))
                new, *new_states = rule(xp, p, i, lr, wd, [more[m] for m in last], w, g, *old)
                outs.append(new.astype(low.dtype) if mixed else new)
                written += [*new_states, new] if mixed else new_states
            return outs + written

        def arguments(p, names=names):
            return [f"{m}_{i}" for i in range(getattr(p, count)) for m in names] + list(last)

        def written(p, names=names):
            return [f"{m}_{i}" for i in range(getattr(p, count)) for m in names[2:]]

        specs = {**params, **own}
        words = {
            **{
                n: "tuple of arrays\n    For each weight in turn: "
                + ", ".join(names)
                + ("; then " + ", ".join(last) if last else "")
                for n in ("data",)
            }
        }
        doc = "\n".join(
            [
                head + (" The weights have master copies in float32." if mixed else ""),
                "",
                "Parameters",
                "----------",
                f"data : {words['data']}",
                *[line for n in specs for line in _word(n)],
                "",
                "Notes",
                "-----",
                "Behaviour matched: MXNet 1.9.1's operator of this name.",
            ]
        )
        o = Op(
            name % ("mp_" if mixed else ""),
            body,
            inputs="data*",
            count=count,
            arg_names=arguments,
            mutates=written,
            params=specs,
            doc=doc,
            outputs=lambda p: (
                ["output"] if getattr(p, count) == 1 else [f"output{i}" for i in range(getattr(p, count))]
            ),
            alias=_IN_PLACE,
            samples=list(_many_samples(names, specs, sample, count, last, rates, mixed)),
        )
        _rules(o, names, count, last, mixed, lists)
        yield o


def _word(n):
    if n in _MANY_MEANING:
        return [f"{n} : {_MANY_MEANING[n]}"]
    return _doc("", [], [n]).splitlines()[4:-4]


def _many_samples(names, specs, given, count, last, rates, mixed):
    """Two weights with everything; one, and three, with next to nothing; clips; strings; float16."""
    tail = {"lrs": [0.25, 0.5, 0.125], "wds": [0.125, 0.25, 0.0], "rescale_grad": [0.5]}
    needed = {n: s for n, s in specs.items() if s.required}

    def use(shapes, values, dtypes="float32" if mixed or last else "float32 float64", **more):
        n = len(shapes)
        cut = {k: v[:n] if isinstance(v, tuple) else v for k, v in values.items()}
        ends = [np.array(tail[m][: n if m in rates else 1], np.float32) for m in last]
        return Sample(
            *[a for s in shapes for a in _inputs(names, s, mixed)],
            *ends,
            params={**cut, count: n},
            dtypes=dtypes,
            grad=False,
            **more,
        )

    few = {n: (0.25, 0.5, 0.125) if isinstance(s, Floats) else (3, 1, 2) for n, s in needed.items()}
    yield use([(3, 4), (5,)], given)
    yield use([(2, 3)], few, "float32")  # MXNet keeps parameters in float32 even where the weights are float64
    yield use([(2,), (1, 3), (2, 1, 2)], few, "float32")
    yield use([(0, 3), (2,)], few, "float32")
    if "clip_gradient" in specs:
        yield use([(4,), (1,)], {**given, "clip_gradient": -1.0})
        yield use([(2, 2), (3,)], {**given, "clip_gradient": 0.0})
    yield use([(3,), (2, 1)], {n: v if isinstance(v, tuple) else str(v) for n, v in given.items()})
    for n in ("bias_correction", "lower_bound", "upper_bound"):
        if n in specs:
            yield use([(3,), (2, 2)], {**given, "upper_bound": -1.0, n: {"bias_correction": False}.get(n, 3.0)})
    if not mixed and not last:
        yield use([(3, 2), (4,)], given, "float16")


def _one_each(p, count, lists):
    """Raise ValueError unless each of these parameters holds a number for every weight."""
    n = getattr(p, count)
    for m in lists:
        if len(getattr(p, m)) != n:
            raise ValueError(f"{m} must hold {n} numbers, one for each of {count}, got {len(getattr(p, m))}")


def _rules(o, names, count, last, mixed, lists):
    per = len(names)

    @o.shape
    def _(p, ins, outs):
        n = getattr(p, count)
        _one_each(p, count, lists)
        new_ins, new_outs = [], []
        for i in range(n):
            group = ins[i * per : (i + 1) * per]
            one = next((s for s in (*group, outs[i]) if s is not None), None)
            new_ins += [one] * per
            new_outs.append(one)
        return new_ins + [(n,) if m in ("lrs", "wds") else s for m, s in zip(last, ins[n * per :])], new_outs

    @o.dtype
    def _(p, ins, outs):
        n = getattr(p, count)
        given = [t for i in range(n) for t in (*ins[i * per : i * per + (2 if mixed else per)], outs[i])]
        one = _real(next((t for t in given if t is not None), None))
        group = [one, one, *[_F32 if mixed else one] * (per - 2)]
        return group * n + [_F32] * len(last), [one] * n


_SGD = {"rescale_grad": _f(1.0), "clip_gradient": _f(-1.0)}
_MOM = {"momentum": _f(0.0), **_SGD}
_RATES = {"lrs": Floats(dynamic=True), "wds": Floats(dynamic=True)}
_GIVEN = {"rescale_grad": 0.5, "clip_gradient": 0.75}
_MOMENTS = {n: _EXACT[n] for n in ("beta1", "beta2", "epsilon")}
_GIVEN_RATES = {"lrs": (0.25, 0.5), "wds": (0.125, 0.25)}

MANY = [
    *_many(
        "multi_%ssgd_update",
        _plain(_sgd),
        [],
        {**_RATES, **_SGD},
        "A step of gradient descent for many weights.",
        sample={**_GIVEN, **_GIVEN_RATES},
    ),
    *_many(
        "multi_%ssgd_mom_update",
        _plain(_sgd_mom),
        ["mom"],
        {**_RATES, **_MOM},
        "A step with momentum for many weights.",
        sample={**_GIVEN, **_GIVEN_RATES, "momentum": 0.5},
    ),
    *_many(
        "preloaded_multi_%ssgd_update",
        _plain(_sgd),
        [],
        _SGD,
        "A step of gradient descent for many weights; the rates are arrays.",
        last=("lrs", "wds"),
        sample=_GIVEN,
    ),
    *_many(
        "preloaded_multi_%ssgd_mom_update",
        _plain(_sgd_mom),
        ["mom"],
        _MOM,
        "A step with momentum for many weights; the rates are arrays.",
        last=("lrs", "wds"),
        sample={**_GIVEN, "momentum": 0.5},
    ),
    *_many(
        "_multi_%slamb_update",
        _lamb_rule,
        ["mean", "var"],
        {
            "learning_rates": Floats(dynamic=True),
            **_BETAS,
            "epsilon": _f(1e-6),
            "wds": Floats(dynamic=True),
            "rescale_grad": _f(1.0),
            "lower_bound": _f(-1.0),
            "upper_bound": _f(-1.0),
            "clip_gradient": _f(-1.0),
            "bias_correction": Bool(True),
            "step_count": _Steps(dynamic=True),
        },
        "A step of LAMB for many weights.",
        count="num_tensors",
        rates=("learning_rates", "wds"),
        sample={
            **_MOMENTS,
            "learning_rates": (0.25, 0.5),
            "wds": (0.125, 0.25),
            "step_count": (3, 4),
            "rescale_grad": 0.5,
            "clip_gradient": 0.75,
            "upper_bound": 2.0,
        },
    ),
    *_many(
        "_multi_%sadamw_update",
        _adamw_rule,
        ["mean", "var"],
        {
            "lrs": Floats(dynamic=True),
            **_BETAS,
            "epsilon": _f(1e-8),
            "wds": Floats(dynamic=True),
            "etas": Floats(dynamic=True),
            "clip_gradient": _f(-1.0),
        },
        "A step of AdamW for many weights.",
        last=("rescale_grad",),
        sample={**_MOMENTS, **_GIVEN_RATES, "etas": (0.5, 0.25), "clip_gradient": 0.75},
    ),
]

_ADAMW = {"lr": _f(), **_BETAS, "epsilon": _f(1e-8), "wd": _f(0.0), "eta": _f(), "clip_gradient": _f(-1.0)}


def _adamw_body(k, p, weight, grad, mean, var, rescale_grad):
    return _adamw(k.xp, p, p.eta, p.lr, p.wd, rescale_grad, weight, grad, mean, var)


def _adamw_mixed(k, p, weight, grad, mean, var, weight32, rescale_grad):
    new, mean, var = _adamw(k.xp, p, p.eta, p.lr, p.wd, rescale_grad, weight32, grad.astype(_F32), mean, var)
    return new.astype(weight.dtype), mean, var, new


def _adamw_ops():
    given = {n: _EXACT[n] for n in _ADAMW}
    for mixed in (False, True):
        names = ["weight", "grad", "mean", "var", *(["weight32"] if mixed else [])]
        o = Op(
            "_mp_adamw_update" if mixed else "_adamw_update",
            _adamw_mixed if mixed else _adamw_body,
            params=_ADAMW,
            alias="weight->output",
            inputs=" ".join([*names, "rescale_grad"]),
            mutates=" ".join(names[2:]),
            doc=_doc(
                "A step of AdamW; left out where `rescale_grad` is zero or not finite.",
                [*names, "rescale_grad"],
                _ADAMW,
            ),
            samples=[
                Sample(
                    *_inputs(names, shape, mixed),
                    np.array([scale], np.float32),
                    params={**given, **c},
                    grad=False,
                    dtypes="float32",
                )
                for shape, scale, c in (
                    ((3, 4), 0.5, {}),
                    ((3, 4), 0.5, {"clip_gradient": -1.0}),
                    ((5,), 0.5, {"wd": 0.0, "clip_gradient": 0.0}),
                    ((2, 3), 0.0, {}),
                    ((2, 1, 3), np.inf, {}),
                    ((4,), np.nan, {}),
                    ((1,), 4.0, {"eta": "2.0", "lr": "0.5", "beta1": "0.25", "wd": "0.5"}),
                )
            ]
            + [
                Sample(
                    *_inputs(names, (5,), mixed),
                    np.array([1.0], np.float32),
                    params={"lr": 0.25, "eta": 0.5},
                    grad=False,
                    dtypes="float32",
                )
            ],
        )
        o.shape(lambda p, ins, outs: ([ins[0] or outs[0]] * (len(ins) - 1) + [ins[-1]], [ins[0] or outs[0]]))
        rule = _master_dtypes if mixed else _alike
        o.dtype(lambda p, ins, outs, rule=rule: _but_last(rule, p, ins, outs))
        yield o


def _but_last(rule, p, ins, outs):
    found, outs = rule(p, ins[:-1], outs)
    return [*found, _F32], outs


ADAMW = [*_adamw_ops()]


@op(
    "multi_lars",
    inputs="lrs weights_sum_sq grads_sum_sq wds",
    alias="lrs->output",
    eta=Float(),
    eps=Float(),
    rescale_grad=_f(1.0),
    samples=[
        Sample(*[Values((4,), 0.5, 2.0)] * 4, params={"eta": 0.25, "eps": 0.5, "rescale_grad": 0.5}, grad=False),
        Sample([1.0, 1.0], [4.0, 0.0], [0.0, 4.0], [0.5, 0.5], params={"eta": 0.25, "eps": 0.5}, grad=False),
        Sample(*[Values((1,), 0.5, 2.0)] * 4, params={"eta": "0.25", "eps": "0.0"}, grad=False),
        Sample(
            *[Values((7,), 0.5, 2.0)] * 4,
            params={"eta": 1.0, "eps": 0.0, "rescale_grad": -2.0},
            grad=False,
            dtypes="float32 float64",
        ),
    ],
)
def multi_lars(k, p, lrs, weights_sum_sq, grads_sum_sq, wds):
    """Learning rates of LARS: scaled by the ratio of the norms of weights and gradients; as they are where one is zero.

    Parameters
    ----------
    lrs : array (n,)
        Learning rates of the layers.
    weights_sum_sq, grads_sum_sq : array (n,)
        Sums of squares of the weights and of the gradients.
    wds : array (n,)
        Weight decays.
    eta : float
        Factor on the ratio.
    eps : float
        Added to the divisor.
    rescale_grad : float
        Factor on the gradients.
    """
    xp = k.xp
    w, g = xp.sqrt(weights_sum_sq), xp.sqrt(grads_sum_sq) * p.rescale_grad
    return xp.where((w > 0) & (grads_sum_sq > 0), lrs * p.eta * w / (g + wds * w + p.eps), lrs)


multi_lars.dtype(_alike)


@op(
    "multi_sum_sq",
    inputs="data*",
    count="num_arrays",
    num_arrays=Int(ge=1, le=1 << 16),
    arg_names=lambda p: [f"array_{i}" for i in range(p.num_arrays)],
    samples=[
        Sample((3, 4), (5,), params={"num_arrays": 2}, grad=False, tol=4, dtypes="float16 float32 float64"),
        Sample((2, 1, 3), params={"num_arrays": "1"}, grad=False, tol=4),
        Sample((1,), (2, 2), (3,), params={"num_arrays": 3}, grad=False, tol=4),
        Sample((0, 3), (2,), params={"num_arrays": 2}, grad=False),
    ],
)
def multi_sum_sq(k, p, *data):
    """The sum of squares of each array, in one float32 array.

    Parameters
    ----------
    data : arrays
    num_arrays : int
    """
    return k.xp.stack([(x.astype(_F32) * x.astype(_F32)).sum() for x in data])


multi_sum_sq.shape(lambda p, ins, outs: (ins, [(p.num_arrays,)]))
multi_sum_sq.dtype(lambda p, ins, outs: (_alike(p, ins, [])[0], [_F32]))


@op(
    "reset_arrays",
    inputs="data*",
    outputs="",
    count="num_arrays",
    mutates=lambda p: [f"arg{i}" for i in range(p.num_arrays)],
    samples=[
        Sample((3, 4), (5,), params={"num_arrays": 2}, grad=False, dtypes="float16 float32 float64"),
        Sample((2, 1, 2), params={"num_arrays": "1"}, grad=False),
        Sample(Ints((2, 3), -5, 5), params={"num_arrays": 1}, grad=False, dtypes="int32 uint8"),
        Sample((0, 3), (2,), params={"num_arrays": 2}, grad=False),
        Sample((5,), (1, 1), (2, 3), params={"num_arrays": "3"}, grad=False, domain=(-1e30, 1e30)),
    ],
)
def reset_arrays(k, p, *data):
    """Fill arrays with zeros.

    Parameters
    ----------
    data : arrays
        Written.
    num_arrays : int
    """
    return [k.xp.zeros_like(x) for x in data]


reset_arrays.shape(lambda p, ins, outs: (ins, outs))
reset_arrays.dtype(lambda p, ins, outs: (ins, outs))
