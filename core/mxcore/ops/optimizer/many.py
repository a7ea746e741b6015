"""Optimizer updates of many weights in one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._core.op import Op, op
from ..._core.params import Params
from ...parameters import Bool, Floats, Int, Shape
from ...typing import Array, Call
from .layerwise import BETAS, StepCounts, adamw_step, factor_shape, lamb_direction, norm, scaled_by_norms
from .single import STEPS, docstring_of, per_step, sgd_mom_step, sgd_step, weight_dtype

__all__ = ["MANY"]


_F32 = np.dtype("float32")


def _lamb_rule(xp: Any, p: Params, i: Any, lr: Any, wd: Any, extra: Any, w: Any, g: Any, mean: Any, var: Any) -> Any:
    step, mean, var = lamb_direction(xp, p, p.step_count[i], wd, w, g, mean, var)
    return scaled_by_norms(xp, p, lr, w, step, norm(xp, w), norm(xp, step)), mean, var


def _adamw_rule(xp: Any, p: Params, i: Any, lr: Any, wd: Any, extra: Any, w: Any, g: Any, mean: Any, var: Any) -> Any:
    return adamw_step(xp, p, p.etas[i], lr, wd, extra[0], w, g, mean, var)


def _plain(rule: Any) -> Any:
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


def _many(
    name: str,
    rule: Any,
    states: Any,
    params: Any,
    head: str,
    count: Any = "num_weights",
    last: Any = (),
    rates: Any = ("lrs", "wds"),
    notes: str = "Behaviour matched: MXNet 1.9.1's operator of this name.",
) -> Iterator[Any]:
    """Declare ``name`` over the weights of one dtype and ``name % 'mp_'`` over weights with master copies.

    `last` are arrays after all the weights; those named in `rates` may be among them.
    """
    lists = [m for m, s in params.items() if isinstance(s, Shape)]
    for mixed in (False, True):
        names = ["weight", "grad", *states, *(["weight32"] if mixed else [])]
        own = {count: Int(1, ge=1)}

        def body(k: Call, p: Params, *data: Array, mixed: Array = mixed, names: Array = names) -> Any:
            xp, per, n = k.xp, len(names), getattr(p, count)
            more = dict(zip(last, data[n * per :]))
            lrs, wds = (more[r] if r in more else getattr(p, r) for r in rates)
            _one_each(p, count, lists)
            outs: list[Any] = []
            written: list[Any] = []
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

        def arguments(p: Params, names: Any = names) -> Any:
            return [f"{m}_{i}" for i in range(getattr(p, count)) for m in names] + list(last)

        def written(p: Params, names: Any = names) -> Any:
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
                notes,
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
        )
        _rules(o, names, count, last, mixed, lists)
        yield o


def _word(n: Any) -> Any:
    if n in _MANY_MEANING:
        return [f"{n} : {_MANY_MEANING[n]}"]
    return docstring_of("", [], [n]).splitlines()[4:-4]


def _one_each(p: Params, count: Any, lists: Any) -> None:
    """Raise ValueError unless each of these parameters holds a number for every weight."""
    n = getattr(p, count)
    for m in lists:
        if len(getattr(p, m)) != n:
            raise ValueError(f"{m} must hold {n} numbers, one for each of {count}, got {len(getattr(p, m))}")


def _rules(o: Op, names: Any, count: Any, last: Any, mixed: Any, lists: Any) -> None:
    per = len(names)

    @o.shape
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        n = getattr(p, count)
        _one_each(p, count, lists)
        new_ins, new_outs = [], []
        for i in range(n):
            group = ins[i * per : (i + 1) * per]
            one = next((s for s in (*group, outs[i]) if s is not None), None)
            new_ins += [one] * per
            new_outs.append(one)
        more = {m: (n,) if m in ("lrs", "wds") else factor_shape(s) for m, s in zip(last, ins[n * per :])}
        return [*new_ins, *more.values()], new_outs

    @o.dtype
    def _(p: Params, ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        n = getattr(p, count)
        given = [t for i in range(n) for t in (*ins[i * per : i * per + (2 if mixed else per)], outs[i])]
        one = weight_dtype(next((t for t in given if t is not None), None))
        group = [one, one, *[_F32 if mixed else one] * (per - 2)]
        return group * n + [_F32] * len(last), [one] * n


_SGD = {"rescale_grad": per_step(1.0), "clip_gradient": per_step(-1.0)}
_MOM = {"momentum": per_step(0.0), **_SGD}
_RATES = {"lrs": Floats(dynamic=True), "wds": Floats(dynamic=True)}

MANY = [
    *_many(
        "multi_%ssgd_update", _plain(sgd_step), [], {**_RATES, **_SGD}, "A step of gradient descent for many weights."
    ),
    *_many(
        "multi_%ssgd_mom_update",
        _plain(sgd_mom_step),
        ["mom"],
        {**_RATES, **_MOM},
        "A step with momentum for many weights.",
    ),
    *_many(
        "preloaded_multi_%ssgd_update",
        _plain(sgd_step),
        [],
        _SGD,
        "A step of gradient descent for many weights; the rates are arrays.",
        last=("lrs", "wds"),
    ),
    *_many(
        "preloaded_multi_%ssgd_mom_update",
        _plain(sgd_mom_step),
        ["mom"],
        _MOM,
        "A step with momentum for many weights; the rates are arrays.",
        last=("lrs", "wds"),
    ),
    *_many(
        "_multi_%slamb_update",
        _lamb_rule,
        ["mean", "var"],
        {
            "learning_rates": Floats(dynamic=True),
            **BETAS,
            "epsilon": per_step(1e-6),
            "wds": Floats(dynamic=True),
            "rescale_grad": per_step(1.0),
            "lower_bound": per_step(-1.0),
            "upper_bound": per_step(-1.0),
            "clip_gradient": per_step(-1.0),
            "bias_correction": Bool(True),
            "step_count": StepCounts(dynamic=True),
        },
        "A step of LAMB for many weights.",
        count="num_tensors",
        rates=("learning_rates", "wds"),
    ),
    *_many(
        "_multi_%sadamw_update",
        _adamw_rule,
        ["mean", "var"],
        {
            "lrs": Floats(dynamic=True),
            **BETAS,
            "epsilon": per_step(1e-8),
            "wds": Floats(dynamic=True),
            "etas": Floats(dynamic=True),
            "clip_gradient": per_step(-1.0),
        },
        "A step of AdamW for many weights.",
        last=("rescale_grad",),
    ),
    *[
        o
        for step in STEPS
        if step.together.startswith("_")
        for o in _many(
            step.together,
            _plain(step.rule),
            step.states,
            {**_RATES, **{n: s for n, s in step.params.items() if n not in ("lr", "wd", "lazy_update")}},
            f"{step.head.removesuffix('.')} for many weights.",
            notes=f"What `{step.name}` does for each. MXNet has no such operator.",
        )
    ],
]


@op(
    "reset_arrays",
    inputs="data*",
    outputs="",
    count="num_arrays",
    mutates=lambda p: [f"arg{i}" for i in range(p.num_arrays)],
)
def reset_arrays(k: Call, p: Params, *data: Array) -> Any:
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
