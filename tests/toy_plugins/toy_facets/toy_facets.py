"""A plugin for mxcore: operators that tell passes what they are, each as one of the stock operators does."""

from mxcore.plugin import Bool, Enum, Float, Int, Shape, hookimpl, op

API_VERSION = 1


@op(
    "toy_gate",
    kind=Enum("soft hard none", "soft"),
    expr=lambda p: {"soft": "data / (1 + abs(data))", "hard": "minimum(maximum(data, 0), 1)"}.get(p.kind),
)
def toy_gate(k, p, data):
    """A gate of one of three kinds: data of any shape, kind."""
    if p.kind == "hard":
        return k.xp.clip(data, 0, 1)
    return data / (1 + abs(data)) if p.kind == "soft" else k.xp.cumsum(data, -1)


@op(
    "toy_rows",
    inputs="data scale",
    expr="data * scale / rows",
    numbers={"rows": lambda p, ins, out: out[0]},
    aligned=lambda p, ins, out: [None, (ins[1][0], *(1,) * (len(out) - 1))],
)
def toy_rows(k, p, data, scale):
    """Scale row i of data by scale[i] over the number of rows."""
    return data * scale.reshape(-1, *(1,) * (data.ndim - 1)) / data.shape[0]


toy_rows.shape(lambda p, ins: [ins[0]])


@op(
    "toy_total",
    axis=Shape(None),
    expr="data * data",
    identity=False,
    reduces=("sum", lambda p, data, out: range(len(data)) if p.axis is None else p.axis),
)
def toy_total(k, p, data):
    """The sum of squares of data over the axes axis, which stay with the length 1."""
    return (data * data).sum(None if p.axis is None else p.axis, keepdims=True)


toy_total.shape(lambda p, ins: [tuple(1 if p.axis is None or i in p.axis else d for i, d in enumerate(ins[0]))])


@op("toy_times", factor=Float(1.0), identity=lambda p: p.factor == 1)
def toy_times(k, p, data):
    """Multiply data by factor."""
    return data * p.factor


@op("toy_trim", identity="elements")
def toy_trim(k, p, data):
    """The sum of data over its last axis."""
    return data.sum(-1)


toy_trim.shape(lambda p, ins: [ins[0][:-1]])


@op("toy_ones", inputs="data~", expr="1", grad=None)
def toy_ones(k, p, data):
    """Ones like data."""
    return k.xp.ones(data.shape, data.dtype)


@op(
    "toy_dense",
    inputs="data weight bias[not no_bias]",
    no_bias=Bool(False),
    width=Int(),
    bias=lambda p, ndim: ndim - 1,
    recompute=False,
    rowwise=True,
    labels="outputs",
    grad=lambda F, p, dy, data, weight, needs: F.toy_dense_back(
        dy, data, weight, no_bias=p.no_bias, width=p.width, wanted=tuple(needs)
    ),
)
def toy_dense(k, p, data, weight, bias=None):
    """The product of data and weight, plus bias; no_bias, width as in FullyConnected."""
    out = k.xp.matmul(data, weight.T)
    return out if bias is None else out + bias


toy_dense.shape(
    lambda p, ins, outs: (
        [ins[0], None if ins[0] is None else (p.width, ins[0][-1]), (p.width,)][: len(ins)],
        [None if ins[0] is None else (ins[0][0], p.width)],
    )
)


@op(
    "toy_dense_back",
    inputs="dy data weight",
    outputs="data weight bias[not no_bias]",
    no_bias=Bool(False),
    width=Int(),
    backward_of="toy_dense",
)
def toy_dense_back(k, p, dy_, data, weight):
    """The gradients of toy_dense from dy, data and weight; no_bias, width as there."""
    found = [k.xp.matmul(dy_, weight), k.xp.matmul(dy_.T, data), dy_.sum(0)]
    return found[: 2 if p.no_bias else 3]


toy_dense_back.shape(lambda p, ins: [ins[1], ins[2], (p.width,)][: 2 if p.no_bias else 3])


@op(
    "toy_pair",
    inputs="data",
    outputs="low high",
    labels="inputs numbers gradients",
    mxnet_outputs=lambda p: 3,
    grad=lambda F, d_low, d_high: d_low + d_high,
)
def toy_pair(k, p, data):
    """The data, twice."""
    return data - 1, data + 1


toy_pair.shape(lambda p, ins: [ins[0]] * 2)


@op("toy_choice", inputs="flag a b", labels="-flag", grad=lambda F, dy, flag: (None, dy * flag, dy * (1 - flag)))
def toy_choice(k, p, flag, a, b):
    """The data a where flag is 1, b where it is 0."""
    return flag * a + (1 - flag) * b


@hookimpl
def mxcore_ops():
    """Bring the operators of this module."""
    return [
        toy_gate,
        toy_rows,
        toy_total,
        toy_times,
        toy_trim,
        toy_ones,
        toy_dense,
        toy_dense_back,
        toy_pair,
        toy_choice,
    ]
