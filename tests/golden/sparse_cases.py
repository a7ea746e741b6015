"""Operators on sparse arrays: calls that MXNet ran for the golden file, and that run here against it."""

import itertools

import numpy as np

DATA = np.array([[0, 1.5, 0, -2], [0, 0, 0, 0], [0.5, 0, -0.25, 0], [0, 0, 0, 3]], np.float32)
OTHER = np.array([[0, 0, 2, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 4]], np.float32)
KINDS = ("csr", "row_sparse", "default")

#: Operators of one array, of any storage type.
UNARY = """
    abs sign round rint ceil floor trunc fix square sqrt cbrt log1p expm1 sin tan arcsin arctan degrees radians sinh
    tanh arcsinh arctanh relu negative exp cos sigmoid softsign reciprocal erf identity BlockGrad make_loss
    zeros_like ones_like sum mean max norm Flatten argmax sort topk argsort logical_not shape_array size_array
    arccos arccosh cosh gamma gammaln log log10 log2 rsqrt rcbrt hard_sigmoid stop_gradient nansum prod min softmax
    log_softmax isnan argmin
""".split()
#: Operators of two arrays of one shape.
BINARY = """
    elemwise_add elemwise_sub elemwise_mul elemwise_div maximum minimum broadcast_add broadcast_mul broadcast_sub
    broadcast_div broadcast_maximum broadcast_minimum broadcast_hypot broadcast_power broadcast_mod broadcast_equal
    broadcast_not_equal broadcast_greater broadcast_lesser broadcast_greater_equal broadcast_lesser_equal
    broadcast_logical_and add_n
""".split()
INTERNAL = "_plus _minus _mul _div _mod _power _maximum _minimum _hypot _equal _not_equal _greater _lesser".split()
PYTHON = "+ - * / ** % == != > >= < <=".split()
#: Axes of reductions.
AXES = ("axis=0", "axis=1", "axis=-1", "axis=(0, 1)", "axis=0, keepdims=True", "axis=1, keepdims=True", "keepdims=True")
#: Expressions over x, a sparse array, and d, a dense one; `op` are internal operators.
EXPRESSIONS = """
    x + 2 | x * 2 | x / 2 | 2 / (x + 1) | x - 1 | x ** 2 | x % 2 | x == 0 | -x | x * d | d * x | x + d
    x + 0 | x - 0 | x * 0 | x / 4 | 0 - x | 2 - x | 2 * x | 0 * x | 2 ** x | x ** 0 | x ** 1 | x ** 0.5 | 2 % (x + 5)
    x > 0 | x >= 1 | x < 1 | x <= 0 | x != 0 | x == 1.5 | 1 > x | x < -1 | x < 0 | x > -1 | x <= -1 | x >= 0 | x != 1 |
    nd.cast(x, dtype="int32") == 0.5 | nd.cast(x, dtype="int32") + 0.5 | nd.cast(x, dtype="int32") * 0.5
    nd.cast(x, dtype="int32") > 0 |
    x > float("nan") | x == float("nan") | x != float("inf") | abs(x) | x.T
    op._maximum_scalar(x, scalar=0) | op._maximum_scalar(x, scalar=1) | op._minimum_scalar(x, scalar=0)
    op._hypot_scalar(x, scalar=0) | op._rminus_scalar(x, scalar=0) | op._power_scalar(x, scalar=2)
    nd.clip(x, a_min=-1, a_max=1) | nd.clip(x, a_min=1, a_max=2) | nd.clip(x, a_min=0, a_max=2)
    nd.slice(x, begin=(0, 1), end=(3, 4)) | nd.slice(x, begin=(1,), end=(3,)) | nd.slice(x, begin=(-2,), end=(None,))
    nd.slice(x, begin=(0,), end=(3,), step=(2,)) | nd.slice(x, begin=(None, None), end=(None, 2))
    x[1:3] | x[0] | x[-1] | x[-3:-1] | x[2:] | x[:] | x[4:2] | nd.concat(x, x, dim=0) | nd.concat(x, x, dim=1)
    nd.concat(x, d, dim=0) | nd.concat(x, dim=0) | nd.concat(x, x, x, dim=0) | nd.concat(x, x, dim=-2)
    nd.sum(x, axis=1, exclude=True) | nd.norm(x, ord=1) | nd.norm(x, ord=1, axis=1) | nd.norm(x, ord=2, axis=0)
    op._scatter_plus_scalar(x, scalar=2)
    op._scatter_minus_scalar(x, scalar=2) | op._scatter_elemwise_div(x, d + 7) | nd.broadcast_mul(x, d[0:1] + 7)
    op._scatter_elemwise_div(x, x)
    nd.broadcast_div(x, d[0:1] + 7) | nd.broadcast_add(x, d[0:1] + 7) | nd.broadcast_mul(x, d[:, 0:1] + 7)
    nd.broadcast_mul(x, d[0] + 7) | nd.broadcast_mul(x, d[0:1, 0:1] + 7) | nd.broadcast_div(x, d[:, 0:1] + 7)
    nd.sparse.add(x, d) | nd.sparse.subtract(x, x) | nd.sparse.multiply(x, d) | nd.sparse.divide(x, d + 7)
    nd.sparse.multiply(x, 3) | nd.sparse.divide(x, 2) | nd.sparse.add(x, 1) | nd.sparse.multiply(x, x)
    nd.sparse.multiply(x, d[0:1] + 7) | nd.sparse.divide(x, d[0:1] + 7) | nd.sparse.add(x, d[0:1])
    nd.sparse.multiply(d, x) | nd.sparse.multiply(d[0:1], x) | nd.sparse.subtract(d, x) | nd.sparse.divide(d, x + 7)
    nd.where(x, d, d + 1) | nd.where(d, x, x) | nd.where(x, x, d) | nd.where(d, d, x)
    nd.transpose(x) | x.copy() | x.copyto(mx.cpu()) | x.copyto(nd.zeros((4, 4))) | d.copyto(nd.zeros((4, 4), stype=s))
    x.copyto(nd.zeros((4, 4), stype=s)) | x.copyto(nd.zeros((4, 4), stype=s, dtype="float64"))
    x.astype("float64") | x.astype("int32") | x.astype("float16") | x.astype("float32", copy=False)
    nd.cast(x, dtype="int32") | nd.cast(x, dtype="float64") | nd.amp_cast(x, dtype="float16")
    nd.cast_storage(x, stype="default") | nd.cast_storage(x, stype=s) | x.tostype("default") | x.tostype(s)
    nd.cast_storage(x, stype="csr") | nd.cast_storage(x, stype="row_sparse")
    nd.add_n(x, x, x) | nd.add_n(x, d, x) | nd.add_n(d, x) | nd.add_n(x) | nd.ElementWiseSum(x, x)
    nd.expand_dims(x, axis=0) | nd.tile(x, reps=2) | nd.stack(x, x) | nd.broadcast_to(x[0:1], shape=(3, 4))
    nd.reshape_like(x, d) | nd.cast_storage(d, stype=x.stype) | nd.sqrt(nd.square(x)) * 3
    nd.reshape(x, shape=(2, 8)) | nd.take(x, nd.array([0, 2])) | nd.slice_axis(x, axis=0, begin=1, end=3)
    nd.sparse.retain(x, nd.array([0, 3])) | x.retain(nd.array([2])) | nd.sparse.retain(x, nd.array([1]))
    nd.sparse.retain(x, nd.array([], dtype="int64")) | nd.sparse.retain(x, nd.array([0, 1, 2, 3], dtype="int32"))
    nd.Embedding(nd.array([0, 2, 2]), x, input_dim=4, output_dim=4)
    nd.Embedding(nd.array([0, 2]), x, input_dim=4, output_dim=4, sparse_grad=True)
    nd.contrib.SparseEmbedding(nd.array([0, 2, 3]), x, input_dim=4, output_dim=4)
    nd.FullyConnected(d, x, num_hidden=4, no_bias=True) | nd.FullyConnected(d, x, d[0], num_hidden=4)
    nd.FullyConnected(d, x, nd.sparse.row_sparse_array(d[0]), num_hidden=4)
    nd.FullyConnected(x, d, d[0], num_hidden=4)
    nd.sparse.LinearRegressionOutput(d, x) | nd.LogisticRegressionOutput(d, x) | nd.MAERegressionOutput(d, x)
    nd.SoftmaxOutput(x, d[0]) | nd.Activation(x, act_type="relu") | nd.LeakyReLU(x) | nd.Dropout(x)
    nd.L2Normalization(x)
    nd.contrib.getnnz(x) | nd.contrib.getnnz(x, axis=0) | nd.contrib.getnnz(x, axis=1)
    nd.contrib.quadratic(x, a=1, b=2, c=0)
    nd.contrib.quadratic(x, a=1, b=2, c=3) | nd.contrib.div_sqrt_dim(x) | nd.smooth_l1(x, scalar=1)
    nd.random.uniform(shape=(4, 4), out=x, low=1, high=1) | nd.random.normal(3, 0, shape=(4, 4), out=x)
    nd.zeros((4, 4), out=x) | nd.ones((4, 4), out=x) | op._full(shape=(4, 4), value=2, out=x)
    nd.elemwise_add(x, d, out=nd.zeros((4, 4), stype=s)) | nd.exp(d, out=nd.zeros((4, 4), stype=s))
    nd.square(x, out=nd.zeros((4, 4))) | nd.dot(x, d, out=nd.zeros((4, 4), stype=s)) | nd.abs(x, out=x)
    put(x, slice(None), d) | put(x, slice(None), nd.cast_storage(d, stype="csr"))
    put(x, slice(None), [[1, 0, 0, 2]] * 4)
    put(x, slice(None), nd.cast_storage(d, stype="row_sparse")) | put(x, slice(None), 2) | put(x, slice(None), 0)
    put(x, slice(None), np.eye(4)) | put(x, slice(None), d.astype("float64")) | put(d, slice(None), x)
    put(d, slice(1, 3), x[1:3]) | put(d, 1, 7) | put(x, slice(0, 2), 1) | put(x, 0, 1)
    iadd(x, x) | iadd(x, d) | isub(x, x) | imul(x, d) | imul(x, 3) | idiv(x, 2) | iadd(x, 1) | iadd(d, x) | imul(d, x)
    nd.zeros((2, 3), stype=s) | nd.zeros((2, 3), stype=s, dtype="int32") | nd.empty((2, 3), stype=s) | nd.array(x)
    nd.sparse.zeros(s, (2, 3)) | nd.sparse.empty(s, (2, 3)) | nd.sparse.array(x) | nd.sparse.array(x, dtype="float64")
    nd.sparse.csr_matrix(x) | nd.sparse.row_sparse_array(x) | nd.sparse.csr_matrix(d) | nd.sparse.row_sparse_array(d)
    nd.sparse.csr_matrix(d, dtype="float64") | nd.sparse.row_sparse_array(np.eye(3)) | nd.sparse.csr_matrix(np.eye(3))
    nd.sparse.csr_matrix([[0, 1], [2, 0]]) | nd.sparse.row_sparse_array([[0, 1], [0, 0]]) | nd.sparse.csr_matrix((3, 4))
    nd.sparse.row_sparse_array((3, 4, 2)) | nd.sparse.csr_matrix((3, 4), dtype="int8")
    nd.sparse.csr_matrix(([1, 2], ([0, 1], [1, 2])), shape=(3, 4))
    nd.sparse.csr_matrix(([1., 2, 3], ([1, 0, 1], [2, 1, 2])))
    nd.sparse.csr_matrix(([1, 2], [0, 2], [0, 1, 2]), shape=(2, 3)) | nd.sparse.csr_matrix(([1., 2], [0, 2], [0, 1, 2]))
    nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 3])) | nd.sparse.row_sparse_array(([[1., 2]], [1]), shape=(3, 2))
    nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [3, 0]), shape=(4, 2))
    nd.sparse.row_sparse_array(nd.ones((2, 1, 2)))
    nd.sparse.csr_matrix((np.array([1, 2], "int32"), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    op._identity_with_attr_like_rhs(x, d) | op._identity_with_attr_like_rhs(d, x) | op._grad_add(x, x)
    op._grad_add(x, d)
    op._square_sum(x, axis=1) | op._square_sum(x, axis=0) | op._square_sum(x, axis=1, keepdims=True)
    op._square_sum(x) | nd.contrib.index_copy(d, nd.array([1], dtype="int32"), d[0:1]) | nd.sparse.zeros_like(x)
    x.abs() | x.sum(axis=0) | x.mean() | x.norm() | x.clip(0, 1) | x.square() | x.sign() | x.round()
    x.zeros_like() | x.relu()
""".replace("\n", "|").split("|")
#: Expressions over g, a graph whose edges have ids, and one result of DGL's operators, in which v makes vertices.
GRAPHS = """
    nd.contrib.edge_id(g, v(0, 0, 3, 2), v(3, 2, 3, 0)) | nd.contrib.edge_id(g, v(0, 1), v(-1, 9))
    nd.contrib.edge_id(g.astype("float32"), nd.array([0, 4]), nd.array([4, 2])) | nd.contrib.dgl_adjacency(g)
    nd.contrib.dgl_subgraph(g, v(0, 1, 3), num_args=2, return_mapping=True)[0]
    nd.contrib.dgl_subgraph(g, v(0, 1, 3), num_args=2, return_mapping=True)[1]
    nd.contrib.dgl_subgraph(g, v(0, 1, 3), return_mapping=False)
    nd.contrib.dgl_subgraph(g, v(0, 3, 4), v(2), num_args=3, return_mapping=True)[1]
    nd.contrib.dgl_subgraph(g, v(0, 3, 4), v(2), num_args=3, return_mapping=True)[2]
    nd.contrib.dgl_subgraph(g, v(3, 3, 4), num_args=2, return_mapping=True)[1]
    sampled(5)[0] | sampled(5)[1] | sampled(5)[2] | sampled(3)[0] | sampled(3)[1] | sampled(3)[2]
    sampled(5, 1)[0][:4] | sampled(5, 1)[1] | sampled(5, 1)[2][:4] | weighted(5)[0] | weighted(5)[1] | weighted(5)[2]
    weighted(5)[3] | compact()
""".replace("\n", "|").split("|")
#: Calls of which the gradient is asked for x, whose gradient array is of x's storage type or dense; `w` is dense too.
GRADIENTS = """
    nd.sum(x) | nd.sum(x, axis=0) | nd.sum(x, axis=1) | nd.square(x) | nd.abs(x) | nd.sqrt(nd.abs(x)) | nd.sin(x)
    nd.relu(x)
    x * d | x * x | x + x | x - d | x + 1 | x * 3 | x / 2 | nd.dot(x, d) | nd.dot(x, d, transpose_a=True) | nd.dot(d, x)
    nd.clip(x, -1, 1) | nd.cast_storage(x, stype="default") | nd.slice(x, begin=(1,), end=(3,)) | nd.add_n(x, x)
    nd.concat(x, x, dim=0) | nd.broadcast_mul(x, d[0:1]) | nd.where(x, d, d) | nd.sparse.retain(x, nd.array([0, 2]))
    nd.Embedding(nd.array([0, 2, 2]), x, input_dim=4, output_dim=4, sparse_grad=True) | nd.norm(x) | nd.mean(x)
    nd.contrib.SparseEmbedding(nd.array([0, 2, 2]), x, input_dim=4, output_dim=4) | nd.identity(x) | nd.negative(x)
    nd.FullyConnected(d, x, num_hidden=4, no_bias=True) | nd.elemwise_mul(x, x) | nd.tanh(x) | nd.sign(x) | nd.exp(x)
    nd.take(x, nd.array([0, 2])) | op._square_sum(x, axis=1) | op._square_sum(x, axis=1, keepdims=True)
    nd.zeros_like(x)
""".replace("\n", "|").split("|")
#: Gradients for w, dense, whose gradient array is of either storage type, through x.
THROUGH = """
    nd.dot(x, w) | nd.dot(x, w, transpose_a=True) | nd.dot(w, x) | x * w | nd.broadcast_mul(x, w[0:1])
    nd.where(x, w, d)
    nd.Embedding(nd.array([0, 2, 2]), w, input_dim=4, output_dim=4, sparse_grad=True) | nd.dot(x, w, transpose_b=True)
    nd.Embedding(nd.array([0, 2, 2]), w, input_dim=4, output_dim=4) | nd.take(w, nd.array([3, 1, 3]))
    nd.contrib.SparseEmbedding(nd.array([0, 2, 2]), w, input_dim=4, output_dim=4) | nd.cast_storage(w, stype=s)
    nd.dot(x, w) + nd.dot(x, w) | nd.FullyConnected(x, w, num_hidden=4, no_bias=True) | w * 2 | nd.dot(x, nd.dot(d, w))
    nd.dot(x, w, forward_stype="default") | nd.dot(x, w, transpose_a=True, forward_stype="default")
    nd.elemwise_add(x, w)
    nd.where(d, w, x) | nd.dot(x, w) + w.sum()
""".replace("\n", "|").split("|")


GRAPH = np.array([[0, 1, 0, 2, 3], [4, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 5, 6, 7, 8], [9, 0, 10, 11, 0]])


def _of_graphs(mx):
    """What `GRAPHS` are over; the samplers take all edges, so that nothing is left to chance."""
    g = mx.nd.sparse.csr_matrix(mx.nd.array(GRAPH), dtype="int64")

    def v(*ids):
        return mx.nd.array(ids, dtype="int64")

    def sampled(most, hops=2):
        options = {"num_hops": hops, "num_neighbor": 9, "max_num_vertices": most}
        return mx.nd.contrib.dgl_csr_neighbor_uniform_sample(g, v(0), num_args=2, **options)

    def weighted(most):
        options = {"num_hops": 2, "num_neighbor": 9, "max_num_vertices": most}
        chances = mx.nd.array([1, 2, 0.5, 3, 4])
        return mx.nd.contrib.dgl_csr_neighbor_non_uniform_sample(g, chances, v(3), num_args=3, **options)

    def compact():
        ids, edges, _ = sampled(5)
        return mx.nd.contrib.dgl_graph_compact(edges, ids, num_args=2, return_mapping=False, graph_sizes=(5,))

    return {"nd": mx.nd, "g": g, "v": v, "sampled": sampled, "weighted": weighted, "compact": compact}


def _change(name):
    def change(x, y):
        exec(f"x {name} y", {}, scope := {"x": x, "y": y})
        return scope["x"]

    return change


def _put(x, key, value):
    x[key] = value
    return x


def _scope(mx, array, kind):
    return {
        "mx": mx,
        "nd": mx.nd,
        "np": np,
        "op": mx.nd._internal,
        "s": kind,
        "x": array(DATA, kind),
        "d": array(OTHER, "default"),
        "put": _put,
        **{f"i{n}": _change(sign) for n, sign in (("add", "+="), ("sub", "-="), ("mul", "*="), ("div", "/="))},
    }


def _gradient(mx, text, scope, name, stype):
    """The gradient array of `name`, which is of a storage type, for some head gradient."""
    x = scope[name]
    x.attach_grad(stype=stype)
    with mx.autograd.record():
        y = eval(text, scope)
    head = mx.nd.array(np.arange(1, np.prod(y.shape) + 1).reshape(y.shape))
    y.backward(head)
    return x.grad


def _texts(lines):
    return list(filter(None, map(str.strip, lines)))


def cases(mx):
    """(name, function of no argument) of all calls."""

    def array(values, kind):
        return mx.nd.array(values).tostype(kind)

    def two(text, a, b):
        return eval(text, {"nd": mx.nd, "op": mx.nd._internal, "a": array(DATA, a), "b": array(OTHER, b)})

    for name in UNARY:
        for kind in KINDS[:2]:
            yield f"{name} {kind}", lambda name=name, kind=kind: getattr(mx.nd, name)(array(DATA, kind))
    pairs = [(a, b) for a in KINDS for b in KINDS if {a, b} != {"default"}]
    for a, b in pairs:
        for name in BINARY:
            yield f"{name} {a} {b}", lambda name=name, a=a, b=b: two(f"nd.{name}(a, b)", a, b)
        for name in INTERNAL:
            yield f"{name} {a} {b}", lambda name=name, a=a, b=b: two(f"op.{name}(a, b)", a, b)
        for sign in PYTHON:
            yield f"{sign} {a} {b}", lambda sign=sign, a=a, b=b: two(f"a {sign} b", a, b)
        for ta, tb, to in itertools.product((False, True), (False, True), (None, *KINDS)):
            text = f"nd.dot(a, b, transpose_a={ta}, transpose_b={tb}" + (f", forward_stype='{to}')" if to else ")")
            yield f"{text}  {a} {b}", lambda text=text, a=a, b=b: two(text, a, b)
    for name, axes, kind in itertools.product(("sum", "mean", "norm", "max", "prod", "nansum"), AXES, KINDS[:2]):
        yield (
            f"{name} {axes} {kind}",
            lambda name=name, axes=axes, kind=kind: eval(
                f"f(x, {axes})", {"f": getattr(mx.nd, name), "x": array(DATA, kind)}
            ),
        )
    for text in _texts(EXPRESSIONS):
        for kind in KINDS[:2]:
            yield f"{text}  {kind}", lambda text=text, kind=kind: eval(text, _scope(mx, array, kind))
    for text in _texts(GRAPHS):
        yield text, lambda text=text: eval(text, _of_graphs(mx))
    for text, kind, to in itertools.product(_texts(GRADIENTS), KINDS[:2], (None, "default", "row_sparse")):
        yield (
            f"d({text})/dx {kind} to {to}",
            lambda text=text, kind=kind, to=to: _gradient(mx, text, _scope(mx, array, kind), "x", to),
        )
    for text, kind, to in itertools.product(_texts(THROUGH), KINDS, ("default", "row_sparse")):
        yield (
            f"d({text})/dw {kind} to {to}",
            lambda text=text, kind=kind, to=to: _gradient(
                mx, text, {**_scope(mx, array, kind), "w": array(OTHER - 1, "default")}, "w", to
            ),
        )


def facts(y):
    """Storage type, shape, dtype and values of a result, and the rows or, without zeros, the places that it stores.

    MXNet's matrices may have places of one row in any order, and arrays with more room than they fill.
    """
    found = [
        y.stype,
        list(y.shape),
        np.dtype(y.dtype).name,
        [None if np.isnan(v) else round(float(v), 6) for v in y.asnumpy().ravel()],
    ]
    if y.stype == "row_sparse":
        found.append(sorted(y.indices.asnumpy().tolist()))
    if y.stype == "csr":
        start = y.indptr.asnumpy()
        columns, values = (a.asnumpy()[: start[-1]] for a in (y.indices, y.data))
        found.append([sorted(columns[a:b][values[a:b] != 0].tolist()) for a, b in itertools.pairwise(start.tolist())])
    return found
