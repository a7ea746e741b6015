"""Operators on sparse arrays: calls that MXNet ran for the golden file, and that run here against it."""

import numpy as np

DATA = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [0.5, 0, -0.25, 0], [0, 0, 0, 3]], np.float32)
OTHER = np.array([[0, 0, 2, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 4]], np.float32)
KINDS = ("csr", "row_sparse", "default")

#: Operators of one array, of any storage type.
UNARY = """
    abs sign round rint ceil floor trunc fix square sqrt cbrt log1p expm1 sin tan arcsin arctan degrees radians sinh
    tanh arcsinh arctanh relu negative exp cos sigmoid softsign log1p reciprocal erf identity BlockGrad make_loss
    zeros_like ones_like sum mean max norm Flatten argmax sort topk argsort logical_not shape_array size_array
""".split()
#: Operators of two arrays of one shape.
BINARY = """
    elemwise_add elemwise_sub elemwise_mul maximum minimum broadcast_add broadcast_mul broadcast_sub broadcast_maximum
    broadcast_equal broadcast_greater add_n
""".split()
#: Expressions over x, a sparse array, and d, a dense one; `op` are internal operators.
EXPRESSIONS = """
    x + 2 | x * 2 | x / 2 | 2 / (x + 1) | x - 1 | x ** 2 | x % 2 | x == 0 | -x | x * d | d * x | x + d
    nd.clip(x, a_min=-1, a_max=1) | nd.slice(x, begin=(0, 1), end=(3, 4)) | nd.slice(x, begin=(1,), end=(3,))
    nd.slice(x, begin=(0,), end=(3,), step=(2,)) | x[1:3] | nd.concat(x, x, dim=0) | nd.concat(x, x, dim=1)
    nd.concat(x, d, dim=0) | nd.sum(x, axis=0) | nd.sum(x, axis=1) | nd.sum(x, axis=1, keepdims=True)
    nd.mean(x, axis=0) | nd.norm(x, axis=1) | op._scatter_plus_scalar(x, scalar=2)
    op._scatter_minus_scalar(x, scalar=2) | op._scatter_elemwise_div(x, d + 7) | nd.broadcast_mul(x, d[0:1] + 7)
    nd.where(x, d, d + 1) | nd.dot(x, d) | nd.dot(x, d, transpose_a=True) | nd.transpose(x) | x.copy()
    x.astype("float64") | nd.cast(x, dtype="int32") | nd.cast_storage(x, stype="default") | nd.add_n(x, x, x)
    nd.expand_dims(x, axis=0) | nd.tile(x, reps=2) | nd.stack(x, x) | nd.broadcast_to(x[0:1], shape=(3, 4))
    nd.reshape_like(x, d) | nd.cast_storage(d, stype=x.stype) | nd.sqrt(nd.square(x)) * 3
""".replace("\n", "|").split("|")


def cases(mx):
    """(name, function of no argument) of all calls."""

    def array(values, kind):
        return mx.nd.array(values).tostype(kind)

    for name in UNARY:
        for kind in KINDS[:2]:
            yield f"{name} {kind}", lambda name=name, kind=kind: getattr(mx.nd, name)(array(DATA, kind))
    for name in BINARY:
        for a in KINDS:
            for b in KINDS if a != "default" else KINDS[:2]:
                yield (
                    f"{name} {a} {b}",
                    lambda name=name, a=a, b=b: getattr(mx.nd, name)(array(DATA, a), array(OTHER, b)),
                )
    for text in filter(None, map(str.strip, EXPRESSIONS)):
        for kind in KINDS[:2]:
            yield (
                f"{text}  {kind}",
                lambda text=text, kind=kind: eval(
                    text, {"nd": mx.nd, "op": mx.nd._internal, "x": array(DATA, kind), "d": array(OTHER, "default")}
                ),
            )


def facts(y):
    """Storage type, shape, dtype and values of a result."""
    return [
        y.stype,
        list(y.shape),
        np.dtype(y.dtype).name,
        [None if np.isnan(v) else round(float(v), 6) for v in y.asnumpy().ravel()],
    ]
