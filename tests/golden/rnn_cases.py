"""Recurrent cells and layers of Gluon in MXNet 1.9.1 and here: outputs, states, gradients, names."""

import os
import tempfile

import numpy as np

STEPS, BATCH, SIZE, HIDDEN = 5, 2, 3, 3


def filled(mx, block):
    """Parameters from the length of their names alone: equal wherever the names are."""

    class Fill(mx.init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = np.random.RandomState(len(name)).uniform(-0.5, 0.5, arr.shape)

        _init_bias = _init_default = _init_weight

    block.initialize(Fill())
    return block


def stack(mx, hybrid, *cells):
    """Cells one above the other."""
    made = (mx.gluon.rnn.HybridSequentialRNNCell if hybrid else mx.gluon.rnn.SequentialRNNCell)(prefix="s_")
    with made.name_scope():
        for cell in cells:
            made.add(cell(mx.gluon.rnn))
    return made


def both(rnn):
    """A cell each way."""
    return rnn.BidirectionalCell(rnn.LSTMCell(HIDDEN, prefix="l_"), rnn.GRUCell(HIDDEN, prefix="r_"))


CELLS = {
    "rnn": lambda mx: mx.gluon.rnn.RNNCell(HIDDEN, prefix="c_"),
    "relu": lambda mx: mx.gluon.rnn.RNNCell(HIDDEN, activation="relu", prefix="c_"),
    "softsign": lambda mx: mx.gluon.rnn.RNNCell(HIDDEN, activation="softsign", prefix="c_"),
    "softrelu": lambda mx: mx.gluon.rnn.RNNCell(HIDDEN, activation="softrelu", prefix="c_"),
    "lstm": lambda mx: mx.gluon.rnn.LSTMCell(HIDDEN, prefix="c_"),
    "lstm relu": lambda mx: mx.gluon.rnn.LSTMCell(HIDDEN, prefix="c_", activation="relu", recurrent_activation="tanh"),
    "gru": lambda mx: mx.gluon.rnn.GRUCell(HIDDEN, prefix="c_", input_size=SIZE),
    "stack": lambda mx: stack(
        mx,
        False,
        lambda r: r.LSTMCell(HIDDEN, prefix="a_"),
        lambda r: r.DropoutCell(0.5),
        lambda r: r.GRUCell(HIDDEN, prefix="b_"),
    ),
    "hybrid stack": lambda mx: stack(
        mx, True, lambda r: r.LSTMCell(HIDDEN, prefix="a_"), lambda r: r.GRUCell(HIDDEN, prefix="b_")
    ),
    "residual": lambda mx: mx.gluon.rnn.ResidualCell(mx.gluon.rnn.GRUCell(HIDDEN, prefix="c_")),
    "zoneout": lambda mx: mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.LSTMCell(HIDDEN, prefix="c_"), 0.3, 0.2),
    "dropout": lambda mx: mx.gluon.rnn.DropoutCell(0.3, prefix="d_"),
    "projected": lambda mx: mx.gluon.contrib.rnn.LSTMPCell(4, 2, prefix="c_"),
    "variational": lambda mx: mx.gluon.contrib.rnn.VariationalDropoutCell(
        mx.gluon.rnn.LSTMCell(HIDDEN, prefix="c_"), 0.3, 0.2, 0.1
    ),
    "variational outside": lambda mx: mx.gluon.contrib.rnn.VariationalDropoutCell(
        mx.gluon.rnn.GRUCell(HIDDEN, prefix="c_"), 0.3, 0, 0.1
    ),
    "both ways": lambda mx: both(mx.gluon.rnn),
    "deep both ways": lambda mx: stack(mx, True, both, lambda r: r.RNNCell(HIDDEN, prefix="q_")),
}
LAYERS = {
    f"{kind} {text}": (kind, {**kw, **more})
    for kind, kw in (
        ("RNN", {}),
        ("RNN", {"activation": "tanh"}),
        ("LSTM", {}),
        ("GRU", {}),
        ("LSTM", {"projection_size": 2}),
    )
    for text, more in (
        (f"{len(kw)}", {}),
        (f"{len(kw)} deep", {"num_layers": 2}),
        (f"{len(kw)} both", {"num_layers": 2, "bidirectional": True}),
        (f"{len(kw)} NTC", {"layout": "NTC", "input_size": SIZE}),
    )
}
UNROLLS = {
    "as it is": {},
    "merged": {"merge_outputs": True},
    "apart": {"merge_outputs": False},
    "lengths": {"valid_length": [3, 5]},
}


def inputs(mx):
    """(batch, steps, size)."""
    return mx.nd.array(np.random.RandomState(0).randn(BATCH, STEPS, SIZE))


def flat(value, found):
    """The arrays in nested lists."""
    for v in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(v, (list, tuple)):
            flat(v, found)
        else:
            found.append(v)
    return found


def names(block):
    """Parameters by their names, in the order of their collection, and in a file; as one text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.params")
        block.save_parameters(path)
        import importlib

        mx = importlib.import_module(type(block).__module__.partition(".")[0])
        kept = sorted(mx.nd.load(path))
    return repr([(n, p.shape) for n, p in block.collect_params().items()]) + repr(kept)


def text(value):
    """A text as an array of its bytes."""
    return np.frombuffer(value.encode(), np.uint8)


def cell(mx, name):
    """A cell in every way it can be run."""
    one, x, found = CELLS[name](mx), inputs(mx), []
    if name != "dropout":
        filled(mx, one)
    found.append(text(repr(one)))
    found.append(text(repr([sorted(info.items()) for info in one.state_info(BATCH)])))
    for more in UNROLLS.values():
        if "valid_length" in more:  # merged both ways, MXNet joins axes of time and batch
            if name == "deep both ways":
                continue
            more = {"merge_outputs": name != "both ways", "valid_length": mx.nd.array(more["valid_length"])}
        found += flat(one.unroll(STEPS, x, **more), [])
    found += flat(one.unroll(STEPS, x.swapaxes(0, 1), layout="TNC", merge_outputs=True), [])
    found += flat(one.unroll(STEPS, [x[:, i] for i in range(STEPS)]), [])
    if "both" not in name:
        one.reset()
        found += flat(one(x[:, 0], one.begin_state(batch_size=BATCH, func=mx.nd.ones)), [])
    if name != "dropout":
        found.append(text(names(one)))
        x.attach_grad()
        with mx.autograd.record(train_mode=False):
            outputs, states = one.unroll(STEPS, x, merge_outputs=True)
            loss = (outputs * outputs).sum() + sum((s * s).sum() for s in states)
        loss.backward(train_mode=False)
        found += [x.grad, *(p.grad() for p in one.collect_params().values())]
        symbol = one.unroll(2, mx.sym.var("d"), merge_outputs=True)[0]
        found.append(text(repr(symbol.list_arguments())))
    return found


def layer(mx, name):
    """A layer with and without states, and its gradients."""
    kind, kwargs = LAYERS[name]
    one, x = filled(mx, getattr(mx.gluon.rnn, kind)(4, prefix="p_", **kwargs)), inputs(mx)
    x = x if "layout" in kwargs else x.swapaxes(0, 1).copy()
    found = [text(repr(one)), one(x), *flat(one(x, one.begin_state(BATCH, func=mx.nd.ones)), []), text(names(one))]
    if "projection_size" not in kwargs:  # MXNet trains these on GPUs only
        x.attach_grad()
        with mx.autograd.record():
            outputs, states = one(x, one.begin_state(BATCH, func=mx.nd.ones))
            loss = (outputs * outputs).sum() + sum((s * s).sum() for s in states)
        loss.backward()
        found += [x.grad, *(p.grad() for p in one.collect_params().values())]
    return found


def convolution(mx, name):
    """A convolutional cell: three kinds of kernels, channels first."""
    dims, kind = name
    sizes, found = (5, 4, 3)[:dims], []
    x = mx.nd.array(np.random.RandomState(0).randn(2, 3, 2, *sizes))
    for kwargs in (
        {"i2h_kernel": 3, "h2h_kernel": 3},
        {"i2h_kernel": 2, "h2h_kernel": 3, "h2h_dilate": 2, "i2h_dilate": (1, 2, 1)[:dims], "i2h_pad": 1},
        {"i2h_kernel": (2, 3, 2)[:dims], "h2h_kernel": (3, 1, 3)[:dims], "i2h_pad": (1,) * dims, "activation": "relu"},
    ):
        one = filled(
            mx,
            getattr(mx.gluon.contrib.rnn, f"Conv{dims}D{kind}Cell")(
                input_shape=(2, *sizes), hidden_channels=3, prefix="c_", **kwargs
            ),
        )
        x.attach_grad()
        with mx.autograd.record():
            outputs, states = one.unroll(3, x, merge_outputs=True)
            loss = (outputs * outputs).mean() + sum((s * s).mean() for s in states)
        loss.backward()
        found += [
            text(repr(one)),
            text(names(one)),
            text(repr(one.state_info(2)[0]["shape"])),
            outputs,
            *states,
            x.grad,
            *(p.grad() for p in one.collect_params().values()),
        ]
    return found


def looped(mx, layout):
    """`dynamic_unroll`, with and without lengths."""
    unroll = mx.gluon.contrib.rnn.rnn_cell.dynamic_unroll
    one, x = filled(mx, CELLS["stack"](mx)), inputs(mx)
    x = x if layout == "NTC" else x.swapaxes(0, 1)
    found = []
    for more in ({}, {"valid_length": mx.nd.array([3, 5])}, {"drop_inputs": 0.2, "drop_outputs": 0.3}):
        found += flat(unroll(one, x, one.begin_state(batch_size=BATCH, func=mx.nd.ones), layout=layout, **more), [])
    return found


CASES = {
    **{f"loop {layout}": (looped, layout) for layout in ("TNC", "NTC")},
    **{f"conv {n}{k}": (convolution, (n, k)) for n in (1, 2, 3) for k in ("RNN", "LSTM", "GRU")},
    **{f"cell {n}": (cell, n) for n in CELLS},
    **{f"layer {n}": (layer, n) for n in LAYERS},
}


def run(mx, name):
    """The arrays of a case, as NumPy's."""
    function, which = CASES[name]
    return [v.asnumpy() if isinstance(v, mx.nd.NDArray) else np.asarray(v) for v in function(mx, which)]
