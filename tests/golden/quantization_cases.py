"""Models that are quantised: in MXNet for the golden file, and here against it."""

import numpy as np


def dense(s, x, name, units=4, **more):
    return s.FullyConnected(x, num_hidden=units, name=name, **more)


def relu(s, x, name):
    return s.Activation(x, act_type="relu", name=name)


def convolved(s, x, name, **more):
    return s.Convolution(x, kernel=(3, 3), num_filter=4, name=name, **more)


def _mlp(s, d):
    return s.SoftmaxOutput(dense(s, relu(s, dense(s, d, "fc1", 8), "act"), "fc2"), name="softmax"), (4, 6)


def _lenet(s, d):
    x = s.Pooling(relu(s, convolved(s, d, "conv"), "act1"), kernel=(2, 2), stride=(2, 2), name="pool")
    x = relu(s, dense(s, s.Flatten(x, name="flat"), "fc1", 8), "act2")
    return s.SoftmaxOutput(dense(s, x, "fc2"), name="softmax"), (4, 1, 8, 8)


def _residual(s, d):
    a = convolved(s, d, "conv1")
    b = s.BatchNorm(a, name="bn")
    c = convolved(s, d, "conv2", no_bias=True)
    x = s.elemwise_mul(s.elemwise_add(b, c, name="add"), c, name="mul")
    x = s.Concat(x, b, s.Activation(c, act_type="tanh", name="tanh"), dim=1, name="cat")
    return dense(s, s.Pooling(x, global_pool=True, pool_type="avg", kernel=(1, 1), name="gap"), "fc"), (2, 3, 8, 8)


def _joined(s, d):
    a, b = dense(s, d, "fc1"), dense(s, d, "fc2", no_bias=True)
    x = s.Concat(relu(s, s.elemwise_add(a, b, name="add"), "act"), s.elemwise_mul(a, b, name="mul"), dim=1, name="cat")
    return dense(s, x, "fc3"), (4, 6)


def _parts(s, d):
    a, b = s.SliceChannel(dense(s, d, "fc0"), num_outputs=2, name="parts")
    return s.Group([dense(s, a, "fc1"), dense(s, b, "fc2"), dense(s, b, "fc3"), s.relu(d, name="r")]), (5, 2)


def _embedding(s, d):
    return dense(s, s.Embedding(d, input_dim=9, output_dim=4, name="emb"), "fc"), (3, 2)


def _alone(s, d):
    e = s.expand_dims(d, axis=1, name="e")
    return s.Group([s.Flatten(d, name="flat"), s.elemwise_add(d, d, name="add"), relu(s, e, "act")]), (3, 4)


def _norm(s, d):
    x = s.BatchNorm(convolved(s, d, "conv"), fix_gamma=False, eps=1e-3, name="bn")
    return dense(s, relu(s, x, "act"), "fc"), (4, 1, 6, 6)


def _lstm(s, d):
    more = {n: s.Variable(f"rnn_{n}") for n in ("parameters", "state", "state_cell")}
    return s.RNN(d, *more.values(), state_size=4, num_layers=1, mode="lstm", name="rnn"), (3, 2, 4)


MODELS = {
    f.__name__.strip("_"): f for f in (_mlp, _lenet, _residual, _joined, _parts, _embedding, _alone, _norm, _lstm)
}
SMART, FULL = {"quantize_mode": "smart"}, {"quantize_mode": "full"}
NO_CONV = {"excluded_op_names": ["Convolution"]}

#: (model, options): the graph that becomes of it.
GRAPHS = [
    *((m, mode) for m in ("mlp", "lenet", "residual", "joined", "parts", "alone", "norm") for mode in (SMART, FULL)),
    ("embedding", SMART),
    ("embedding", FULL),
    ("lstm", SMART),
    ("lenet", {**SMART, "excluded_sym_names": ["fc1", "pool"]}),
    ("lenet", {**FULL, "excluded_op_names": ["Convolution", "Activation"]}),
    ("mlp", {**FULL, "quantized_dtype": "auto"}),
    ("mlp", {**SMART, "quantized_dtype": "uint8"}),
]

#: Name -> (model, options): quantised, saved and run.
RUNS = {
    "mlp int8": ("mlp", {**SMART, "calib_mode": "naive"}),
    "mlp entropy": ("mlp", {**SMART, "calib_mode": "entropy", "quantized_dtype": "auto"}),
    # MXNet takes the uint8 result of its activation for int8.
    "mlp uint8": (
        "mlp",
        {**FULL, "calib_mode": "naive", "quantized_dtype": "uint8", "excluded_op_names": ["Activation"]},
    ),
    "mlp as it runs": ("mlp", {**FULL, "calib_mode": "none"}),
    "lenet": ("lenet", {**FULL, **NO_CONV, "calib_mode": "naive"}),
    "joined": ("joined", {**FULL, "calib_mode": "naive"}),
    "embedding": ("embedding", {**FULL, "calib_mode": "none"}),
    "lstm": ("lstm", {**FULL, "calib_mode": "naive"}),
}


def build(mx, model):
    """(symbol, shape of the data), with names counted from 0."""
    with mx.name.NameManager():
        return MODELS[model](mx.sym, mx.sym.Variable("data"))


def parameters(symbol, shape):
    """(arguments, auxiliary states) as NumPy arrays.

    Of weights every other column is zero: MXNet's sums of two products are cut to 16 bits on processors without VNNI,
    and then none is.
    """
    shapes, _, states = symbol.infer_shape(data=shape)
    rs = np.random.RandomState(5)
    args = {}
    for name, size in zip(symbol.list_arguments(), shapes):
        if name != "data" and not name.endswith("label"):
            args[name] = rs.uniform(-1, 1, size).astype("float32")
            if name.endswith("weight") and not name.startswith("emb"):
                args[name][:, 1::2] = 0
            if name == "rnn_parameters":
                args[name].reshape(-1, 2)[: 4 * 4 * 4, 1] = 0
    return args, {n: rs.uniform(0.5, 1, s).astype("float32") for n, s in zip(symbol.list_auxiliary_states(), states)}


def batches(model, shape):
    """What calibration sees; the model is run over the first batch."""
    rs = np.random.RandomState(6)
    size = (3 * shape[0], *shape[1:])
    return (rs.randint(0, 9, size) if model == "embedding" else rs.uniform(-0.2, 1, size)).astype("float32")


def quantized(mx, run, api):
    """(graph, arguments, auxiliary states) of a run."""
    model, options = RUNS[run]
    symbol, shape = build(mx, model)
    args, aux = ({n: mx.nd.array(v) for n, v in part.items()} for part in parameters(symbol, shape))
    data = mx.io.NDArrayIter(batches(model, shape), None, shape[0])
    labels = [n for n in symbol.list_arguments() if n.endswith("label")]
    return api.quantize_model(symbol, args, aux, label_names=labels or None, calib_data=data, **options)


def outputs(mx, run, symbol, args, aux):
    """What a quantised graph makes of the first batch."""
    model = RUNS[run][0]
    shape = build(mx, model)[1]
    given = {**args, "data": mx.nd.array(batches(model, shape)[: shape[0]])}
    for name in symbol.list_arguments():
        if name.endswith("label"):
            given[name] = mx.nd.zeros(shape[0])
    found = symbol.bind(mx.cpu(), given, aux_states=aux, grad_req="null").forward(is_train=False)
    return [y.asnumpy() for y in found]


def products():
    """(options, arrays, ends of their ranges) of products, which MXNet computes in graphs only."""
    rs = np.random.RandomState(7)
    for options in ({}, {"enable_float_output": True}, {"min_calib_range": -2.0, "max_calib_range": 1.0}):
        arrays = [rs.randint(-128, 128, (4, 5)).astype(np.int8) for _ in range(2)]
        yield (options, *arrays, *(np.array([v], np.float32) for v in (-1, 0.5, -0.25, 2)))


def convolutions():
    """(parameters, arrays, ends of their ranges) of convolutions of uint8, the only ones that MXNet's CPUs run.

    Every other column of weights is zero, as in `parameters`. There is no bias: MXNet adds it without its scale.
    """
    rs = np.random.RandomState(8)
    for shape, kernel, params in (
        ((2, 3, 5, 4), (3, 2), {"stride": (2, 1), "pad": (1, 0)}),
        ((2, 4, 6, 6), (3, 3), {"dilate": (2, 2), "layout": "NCHW"}),
        ((1, 70, 4, 4), (3, 3), {}),
        ((2, 5, 3, 3), (1, 1), {}),
    ):
        w = rs.randint(-128, 128, (6, shape[1], *kernel)).astype(np.int8)
        w[:, 1::2] = 0
        arrays = rs.randint(0, 256, shape).astype(np.uint8), w
        ends = (np.array([v], np.float32) for v in (0, 1, -2, 1))
        yield ({"kernel": kernel, "num_filter": 6, "no_bias": True, **params}, *arrays, *ends)
