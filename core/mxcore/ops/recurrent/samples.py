"""Samples of the operators of :mod:`mxcore.ops.recurrent`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Sample
from .cells import layout

__all__ = ["SAMPLES"]


def _check_rnn(inputs: Any, outputs: Any) -> None:
    assert np.isfinite(outputs[0]).all() and np.abs(outputs[0]).max() <= 1


#: Why MXNet cannot say what is right, by what a sample uses.
_REASONS = {
    "projection_size": "MXNet trains projections on the GPU only",
    "use_sequence_length": "MXNet uses lengths on the GPU only",
    "lstm_state_clip_min": "MXNet clips on the GPU only",
}


def _sample(
    mode: str, params: dict[str, Any], shape: tuple[int, int, int] = (3, 2, 4), lengths: Any = None, **kw: Any
) -> Sample:
    """One use: data (time, batch, inputs) of a shape, states and weights as the parameters need them."""
    q = {"state_size": 3, "num_layers": 1, "mode": mode, **params}
    units, layers, directions = int(q["state_size"]), int(q["num_layers"]), 2 if q.get("bidirectional") else 1
    state = int(q.get("projection_size") or units)
    size = layout(mode, shape[2], units, layers, directions, int(q.get("projection_size") or 0)).size
    states = [(layers * directions, shape[1], n) for n in ([state, units] if mode == "lstm" else [state])]
    given = [] if lengths is None else [lengths]
    why = next((r for n, r in _REASONS.items() if n in q), True)
    kw = {
        "domain": (-0.9, 0.9),
        "train": True,
        "mxnet": why,
        **({"grad": (1,) * (2 + len(states)) + (0,)} if given else {}),
        **kw,
    }
    return Sample(shape, (size,), *states, *given, params=q, **kw)


def _samples() -> list[Sample]:
    both, last = {"bidirectional": True}, {"state_outputs": True}
    found = [
        _sample(mode, more)
        for mode in ("rnn_relu", "rnn_tanh", "gru", "lstm")
        for more in ({}, {**both, **last}, {"num_layers": 2}, {"num_layers": 2, **both, **last})
    ]
    found += [_sample(mode, {"num_layers": 3, **more}) for mode, more in (("gru", last), ("lstm", both))]
    # MXNet's float64 gradient is wrong.
    found += [_sample(mode, {"num_layers": 3}, dtypes="float32") for mode in ("rnn_tanh", "rnn_relu")]
    found += [
        _sample("lstm", {"state_size": "1", "num_layers": "1", "state_outputs": "True", "p": "0"}, (1, 1, 1)),
        _sample("gru", {"state_size": 5}, (4, 1, 2)),
        _sample("lstm", last, (3, 0, 2)),
        _sample("rnn_relu", {}, (2, 0, 3)),
        _sample("rnn_tanh", {"state_size": 1, **both}, (2, 3, 1)),
        _sample("gru", {**both, **last}, (1, 2, 3)),
        _sample(
            "lstm",
            {"num_layers": 2, "p": 0.5, **last},
            train=False,
            mxnet="MXNet drops in prediction too, if it records in float64",
        ),
        _sample("gru", {"p": 0.5}),
        _sample("lstm", {"projection_size": 2, **last}),
        _sample("lstm", {"projection_size": 2, "num_layers": 2, **both}),
        _sample("lstm", {"lstm_state_clip_min": -0.2, "lstm_state_clip_max": 0.3, **last}, grad=False),
        _sample(
            "lstm",
            {"lstm_state_clip_min": "-0.2", "lstm_state_clip_max": "0.3", "lstm_state_clip_nan": "True", **both},
            grad=False,
        ),
        _sample("gru", {"num_layers": 2, "p": 0.5}, check=_check_rnn, grad=False, domain=(-0.5, 0.5)),
    ]
    lengths = {"use_sequence_length": True}
    found += [
        _sample("lstm", {**both, **last, **lengths}, lengths=np.array([3, 1], np.int32)),
        _sample("gru", {**last, **lengths}, lengths=np.array([2, 3], np.int32)),
        _sample("rnn_tanh", {"num_layers": 2, **both, **lengths}, lengths=np.array([1, 3], np.int64)),
        _sample("rnn_relu", lengths, lengths=[3, 2]),
    ]
    return found


def _backward_samples() -> list[Sample]:
    x, h = (3, 2, 4), (1, 2, 3)
    gates, hidden = (1, 3, 2, 12), (1, 3, 2, 3)
    q = {"state_size": 3, "num_layers": 1}
    rows = [
        ("rnn_tanh", (27,), (h,), (hidden,)),
        ("gru", (81,), (h,), (gates, hidden)),
        ("lstm", (108,), (h, h), (gates, hidden, hidden)),
    ]
    return [
        Sample(
            (3, 2, 3),
            x,
            size,
            *states,
            *reserve,
            params={**q, "mode": mode},
            domain=(0.1, 0.9),
            grad=False,
            mxnet="internal",
        )
        for mode, size, states, reserve in rows
    ]


SAMPLES = {"RNN": _samples(), "_backward_RNN": _backward_samples()}
