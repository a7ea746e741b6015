"""Graphs that mixed precision converts: in MXNet for the golden file, and here against it."""

#: How every graph is converted.
WAYS = (
    {},
    {"target_dtype": "bfloat16"},
    {"data_names": ["data"]},
    {"data_names": ["data"], "cast_optional_params": True},
    {"cast_optional_params": True},
    {"target_dtype": "bfloat16", "data_names": ["data"], "cast_optional_params": True},
    {"target_dtype_ops": ["relu"]},
    {"target_dtype_ops": []},
    {"fp32_ops": ["relu", "exp"]},
    {"target_dtype_ops": ["relu", "RNN"], "fp32_ops": ["FullyConnected"]},
    {"conditional_fp32_ops": [("Activation", "act_type", ["relu", "tanh"])]},
    {"excluded_sym_names": ["fc", "act", "sum"]},
)


def _dense(s, x, name="fc", **more):
    return s.FullyConnected(x, num_hidden=3, name=name, **more)


def _mlp(s, d):
    return s.SoftmaxOutput(_dense(s, s.relu(_dense(s, d), name="act"), "fc2"), name="softmax")


def _residual(s, d):
    h = s.BatchNorm(s.Convolution(d, kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv"), name="bn")
    h = s.Activation(h, act_type="relu", name="act")
    h = (
        h
        + s.BatchNorm(
            s.Convolution(h, kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv2"), name="bn2", output_mean_var=True
        )[0]
    )
    return s.log_softmax(
        _dense(s, s.Pooling(h, global_pool=True, pool_type="avg", kernel=(1, 1), name="pool")), name="out"
    )


def _widest(s, d):
    a, b = _dense(s, d), _dense(s, d, "fc2", no_bias=True)
    e = s.exp(a, name="e")
    return s.Group(
        [
            s.broadcast_add(e, a, name="sum"),
            a + b,
            s.concat(a, b, e, name="cat"),
            s.add_n(a, e, s.Variable("y"), name="n"),
            s.where(s.Variable("c"), a, e, name="where"),
            s.broadcast_mul(s.relu(s.Variable("y"), name="r"), b, name="mul"),
            s.dot(a, b, transpose_b=True, name="dot"),
            s.stack(a, b, name="stack"),
        ]
    )


def _parts(s, d):
    a, b, c = s.split(_dense(s, d), num_outputs=3, name="parts")
    r = s.RNN(
        s.reshape(s.relu(s.Variable("seq"), name="act"), shape=(2, 1, -1), name="rs"),
        state_size=3,
        num_layers=1,
        mode="lstm",
        state_outputs=True,
        name="rnn",
    )
    return s.Group([s.exp(a, name="e"), b, s.relu(c, name="sum"), r[0], s.square(r[1], name="sq")])


def _conditional(s, d):
    h = s.LeakyReLU(_dense(s, d), act_type="elu", name="elu")
    h = s.Activation(_dense(s, h, "fc2"), act_type="softrelu", name="act")
    return s.Group(
        [
            s.Activation(h, act_type="tanh", name="tanh"),
            s.Activation(d, act_type="softrelu", name="first"),
            h * 2 + 1,
            1 / h,
            h**2,
        ]
    )


def _casts(s, d):
    a = _dense(s, d)
    return s.Group(
        [
            s.broadcast_add(s.cast(a, dtype="float32", name="c"), a, name="sum"),
            s.relu(s.cast(a, dtype="int32", name="i"), name="s2"),
            s.cast(d, dtype="float64", name="c64"),
            s.argmax(a, axis=1, name="am"),
            s.broadcast_add(a, s.zeros((1, 3), name="z"), name="s3"),
            s.shape_array(a, name="sh"),
        ]
    )


def _norms(s, d):
    h = s.LayerNorm(_dense(s, d), name="ln")
    h = s.Dropout(s.softmax(_dense(s, h, "fc2"), name="act"), name="drop")
    return _dense(
        s, s.L2Normalization(s.Embedding(s.Variable("i"), input_dim=4, output_dim=3, name="emb"), name="l2") + h, "fc3"
    )


GRAPHS = {f.__name__.strip("_"): f for f in (_mlp, _residual, _widest, _parts, _conditional, _casts, _norms)}


def cases(mx, convert):
    """(name, text of the graph with its casts) for every graph and way, but for those that MXNet cannot convert."""
    for name, make in GRAPHS.items():
        for i, way in enumerate(WAYS):
            with mx.name.NameManager():
                symbol = make(mx.sym, mx.sym.Variable("data"))
            if "excluded_sym_names" in way:  # only those that there are
                have = {n.rpartition("_")[0] for n in symbol.get_internals().list_outputs()}
                way = {"excluded_sym_names": [n for n in way["excluded_sym_names"] if n in have]}
            yield f"{name} {i}", lambda symbol=symbol, way=way: convert(symbol, **way).tojson(remove_amp_cast=False)
