"""Graphs whose files must be MXNet's byte for byte: composed in MXNet for the golden file, and here against it."""

import numpy as np

#: Expressions in the variables x and y: names and texts of scalars are the point.
EXPRESSIONS = (
    "x + 1",
    "1 + x",
    "x - 2.5",
    "3 - x",
    "x * 2",
    "-x",
    "x / 4",
    "3 / x",
    "x % 2",
    "3 % x",
    "x ** 2.5",
    "2 ** x",
    "x == 2",
    "x != 2",
    "x > 1",
    "2 > x",
    "x >= 1.5",
    "x < 2",
    "x <= 2",
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "x % y",
    "x ** y",
    "x == y",
    "x != y",
    "x > y",
    "x >= y",
    "x < y",
    "x <= y",
    "x.reshape((0, -1))",
    "x.sum(axis=1).mean()",
    "x * 1e-7 + 1e20 + 123456789.0",
)

#: Operator, its keyword arguments; the input is x.
CALLS = (
    ("Convolution", dict(kernel=(3, 3), num_filter=4)),
    ("Convolution", dict(kernel=[3, 3], num_filter=4, pad=(1, 1), no_bias=True)),
    ("Convolution", dict(kernel="(3,3)", num_filter="4", no_bias=1)),
    ("Deconvolution", dict(kernel=(3, 3), num_filter=4)),
    *(
        ("Pooling", dict(kernel=(2, 2), stride=(2, 2), pool_type=t, **more))
        for t, more in (
            ("max", {}),
            ("avg", {}),
            ("sum", {}),
            ("lp", {"p_value": 2}),
            ("max", {"layout": "NCHW"}),
            ("max", {"layout": "NHWC"}),
            ("max", {"pooling_convention": "full"}),
            ("avg", {"count_include_pad": False}),
        )
    ),
    ("Pooling", dict(kernel=(2,))),
    ("Pooling", dict(kernel=(2, 2, 2))),
    ("Pooling", dict(global_pool=True, kernel=(1, 1))),
    ("Pooling", dict(global_pool=True)),
    ("Pooling", dict(kernel=(2, 2), global_pool=True, pool_type="avg")),
    ("BatchNorm", {}),
    ("BatchNorm", dict(fix_gamma=False, use_global_stats=True, eps=1e-3, momentum=0.5)),
    ("BatchNorm", dict(output_mean_var=True)),
    ("Dropout", {}),
    ("Dropout", dict(p=0)),
    ("Dropout", dict(p=0.3, mode="always", axes=(1,))),
    ("SliceChannel", dict(num_outputs=3)),
    ("split", dict(num_outputs=3, squeeze_axis=True, axis=0)),
    *(("topk", dict(k=2, ret_typ=t)) for t in ("value", "indices", "mask", "both")),
    ("topk", dict(k=np.int64(2), axis=np.int32(0))),
    ("sort", {}),
    ("argsort", dict(dtype=np.int32)),
    ("LayerNorm", {}),
    ("LayerNorm", dict(axis=1, output_mean_var=True)),
    ("GroupNorm", dict(num_groups=2, output_mean_var=True)),
    ("InstanceNorm", {}),
    ("L2Normalization", {}),
    ("LRN", dict(nsize=3)),
    *(
        ("RNN", dict(state_size=4, num_layers=1, mode=m, state_outputs=so))
        for m in ("rnn_relu", "rnn_tanh", "lstm", "gru")
        for so in (False, True)
    ),
    ("RNN", dict(state_size=4, num_layers=2, mode="lstm", bidirectional=True, p=0.2, state_outputs=True)),
    ("RNN", dict(state_size=4, num_layers=1, mode="lstm", projection_size=3)),
    ("RNN", dict(state_size=4, num_layers=1, mode="gru", use_sequence_length=True)),
    *(("LeakyReLU", dict(act_type=t)) for t in ("elu", "leaky", "prelu", "rrelu", "selu", "gelu")),
    ("Activation", dict(act_type="relu")),
    ("FullyConnected", dict(num_hidden=3)),
    ("FullyConnected", dict(num_hidden=3, no_bias=True, flatten=False)),
    ("FullyConnected", dict(num_hidden=3, lr_mult=3.0, __mood__="good")),
    ("FullyConnected", dict(num_hidden=3, attr={"wd_mult": "0.5"})),
    ("SoftmaxOutput", {}),
    ("SoftmaxOutput", dict(multi_output=True, normalization="batch")),
    ("CTCLoss", {}),
    ("LinearRegressionOutput", {}),
    ("Embedding", dict(input_dim=4, output_dim=2)),
    ("UpSampling", dict(scale=2, sample_type="bilinear", num_filter=3, num_args=2)),
    ("UpSampling", dict(scale=2, sample_type="nearest", num_args=1)),
    ("Cast", dict(dtype=np.float16)),
    ("clip", dict(a_min=0, a_max=np.float64(1.5))),
    ("clip", dict(a_min=np.float32(0.5), a_max=1)),
    ("slice", dict(begin=(0, None), end=(2, None))),
    ("slice_axis", dict(axis=0, begin=1, end=None)),
    ("sum", dict(axis=1)),
    ("sum", dict(axis=(0, 1), keepdims=True)),
    ("mean", dict(axis=None)),
    ("mean", dict(axis=[0, 1])),
    ("norm", {}),
    ("reshape", dict(shape=(0, -1))),
    ("Reshape", dict(shape=(np.int64(2), 3))),
    ("transpose", {}),
    ("Flatten", {}),
    ("identity", {}),
    ("BlockGrad", {}),
    ("stop_gradient", {}),
    ("squeeze", dict(axis=(0,))),
    ("tile", dict(reps=(2, 1))),
    ("smooth_l1", dict(scalar=2.0)),
    ("sample_multinomial", dict(get_prob=True)),
    ("pad", dict(mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1))),
)


def network(mx):
    """A convolutional network with most things that have hidden outputs or states."""
    s = mx.sym
    h = s.Variable("data", shape=(2, 3, 16, 16), dtype="float32")
    h = s.Activation(
        s.BatchNorm(s.Convolution(h, kernel=(3, 3), num_filter=4, name="conv1"), name="bn1"),
        act_type="relu",
        name="relu1",
    )
    h = s.Pooling(s.LRN(h, nsize=3), kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    a, b = s.SliceChannel(h, num_outputs=2, name="halves")
    h = s.Concat(s.Dropout(a, p=0.25), s.L2Normalization(b, mode="channel"), dim=1)
    h = s.FullyConnected(
        s.Flatten(h),
        num_hidden=12,
        weight=s.Variable("shared", lr_mult=2, wd_mult=0, init=mx.init.Xavier()),
        name="fc1",
    )
    h = s.LayerNorm(h, name="ln") + s.topk(h, k=3, ret_typ="mask")
    r = s.RNN(
        s.Reshape(h, shape=(2, 2, 6)),
        state_size=5,
        num_layers=2,
        mode="lstm",
        bidirectional=True,
        p=0.1,
        state_outputs=True,
        name="rnn",
    )
    with mx.AttrScope(ctx_group="late", __lr_mult__="0.1"):
        h = s.LeakyReLU(s.FullyConnected(r[0], num_hidden=3, name="fc2"), act_type="prelu", name="prelu")
    return s.Group([s.SoftmaxOutput(h, name="softmax"), s.BlockGrad(r[1])])


def one_state_twice(mx):
    """Two nodes that write the same states."""
    s = mx.sym
    mean, var = s.Variable("mean"), s.Variable("var", lr_mult=2)
    h = s.BatchNorm(s.Variable("x"), s.Variable("g1"), s.Variable("b1"), mean, var, name="first")
    return s.BatchNorm(h, s.Variable("g2"), s.Variable("b2"), mean, var, name="second")


GRAPHS = {
    "network": network,
    "internals": lambda mx: network(mx).get_internals(),
    "one_state_twice": one_state_twice,
    "part": lambda mx: network(mx).get_internals()["pool1_output"],
    "outputs": lambda mx: mx.sym.Group(
        [
            mx.sym.SliceChannel(mx.sym.Variable("x"), num_outputs=3, name="s")[2],
            mx.sym.Variable("x"),
            mx.sym.BatchNorm(mx.sym.Variable("z"), name="b"),
        ]
    ),
    "attributes": lambda mx: mx.sym.FullyConnected(
        mx.sym.Variable(
            "data", shape=(2, 0), lr_mult=2, wd_mult=0.5, dtype="float16", init=mx.init.Zero(), stype="csr"
        ),
        num_hidden=2,
        name="fc",
        attr={"lr_mult": "3", "__force_mirroring__": "True"},
    ),
}


def cases(mx):
    """(name, symbol) of every graph above."""
    for name, make in GRAPHS.items():
        with mx.name.NameManager():
            yield name, make(mx)
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    for text in EXPRESSIONS:
        with mx.name.NameManager():
            yield text, eval(text, {"x": x, "y": y})
    for i, (op, kwargs) in enumerate(CALLS):
        with mx.name.NameManager():
            yield f"{i} {op}", getattr(mx.sym, op)(mx.sym.Variable("x"), **kwargs)
