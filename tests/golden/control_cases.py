"""Operators written in Python and loops: run in MXNet for the golden files, and here against them.

Each case returns arrays by name, and the text of its symbol if it has one. Nothing in here knows which of the two runs
it.
"""

import numpy as np


def values(shape, start, dtype="float32"):
    """Numbers between -1 and 1 without a random generator, so that every version makes the same."""
    n = int(np.prod(shape))
    return np.sin(np.arange(start, start + n) * 1.7).reshape(shape).astype(dtype)


def flat(nested):
    """A nested list as a flat one."""
    return [v for item in nested for v in flat(item)] if isinstance(nested, (list, tuple)) else [nested]


# -- operators written in Python ------------------------------------------------------------------------------------


def register(mx):
    """Register the operators of the cases below under names beginning with ``golden_``."""
    Op, Prop = mx.operator.CustomOp, mx.operator.CustomOpProp

    class Mix(Op):
        """Two outputs; the state counts forwards by one and backwards by ten."""

        def forward(self, is_train, req, in_data, out_data, aux):
            a, b = in_data
            self.assign(out_data[0], req[0], a * b + (3 if is_train else 0))
            self.assign(out_data[1], req[1], a.sum(axis=1) - b[:, 0])
            aux[0][:] = aux[0] + 1

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            a, b = in_data
            big, small = out_grad[0], out_grad[1].reshape((-1, 1))
            db = big * a
            db[:, 0:1] = db[:, 0:1] - small
            self.assign(in_grad[0], req[0], big * b + small)
            self.assign(in_grad[1], req[1], db)
            aux[0][:] = aux[0] + 10

    @mx.operator.register("golden_mix")
    class MixProp(Prop):
        def list_arguments(self):
            return ["left", "right"]

        def list_outputs(self):
            return ["big", "small"]

        def list_auxiliary_states(self):
            return ["count"]

        def infer_shape(self, in_shape):
            return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0][:1]], [[1]]

        def create_operator(self, ctx, shapes, dtypes):
            return Mix()

    class Loss(Op):
        """A softmax with a built-in loss: backward does not look at the incoming gradient."""

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.nd.softmax(in_data[0]))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            hot = mx.nd.one_hot(in_data[1], depth=out_data[0].shape[1])
            self.assign(in_grad[0], req[0], (out_data[0] - hot) * self.scale)

    @mx.operator.register("golden_loss")
    class LossProp(Prop):
        def __init__(self, scale="1"):
            super().__init__(need_top_grad=False)
            self.scale = float(scale)

        def list_arguments(self):
            return ["data", "label"]

        def infer_shape(self, in_shape):
            return [in_shape[0], in_shape[0][:1]], [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            op = Loss()
            op.scale = self.scale
            return op

    class Calls(Op):
        """Multiplies by the number of its forwards so far: shows how long an operator lives."""

        calls = 0

        def forward(self, is_train, req, in_data, out_data, aux):
            self.calls += 1
            self.assign(out_data[0], req[0], in_data[0] * self.calls)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * self.calls)

    @mx.operator.register("golden_calls")
    class CallsProp(Prop):
        def create_operator(self, ctx, shapes, dtypes):
            return Calls()

    class Largest(Op):
        """Positions of the largest elements, as int32; without a gradient."""

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0].argmax(axis=1).astype("int32"))

    @mx.operator.register("golden_largest")
    class LargestProp(Prop):
        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0][:1]], []

        def infer_type(self, in_type):
            return in_type, [np.int32], []

        def create_operator(self, ctx, shapes, dtypes):
            return Largest()

    class Source(Op):
        """No inputs."""

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], mx.nd.array(values((2, 3), 5)))

    @mx.operator.register("golden_source")
    class SourceProp(Prop):
        def list_arguments(self):
            return []

        def infer_shape(self, in_shape):
            return [], [(2, 3)], []

        def infer_type(self, in_type):
            return [], [np.float32], []

        def create_operator(self, ctx, shapes, dtypes):
            return Source()


def variables(mx, shapes, reqs=None, dtype="float32"):
    """Arrays with gradients, as `reqs` says."""
    arrays = [mx.nd.array(values(s, 3 * i + 1), dtype=dtype) for i, s in enumerate(shapes)]
    for a, req in zip(arrays, reqs or ["write"] * len(arrays)):
        if req:
            a.attach_grad(req)
    return arrays


def heads(mx, outputs):
    """Head gradients for outputs."""
    return [mx.nd.array(values(y.shape, 7 * i + 2), dtype=y.dtype) for i, y in enumerate(outputs)]


def numpy(**named):
    """Lists of arrays as NumPy arrays called ``name0``, ``name1`` …"""
    return {f"{k}{i}": v.asnumpy() for k, listed in named.items() for i, v in enumerate(listed) if v is not None}


def mix_arrays(mx):
    """Twice forward and backward; one input adds its gradients up."""
    a, b = variables(mx, [(2, 3), (2, 3)], ["add", "write"])
    count, found = mx.nd.zeros((1,)), {}
    for step, train in enumerate((True, False)):
        with mx.autograd.record(train_mode=train):
            ys = mx.nd.Custom(a, b, count, op_type="golden_mix")
        mx.autograd.backward(ys, heads(mx, ys))
        mx.nd.waitall()  # MXNet's arrays do not wait for what a backward writes to auxiliary states
        found.update({f"{step}.{k}": v for k, v in numpy(out=ys, grad=[a.grad, b.grad], aux=[count]).items()})
    return found, None


def mix_one_output(mx):
    """Only the second output goes on, and only the second input wants a gradient."""
    a, b = variables(mx, [(2, 3), (2, 3)], ["", "write"])
    count = mx.nd.zeros((1,))
    with mx.autograd.record():
        y = mx.nd.Custom(a, b, count, op_type="golden_mix")[1] * 2
    y.backward(heads(mx, [y])[0])
    mx.nd.waitall()
    return numpy(out=[y], grad=[b.grad], aux=[count]), None


def loss_arrays(mx):
    """The loss, used once and then multiplied: the factor does not reach its gradient."""
    (x,) = variables(mx, [(3, 4)])
    label, found = mx.nd.array([0, 2, 3]), {}
    for factor in (1, 5):
        with mx.autograd.record():
            y = mx.nd.Custom(x * 1, label, op_type="golden_loss", scale=0.5) * factor
        y.backward()
        found.update(numpy(**{f"{factor}.out": [y], f"{factor}.grad": [x.grad]}))
    return found, None


def calls_arrays(mx):
    """A call, an operator."""
    (x,) = variables(mx, [(2, 2)])
    found = []
    for _ in range(3):
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type="golden_calls")
        y.backward()
        found += [y, x.grad.copy()]
    return numpy(out=found), None


def others_arrays(mx):
    """Another dtype, and no inputs."""
    return numpy(
        out=[
            mx.nd.Custom(mx.nd.array(values((3, 4), 1)), op_type="golden_largest"),
            mx.nd.Custom(op_type="golden_source"),
        ]
    ), None


def bound(mx, symbol, steps=((False, False), (True, True), (True, True)), reqs="write", types=None, **shapes):
    """Bind with new arrays and run `steps` of (is_train, backward): what comes out, and the text of the symbol."""
    text = symbol.tojson()
    return run_bound(mx, symbol, steps, reqs, types, **shapes), text


def run_bound(mx, symbol, steps=((False, False), (True, True), (True, True)), reqs="write", types=None, **shapes):
    """The arrays of `bound`."""
    ex = symbol.simple_bind(mx.cpu(), grad_req=reqs, type_dict=types, **shapes)
    for i, (n, a) in enumerate(zip(symbol.list_arguments(), ex.arg_arrays)):
        a[:] = mx.nd.array(values(a.shape, 3 * i + 1) + (2 if n.endswith("var") else 0), dtype=a.dtype)
    found = {}
    for step, (train, back) in enumerate(steps):
        ys = ex.forward(is_train=train)
        new = {"out": ys, "aux": ex.aux_arrays}
        if back:
            ex.backward(heads(mx, ys))
            new["grad"] = ex.grad_arrays
        mx.nd.waitall()
        found.update({f"{step}.{k}": v for k, v in numpy(**new).items()})
    return found


def mix_bound(mx):
    """All ways to ask for a gradient; what is left out becomes a variable."""
    s = mx.sym.Custom(left=mx.sym.Variable("a"), op_type="golden_mix", name="mix")
    return bound(mx, s, reqs={"a": "add", "mix_right": "write"}, a=(2, 3))


def mix_bound_null(mx):
    """The first input wants no gradient, and the second output is not used."""
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    s = mx.sym.Custom(a, b * 2, op_type="golden_mix", name="mix")[0] + 1
    return bound(mx, s, reqs={"a": "null", "b": "write"}, a=(2, 3))


def loss_bound(mx):
    """The loss at the end of a layer."""
    h = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=4, name="fc")
    s = mx.sym.Custom(data=h, op_type="golden_loss", scale=0.5, name="loss")
    return bound(mx, s, reqs={n: "null" if n == "loss_label" else "write" for n in s.list_arguments()}, x=(3, 2))


def calls_bound(mx):
    """One operator for an executor, whatever its mode; a node of its own has another one."""
    x = mx.sym.Variable("x")
    s = mx.sym.Custom(mx.sym.Custom(x, op_type="golden_calls", name="one") + 1, op_type="golden_calls", name="two")
    return bound(mx, s, steps=((False, False), (True, True), (False, False), (True, True)), x=(2, 2))


def others_bound(mx):
    """Another dtype, and no inputs."""
    s = mx.sym.Group(
        [
            mx.sym.Custom(mx.sym.Variable("x"), op_type="golden_largest", name="largest"),
            mx.sym.Custom(op_type="golden_source", name="source") * 2,
        ]
    )
    return bound(mx, s, steps=((False, False),), reqs="null", x=(3, 4))


# -- loops ----------------------------------------------------------------------------------------------------------


def rnn(F, d, s, w):
    h = F.tanh(F.FullyConnected(d, w[0], w[1], num_hidden=3) + F.FullyConnected(s, w[2], num_hidden=3, no_bias=True))
    return h, h


def gates(F, d, s, w):
    h, c = s
    a, b = F.SliceChannel(F.FullyConnected(F.concat(d, h, dim=1), w[0], num_hidden=4, no_bias=True), num_outputs=2)
    c = F.sigmoid(a) * c + F.tanh(b)
    return [c, F.relu(c)], [F.tanh(c), c]


def inner_loop(F, d, s, w):
    def step(e, t):
        return e * w[0] + t * s, t + e

    out, last = F.contrib.foreach(step, d, s)
    return out, last


#: Name -> (shapes of data, of states, of what the body finds outside, body of F, data, states and the rest); nested
#: like the shapes. MXNet cannot bind loops whose state has a gradient that passes through a step untouched, as that of
#: ``s + d`` does.
LOOPS = {
    "sum": ((3, 2), (2,), [(2,)], lambda F, d, s, w: (d * w[0] + s, d * w[0] + s)),
    "lists": (
        [(3, 2), (3, 2)],
        [(2,), (2,)],
        [(2,)],
        lambda F, d, s, w: ([d[0] * w[0] + s[0], d[1] - s[1]], [s[0] + d[1], s[1] * 2]),
    ),
    "nested": ((3, 2), [(2,), [(2,)]], [], lambda F, d, s, w: ([d + s[0], [d * s[1][0]]], [s[0] + 1, [s[1][0] + d]])),
    "one_each": ([(3, 2)], [(2,)], [], lambda F, d, s, w: ([d[0] * 2], [s[0] * d[0]])),
    "vector": ((4,), (1,), [(1,)], lambda F, d, s, w: (d * s, s * w[0] + d)),
    "matrix": (
        (2, 3, 4),
        (3, 2),
        [(2, 4)],
        lambda F, d, s, w: (F.dot(d, w[0], transpose_b=True) * s, F.dot(d, w[0], transpose_b=True) + s),
    ),
    "copy": ((3, 2), (2,), [], lambda F, d, s, w: (d, s)),
    "twice": ((3, 2), (2,), [], lambda F, d, s, w: (lambda y: (y, y))(d * s + d)),
    "outside": ((3, 2), (2,), [(2,)], lambda F, d, s, w: (w[0], s * d)),
    "no_states": ((3, 2), [], [(2,)], lambda F, d, s, w: (F.exp(d) * w[0], [])),
    "no_outputs": ((3, 2), (2,), [(2,)], lambda F, d, s, w: ([], s * w[0] * d)),
    "rnn": ((4, 2, 3), (2, 3), [(3, 3), (3,), (3, 3)], rnn),
    "gates": ((3, 2, 2), [(2, 2), (2, 2)], [(4, 4)], gates),
    "loop_in_loop": ((2, 3, 2), (2,), [(2,)], inner_loop),
}


def map_nested(f, nested):
    """The shapes of a case with something made of each."""
    return f(nested) if isinstance(nested, tuple) else [map_nested(f, n) for n in nested]


def loop_arrays(mx, name, dtype="float32"):
    """A loop over arrays: outputs, last states, gradients of everything."""
    data, states, outside, body = LOOPS[name]
    every = variables(mx, [*flat_shapes(data), *flat_shapes(states), *outside], dtype=dtype)
    rest = iter(every)
    data, states, w = (map_nested(lambda s: next(rest), nested) for nested in (data, states, outside))
    with mx.autograd.record():
        # What is computed outside the loop has its gradient too.
        w = [v * 2 for v in w]
        outs, last = mx.nd.contrib.foreach(lambda d, s: body(mx.nd, d, s, w), data, states)
    ys = flat([outs, last])
    ys = [y for y in ys if not any(y is x for x in every)]
    mx.autograd.backward(ys, heads(mx, ys))
    return numpy(out=ys, grad=[x.grad for x in every]), None


def flat_shapes(nested):
    return [nested] if isinstance(nested, tuple) else [s for n in nested for s in flat_shapes(n)]


def loop_symbol(mx, name):
    """The symbol of a loop, and the shapes of its arguments."""
    data, states, outside, body = LOOPS[name]
    shapes = {}

    def variable(kind):
        def make(shape):
            n = f"{kind}{len(shapes)}"
            shapes[n] = shape
            return mx.sym.Variable(n)

        return make

    data, states, w = (
        map_nested(variable(k), nested) for k, nested in (("data", data), ("state", states), ("w", outside))
    )
    w = [v * 2 for v in w]
    outs, last = mx.sym.contrib.foreach(lambda d, s: body(mx.sym, d, s, w), data, states, name=f"golden_{name}")
    return mx.sym.Group(flat([outs, last])), shapes


def loop_bound(mx, name, **kwargs):
    """The same as an operator."""
    s, shapes = loop_symbol(mx, name)
    return bound(mx, s, **kwargs, **shapes)


def loop_half(mx):
    """Gradients add up or are not wanted; only the last state is used."""
    s, shapes = loop_symbol(mx, "matrix")
    names = list(shapes)
    return bound(mx, s[1] * 3, reqs={names[0]: "null", names[1]: "add", names[2]: "add"}, **shapes)


def loop_double(mx):
    """In float64."""
    return loop_bound(mx, "rnn", types={"data0": "float64"})


def loop_between(mx):
    """A loop over computed data whose results go on; its variables are made inside, and two loops follow each other."""
    x, s = mx.sym.Variable("x"), mx.sym.Variable("s")
    out, last = mx.sym.contrib.foreach(
        lambda d, t: (mx.sym.FullyConnected(d, num_hidden=2, name="fc") + t,) * 2,
        mx.sym.tanh(x),
        mx.sym.exp(s),
        name="golden_between",
    )
    again, end = mx.sym.contrib.foreach(lambda d, t: (d * t, t + d), out, last, name="golden_after")
    return bound(mx, mx.sym.Group([mx.sym.sum(again, axis=0), end * 2]), x=(3, 2, 4), s=(2, 2))


def loop_normal(mx):
    """Batch normalisation in a loop, with statistics as arguments; MXNet does not train in there."""
    x, s = mx.sym.Variable("x"), mx.sym.Variable("s")
    out, last = mx.sym.contrib.foreach(
        lambda d, t: (mx.sym.BatchNorm(d, fix_gamma=False, name="bn") + t, t * 2), x, s, name="golden_normal"
    )
    return bound(mx, mx.sym.Group([out, last]), steps=((False, False),), reqs="null", x=(2, 4, 3), s=(4, 3))


# -- while and cond -------------------------------------------------------------------------------------------------
# The first number that `values` gives for the first array is 0.99.


def rnn_while(F, v, w):
    h = F.tanh(F.FullyConnected(v[1], w[0], w[1], num_hidden=3))
    return h * 2, [v[0] + 1, h]


def foreach_inside(F, v, w):
    out, last = F.contrib.foreach(lambda d, t: (d * w[0] + t, t * d), v[1], v[2])
    return out, [v[0] + 1, v[1] + out, last]


def while_inside(F, v, w):
    out, last = F.contrib.while_loop(
        lambda i, s: i < 2, lambda i, s: (s * w[0] * v[1], [i + 0.5, s + v[1]]), [v[0] * 0, v[1] * 2], max_iterations=4
    )
    return F.sum(out, axis=0), [v[0] + 1, last[1]]


def cond_inside(F, v, w):
    return F.contrib.cond(v[0] < 2, lambda: v[1] * w[0], lambda: v[1] + w[0]), [v[0] + 1, v[1] * 2]


#: Name -> (shapes of the loop variables, of what the functions find outside, steps that are taken, max_iterations,
#: condition and function of F, variables and the rest).
WHILES = {
    "count": (
        [(1,), (2,)],
        [(2,)],
        3,
        3,
        lambda F, v, w: v[0] < 3,
        lambda F, v, w: ([v[1] * w[0]], [v[0] + 1, v[1] * w[0]]),
    ),
    "ends_first": (
        [(1,), (2,)],
        [(2,)],
        3,
        7,
        lambda F, v, w: v[0] < 3,
        lambda F, v, w: ([v[1] * w[0], v[0]], [v[0] + 1, v[1] * w[0]]),
    ),
    "cut_off": (
        [(1,), (2, 1)],
        [],
        2,
        2,
        lambda F, v, w: v[0] < 30,
        lambda F, v, w: (F.broadcast_mul(v[1], v[0]), [v[0] * 2, v[1] * v[1]]),
    ),
    "one_variable": ((1,), [(1,)], 2, 4, lambda F, v, w: v[0] < 2, lambda F, v, w: (v[0] * w[0], v[0] + 0.75)),
    "nested": (
        [(1,), [(2,)]],
        [(2,)],
        2,
        3,
        lambda F, v, w: v[0] < 2,
        lambda F, v, w: ([v[1][0] * w[0], [v[0] * 2]], [v[0] + 1, [F.broadcast_mul(v[1][0], v[0])]]),
    ),
    "no_outputs": (
        [(1,), (2,)],
        [(2,)],
        2,
        3,
        lambda F, v, w: v[0] < 2,
        lambda F, v, w: ([], [v[0] + 1, F.broadcast_mul(v[1] * w[0], v[0])]),
    ),
    "outside_asked": (
        [(1,)],
        [(3,), (1,)],
        2,
        3,
        lambda F, v, w: v[0] * v[0] + F.sum(w[0]) * 0 < 4,
        lambda F, v, w: (v[0] * w[1], [v[0] * w[1] * w[1]]),
    ),
    "copies": ([(1,), (2,)], [(2,)], 2, 3, lambda F, v, w: v[0] < 2, lambda F, v, w: ([w[0], v[1]], [v[0] + 1, v[1]])),
    "swap": ([(1,), (1,)], [], 2, 2, lambda F, v, w: v[0] < 30, lambda F, v, w: (v[0] * v[1], [v[1], v[0]])),
    "twice": (
        [(1,)],
        [(1,)],
        2,
        3,
        lambda F, v, w: v[0] < 3,
        lambda F, v, w: (lambda y: ([y, y * 2], y))(v[0] + w[0] * w[0]),
    ),
    "rnn": ([(1,), (2, 3)], [(3, 3), (3,)], 3, 4, lambda F, v, w: v[0] < 3, rnn_while),
    "growing": (
        [(1,)],
        [(1,)],
        3,
        6,
        lambda F, v, w: F.sum(v[0]) < 5,
        lambda F, v, w: ([], [F.concat(v[0], F.broadcast_mul(v[0], w[0] * w[0]) + 0.5, dim=0)]),
    ),
    "foreach_inside": ([(1,), (2, 2), (2,)], [(2,)], 2, 3, lambda F, v, w: v[0] < 2, foreach_inside),
    "while_inside": ([(1,), (2,)], [(2,)], 2, 3, lambda F, v, w: v[0] < 2, while_inside),
    "cond_inside": ([(1,), (2,)], [(2,)], 2, 3, lambda F, v, w: v[0] < 2.5, cond_inside),
}


def nested_conds(F, x, w):
    return x[0] < 0.5, lambda: x[1], lambda: F.contrib.cond(x[0] < 3, lambda: x[1] * w[0], lambda: w[0] * 2)


#: Name -> (shapes of the variables, of what is computed outside from variables, predicate and branches of F and both).
CONDS = {
    "then": ([(1,), (2,)], [(2,)], lambda F, x, w: (x[0] < 3, lambda: x[1] * w[0], lambda: x[1] + w[0])),
    "else": (
        [(1,), (2,)],
        [(2,)],
        lambda F, x, w: (x[0] > 3, lambda: x[1] * w[0], lambda: F.broadcast_add(x[1] * x[1], x[0])),
    ),
    "lists": ([(1,), (2,)], [(2,)], lambda F, x, w: (x[0], lambda: [x[1], [w[0] * 2]], lambda: [w[0], [x[1] * 3]])),
    "one_side": ([(1,), (2,)], [(2,)], lambda F, x, w: (x[0] > 3, lambda: x[1], lambda: w[0])),
    "shapes": ([(1,), (2,)], [], lambda F, x, w: (x[0], lambda: F.concat(x[1], x[1] * 2, dim=0), lambda: x[1])),
    "number": (
        [(1, 1), (2, 3)],
        [(3,)],
        lambda F, x, w: (x[0] - 0.5, lambda: F.broadcast_mul(x[1], F.reshape(w[0], (1, 3))), lambda: x[1]),
    ),
    "nested_conds": ([(1,), (2,)], [(2,)], nested_conds),
}


#: MXNet cannot train these as operators: they hold another one, a variable changes its shape,
#: or the condition alone uses something.
UNTRAINED = {"growing", "outside_asked", "foreach_inside", "while_inside", "cond_inside", "nested_conds"}


def flow_arrays(mx, kind, name):
    """Arrays through a loop or branches: results, last variables, gradients of everything."""
    shapes, outside, *_ = (WHILES if kind == "while" else CONDS)[name]
    every = variables(
        mx, [*flat_shapes(shapes), *outside], ["add"] + ["write"] * (len(flat_shapes(shapes)) + len(outside) - 1)
    )
    rest = iter(every)
    x, w = (map_nested(lambda s: next(rest), nested) for nested in (shapes, outside))
    with mx.autograd.record():
        ys = flow(mx.nd, kind, name, x, [v * 2 for v in w])
    ys = [y for y in ys if not any(y is v for v in every)]
    if name == "one_side":  # a branch may return what it finds; that of arrays is the very same
        return numpy(out=ys), None
    mx.autograd.backward(ys, heads(mx, ys))
    return numpy(out=ys, grad=[v.grad for v in every]), None


def flow(F, kind, name, x, w):
    """The results of a case; without the rows that no step fills, which MXNet leaves undefined."""
    # Names of sub-graphs count up; those of a case are its own.
    named = {"name": f"golden_{kind}_{name}"} if hasattr(F, "Variable") else {}
    if kind == "cond":
        return flat([F.contrib.cond(*CONDS[name][2](F, x, w), **named)])
    _, _, steps, most, cond, func = WHILES[name]
    outs, last = F.contrib.while_loop(
        lambda *v: cond(F, v, w), lambda *v: func(F, v, w), x, max_iterations=most, **named
    )
    return [F.slice_axis(y, axis=0, begin=0, end=steps) for y in flat([outs])] + flat([last])


def flow_symbol(mx, kind, name):
    """The symbol of a case, and the shapes of its arguments."""
    shapes, outside, *_ = (WHILES if kind == "while" else CONDS)[name]
    named = {}

    def variable(shape):
        named[f"v{len(named)}"] = shape
        return mx.sym.Variable(f"v{len(named) - 1}")

    x, w = (map_nested(variable, nested) for nested in (shapes, outside))
    return mx.sym.Group(flow(mx.sym, kind, name, x, [v * 2 for v in w])), named


def flow_bound(mx, kind, name):
    """The same as an operator."""
    s, shapes = flow_symbol(mx, kind, name)
    # MXNet leaves gradients of what only the other branch reads undefined.
    return flow_run(mx, s, shapes, name not in UNTRAINED, kind == "while"), s.tojson()


def flow_run(mx, s, shapes, train=True, grad=True):
    """Bind to arrays (MXNet infers no shapes here) and run: without training, then perhaps twice with gradients."""
    names = s.list_arguments()
    args = {n: mx.nd.array(values(shapes[n], 3 * i + 1)) for i, n in enumerate(shapes)}
    grads = {n: mx.nd.zeros(shapes[n]) for n in names}
    reqs = {n: "null" if not train else "add" if n == names[-1] else "write" for n in names}
    ex = s.bind(mx.cpu(), {n: args[n] for n in names}, args_grad=grads, grad_req=reqs)
    found = {}
    for step, back in enumerate((False, True, True) if train else (False,)):
        ys = ex.forward(is_train=back)
        new = {"out": ys}
        if back:
            ex.backward(heads(mx, ys))
            new["grad"] = [grads[n] for n in shapes if grad and n in grads]
        mx.nd.waitall()
        found.update({f"{step}.{k}": v for k, v in numpy(**new).items()})
    return found


def while_never(mx):
    """No step at all: nothing is stacked, the variables are those that were given."""
    x, w = variables(mx, [(2,), (2,)])
    with mx.autograd.record():
        outs, last = mx.nd.contrib.while_loop(lambda v: v.sum() > 90, lambda v: (v, v * w), x * 3, max_iterations=3)
        y = last * w
    y.backward(heads(mx, [y])[0])
    assert outs == []
    return numpy(out=[y], grad=[x.grad, w.grad]), None


def numbers(mx):
    """What is finite, infinite, or no number."""
    found = {}
    for dtype in ("float16", "float32", "float64"):
        x = mx.nd.array([1, -2, np.inf, -np.inf, np.nan, 0], dtype=dtype)
        found.update(
            numpy(**{dtype: [f(x) for f in (mx.nd.contrib.isinf, mx.nd.contrib.isnan, mx.nd.contrib.isfinite)]})
        )
    x = mx.nd.array([[3, 0]], dtype="int32")
    found.update(numpy(int32=[f(x) for f in (mx.nd.contrib.isinf, mx.nd.contrib.isnan, mx.nd.contrib.isfinite)]))
    _, true, _ = mx.nd.contrib.rand_zipfian(mx.nd.array([[0, 7], [3, 99]]), 20, 100)
    return {**found, **numpy(zipfian=[true])}, None


#: Name -> what a case does with mx; returns arrays by name, and the text of a symbol or None.
CASES = {
    f.__name__: f
    for f in (
        mix_arrays,
        mix_one_output,
        loss_arrays,
        calls_arrays,
        others_arrays,
        mix_bound,
        mix_bound_null,
        loss_bound,
        calls_bound,
        others_bound,
        loop_half,
        loop_double,
        loop_between,
        loop_normal,
        while_never,
        numbers,
    )
}
for _name in LOOPS:
    CASES[f"loop_arrays_{_name}"] = lambda mx, name=_name: loop_arrays(mx, name)
    CASES[f"loop_bound_{_name}"] = lambda mx, name=_name: loop_bound(mx, name)
for _kind, _table in (("while", WHILES), ("cond", CONDS)):
    for _name in _table:
        CASES[f"{_kind}_arrays_{_name}"] = lambda mx, kind=_kind, name=_name: flow_arrays(mx, kind, name)
        CASES[f"{_kind}_bound_{_name}"] = lambda mx, kind=_kind, name=_name: flow_bound(mx, kind, name)
CASES["loop_arrays_float64"] = lambda mx: loop_arrays(mx, "rnn", "float64")


def run(mx, name):
    """What a case gives, under names of its own."""
    with mx.name.NameManager():
        return CASES[name](mx)
