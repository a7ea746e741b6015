"""Uses of neural operators where behaviour is easily missed: what the golden file holds, and how its numbers are made.

NumPy only, so that this module also runs beside the real MXNet. Numbers come from sines, not from a generator whose
streams differ between versions of NumPy.
"""

from contextlib import nullcontext

import numpy as np

__all__ = ["CASES", "Corner", "wave", "run"]


def wave(shape, phase, scale=1.0):
    """Deterministic float32 values in [-scale, scale]."""
    n = int(np.prod(shape))
    return (scale * np.sin(np.arange(1, n + 1) * 1.7 + phase * phase)).astype(np.float32).reshape(shape)


class Corner:
    """One call: inputs as shapes (filled with waves) or lists of values, parameters, which inputs are states, modes.

    With `double` it runs in float64, where MXNet uses its own code; oneDNN's refuses padding that differs between the
    ends.
    """

    def __init__(self, op, *inputs, states=(), wrt=None, train=True, backward_train=True, double=False, **params):
        self.op, self.params, self.states = op, params, states
        self.train, self.backward_train = train, backward_train
        kind = np.float64 if double else np.float32
        self.inputs = [
            wave(x, i + 1).astype(kind) if isinstance(x, tuple) else np.asarray(x, getattr(x, "dtype", kind))
            for i, x in enumerate(inputs)
        ]
        self.wrt = [i for i, x in enumerate(inputs) if isinstance(x, tuple) and i not in states] if wrt is None else wrt

    def __repr__(self):
        shapes = " ".join("x".join(map(str, x.shape)) for x in self.inputs)
        mode = "" if self.train and self.backward_train else f" train={self.train},{self.backward_train}"
        return f"{self.op} {shapes} {' '.join(f'{k}={v}' for k, v in self.params.items())}{mode}"


def run(mx, case):
    """Outputs, gradients, and states after forward and after backward, in one list."""
    xs = [mx.nd.array(a, dtype=a.dtype) for a in case.inputs]
    for i in case.wrt:
        xs[i].attach_grad()
    with mx.autograd.record(train_mode=case.train) if case.wrt else nullcontext():
        ys = getattr(mx.nd, case.op)(*xs, **case.params)
    ys = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    found = [y.asnumpy() for y in ys] + [xs[i].asnumpy() for i in case.states]
    if case.wrt:
        heads = [mx.nd.array(wave(y.shape, 7 + j), dtype=y.dtype) for j, y in enumerate(ys)]
        mx.autograd.backward(ys, heads, train_mode=case.backward_train)
        found += [xs[i].grad.asnumpy() for i in case.wrt] + [xs[i].asnumpy() for i in case.states]
    return found


def _batch_norm(**more):
    return Corner("BatchNorm", (4, 3, 2), (3,), (3,), (3,), [1.0, 0.5, 2.0], states=(3, 4), wrt=[0, 1, 2], **more)


def _rnn(mode, layers, directions, **more):
    gates, inputs = {"lstm": 4, "gru": 3}.get(mode, 1), 4
    size = sum(directions * gates * 3 * ((directions * 3 if layer else inputs) + 3 + 2) for layer in range(layers))
    states = [(layers * directions, 2, 3)] * (2 if mode == "lstm" else 1)
    return Corner(
        "RNN",
        (3, 2, inputs),
        (size,),
        *states,
        mode=mode,
        num_layers=layers,
        bidirectional=directions == 2,
        state_size=3,
        **more,
    )


def _projected(layers, directions):
    size = sum(directions * (4 * 3 * ((directions * 2 if layer else 4) + 2 + 2) + 2 * 3) for layer in range(layers))
    rows = layers * directions
    # MXNet trains projections on the GPU only.
    return Corner(
        "RNN",
        (3, 2, 4),
        (size,),
        (rows, 2, 2),
        (rows, 2, 3),
        wrt=[],
        mode="lstm",
        num_layers=layers,
        bidirectional=directions == 2,
        state_size=3,
        projection_size=2,
        state_outputs=True,
    )


_TIES = [[[[1, 1, 0, 2], [1, 0, 2, 2], [0, 3, 3, 1], [3, 3, 1, 1]]]]
_LABELS = [[0, 2, 1, 1], [1, 1, 2, 0]]

CASES = [
    # Batch normalization: the moving statistics move in backward, and only if both passes are in training mode.
    _batch_norm(fix_gamma=False),
    _batch_norm(fix_gamma=True),
    _batch_norm(fix_gamma=False, output_mean_var=True, momentum=0.6),
    _batch_norm(fix_gamma=False, use_global_stats=True, output_mean_var=True),
    _batch_norm(fix_gamma=False, train=False),
    _batch_norm(fix_gamma=False, backward_train=False),
    _batch_norm(fix_gamma=False, train=False, backward_train=False),
    Corner(
        "BatchNorm",
        (4, 3, 2),
        (2,),
        (2,),
        (2,),
        [1.0, 0.5],
        states=(3, 4),
        wrt=[0, 1, 2],
        fix_gamma=False,
        axis=-1,
        eps=0.1,
    ),
    Corner("LayerNorm", (3, 5), (5,), (5,), output_mean_var=True),
    Corner("GroupNorm", (3, 4, 2), (2,), (2,), num_groups=2, output_mean_var=True),
    # Pooling: conventions, what an average counts, and which of equal maxima gets the gradient.
    *(
        Corner("Pooling", (2, 2, 5, 6), kernel=(3, 2), stride=(2, 2), pad=(1, 1), pooling_convention=c, pool_type=t)
        for c in ("valid", "full")
        for t in ("max", "avg", "sum")
    ),
    Corner(
        "Pooling",
        (2, 2, 5, 6),
        kernel=(3, 2),
        stride=(2, 2),
        pad=(1, 1),
        pooling_convention="full",
        pool_type="avg",
        count_include_pad=False,
    ),
    Corner("Pooling", _TIES, wrt=[0], kernel=(3, 3), stride=(1, 1)),
    Corner("Pooling", _TIES, wrt=[0], kernel=(2, 2), stride=(2, 2)),
    Corner("Pooling", _TIES, wrt=[0], global_pool=True),
    Corner("Pooling", (2, 3, 4), global_pool=True, pool_type="avg", kernel=(2,), stride=(3,)),
    *(Corner("Pooling", (2, 3, 6), kernel=(3,), stride=(2,), pool_type="lp", p_value=n) for n in (1, 2, 3)),
    Corner(
        "Convolution",
        (2, 2, 8, 9),
        (4, 1, 3, 2),
        (4,),
        kernel=(3, 2),
        stride=(3, 2),
        pad=(2, 1),
        dilate=(1, 2),
        num_filter=4,
        num_group=2,
    ),
    Corner(
        "Deconvolution",
        (1, 2, 3, 4),
        (2, 2, 3, 3),
        kernel=(3, 3),
        stride=(2, 2),
        num_filter=2,
        target_shape=(6, 8),
        double=True,
    ),
    Corner(
        "Deconvolution",
        (1, 2, 3, 4),
        (2, 3, 3, 3),
        (3,),
        kernel=(3, 3),
        stride=(2, 3),
        num_filter=3,
        adj=(1, 2),
        pad=(1, 0),
        no_bias=False,
        double=True,
    ),
    # Softmax output: which count divides the gradient.
    *(
        Corner("SoftmaxOutput", (4, 3), [0, 2, 1, 1], normalization=n, **q)
        for n in ("null", "batch", "valid")
        for q in ({}, {"use_ignore": True, "ignore_label": 1}, {"smooth_alpha": 0.1, "grad_scale": 2.5})
    ),
    *(
        Corner("SoftmaxOutput", (2, 3, 4), _LABELS, normalization=n, multi_output=True, use_ignore=True, ignore_label=1)
        for n in ("null", "batch", "valid")
    ),
    *(
        Corner(
            "SoftmaxOutput", (2, 4, 3), _LABELS, normalization=n, preserve_shape=True, use_ignore=True, ignore_label=1
        )
        for n in ("null", "batch", "valid")
    ),
    Corner("SoftmaxOutput", (4, 3), [0, 5, 2, -1]),
    Corner("SoftmaxOutput", (2, 3), [[0.2, 0.3, 0.5], [1, 0, 0]], normalization="batch", grad_scale=2),
    Corner("LinearRegressionOutput", (4, 3), (4, 3), grad_scale=2),
    Corner("LogisticRegressionOutput", (4, 1), (4,)),
    Corner("MAERegressionOutput", (4, 2, 3), (4, 6)),
    *(
        Corner("SVMOutput", (4, 3), [0, 2, 1, 1], margin=0.5, use_linear=u, regularization_coefficient=2)
        for u in (False, True)
    ),
    *(Corner("MakeLoss", (4, 3), normalization=n, grad_scale=2, valid_thresh=0.3) for n in ("null", "batch", "valid")),
    # Recurrent networks: the order of the packed weights, of the gates, of layers and directions.
    *(
        _rnn(mode, layers, directions, state_outputs=True)
        for mode, layers, directions in (
            ("lstm", 1, 1),
            ("lstm", 2, 2),
            ("gru", 1, 1),
            ("gru", 2, 2),
            ("rnn_tanh", 1, 2),
            ("rnn_relu", 2, 1),
        )
    ),
    _rnn("lstm", 1, 2),
    _rnn("gru", 2, 1),
    _projected(1, 1),
    _projected(2, 2),
    Corner("CTCLoss", (7, 2, 4), [[1, 2, 0], [3, 3, 1]]),
    Corner("CTCLoss", (7, 2, 4), [[1, 2, -1], [0, 0, 1]], blank_label="last"),
    Corner("CTCLoss", (7, 2, 4), [[1, 2, 1], [3, 3, 1]], [5, 7], [2, 3], use_data_lengths=True, use_label_lengths=True),
    Corner("softmax", (2, 4, 3), np.array([[1, 2, 4], [3, 0, 1]], np.int32), axis=1, use_length=True, temperature=2.0),
    Corner("LeakyReLU", (2, 3, 2), (3,), act_type="prelu"),
    Corner("LeakyReLU", (2, 3, 2), (1,), act_type="prelu"),
    Corner("UpSampling", (1, 2, 2, 3), (1, 1, 4, 6), scale=4, sample_type="nearest", num_args=2),
]
