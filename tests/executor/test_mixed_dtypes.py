"""Chains whose operators have several dtypes: fused, they give the bits that they give one by one."""

from contextlib import nullcontext

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore._core.graph import Graph
from mxcore.executor.passes.fuse import fuse
from mxcore.executor.program import infer_all
from mxcore.plugin import Fused

FLOATS = ("float16", "float32", "float64")
WHOLE = ("bool", "uint8", "int8", "int32", "int64")
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65520.0, 1e-8, 6e-8, 3e38, 2.0**-24, 2049.0, 0.1]


def values(rng, shape, dtype):
    if dtype in FLOATS:
        a = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
        a.flat[rng.integers(0, a.size, len(SPECIAL))] = SPECIAL
        with np.errstate(over="ignore"):
            return a.astype(dtype)
    return rng.integers(-2 if dtype[0] == "i" else 0, 3, shape).astype(dtype)


class Chain:
    """A random graph of elementwise operators."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.shape = tuple(int(n) for n in rng.choice([1, 3, 7, 33], rng.integers(1, 4)))
        self.args, self.nodes = {}, []
        for _ in range(int(rng.integers(2, 5))):
            self.variable(str(rng.choice([*FLOATS, *WHOLE[3:]], p=[0.25, 0.3, 0.25, 0.1, 0.1])))
        for _ in range(int(rng.integers(3, 14))):
            self.nodes.append(self.step())
        self.net = mx.sym.Group([s for s, t in self.nodes[-2:] if t in FLOATS] or [self.as_(self.nodes[-1], "float32")])

    def variable(self, dtype):
        name = f"v{len(self.args)}"
        self.args[name] = values(self.rng, self.shape, dtype)
        self.nodes.append((mx.sym.Variable(name), dtype))
        return self.nodes[-1]

    def pick(self):
        return self.nodes[int(self.rng.integers(len(self.nodes)))]

    def as_(self, node, dtype):
        return node[0] if node[1] == dtype else mx.sym.cast(node[0], dtype=dtype)

    def step(self):
        # Products of numbers that are no powers of two are left out: a sum behind them may be one operation with them,
        # and more exact.
        kind, dtype, x, y = self.rng.integers(6), str(self.rng.choice(FLOATS)), self.pick(), self.pick()
        a, b = self.as_(x, dtype), self.as_(y, dtype)
        if kind == 0:
            return (a, dtype) if x[1] != dtype else (mx.sym.abs(a), dtype)
        if kind == 1:
            c = self.pick() if self.rng.random() < 0.5 else self.variable(str(self.rng.choice([*FLOATS, *WHOLE])))
            return mx.sym.where(c[0], a, b), dtype
        if kind == 2:
            return [a + b, a - b, mx.sym.maximum(a, b), mx.sym.minimum(a, b)][int(self.rng.integers(4))], dtype
        if kind == 3:
            return [a + 0.1, 3 - a, a * 0.5, mx.sym.maximum(a, 0.7)][int(self.rng.integers(4))], dtype
        if kind == 4:
            return [mx.sym.negative(a), mx.sym.floor(a), mx.sym.abs(a), mx.sym.ceil(a)][
                int(self.rng.integers(4))
            ], dtype
        return (a * b if dtype == "float16" else a + b), dtype


def run(net, args, *off):
    with mx.executor.passes_off(*off) if off else nullcontext():
        ex = net.bind(mx.cpu(), {k: nd.array(v, dtype=v.dtype) for k, v in args.items() if k in net.list_arguments()})
        return [y.asnumpy() for y in ex.forward()]


def chains(net, args, device=None):
    g = Graph(net._heads)
    some = {k: v for k, v in args.items() if k in net.list_arguments()}
    g.shapes, g.dtypes, g.stypes = infer_all(
        g.heads,
        {k: v.shape for k, v in some.items()},
        {k: v.dtype for k, v in some.items()},
        dict.fromkeys(some, "default"),
    )
    return [n.op.fused for n in fuse(g, device or mx.cpu().device).nodes if n.op is not None and hasattr(n.op, "fused")]


def same_bits(a, b, zeros=True):
    """Equal but for the payload of NaNs; without `zeros` for the sign of zeros, of which a maximum takes either."""
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    kind = f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(*[np.where(np.isnan(v) | ((v == 0) & (not zeros)), 0, v.view(kind)) for v in (a, b)])


@pytest.mark.parametrize("seed", range(80))
def test_random_chains_of_mixed_dtypes(seed):
    made = Chain(seed)
    for fused, plain in zip(run(made.net, made.args), run(made.net, made.args, "fuse", "simplify")):
        same_bits(fused, plain, zeros=False)


def test_most_of_them_are_one_chain():
    found = [chains(made.net, made.args) for made in map(Chain, range(80))]
    assert sum(len({*c.types.values(), c.dtype}) > 1 for some in found for c in some) > 40
    assert {t for some in found for c in some for t in c.types.values()} == {*FLOATS, *WHOLE}


x, y, c = map(mx.sym.Variable, "xyc")


@pytest.mark.parametrize(
    "net, dtypes, text",
    [
        (mx.sym.cast(x + 1, dtype="float64") + y, dict(x="float32", y="float64"), "t1 = float64(t0)"),
        (mx.sym.where(c, x + 1, x - 1), dict(x="float32", c="int32"), "where((a1 != int32(0)), t0, t1)"),
        (mx.sym.where(c, x + 1, x - 1), dict(x="float32", c="float64"), "where((a1 != float64(0)), t0, t1)"),
        (mx.sym.cast(x, dtype="float32") * 2 + 1, dict(x="float16"), "t0 = float32(a0)"),
        (mx.sym.cast(x + x, dtype="float64") * 2, dict(x="float16"), "t0 = float16((a0 + a0))"),
        (mx.sym.cast(c, dtype="float16") + 1, dict(c="int64"), "t0 = float16(a0)"),
    ],
)
def test_casts_stand_in_the_chain(net, dtypes, text):
    args = {n: values(np.random.default_rng(3), (5, 9), t) for n, t in dtypes.items()}
    (chain,) = chains(net, args)
    assert text in repr(chain) and mx.cpu().device.compile_fused(chain) is not None
    same_bits(*run(net, args), *run(net, args, "fuse", "simplify"))


@pytest.mark.parametrize(
    "net, dtypes",
    [
        # Rounded once, straight.
        (mx.sym.cast(mx.sym.cast(x + 1, dtype="float16"), dtype="float64"), dict(x="float64")),
        (mx.sym.tanh(x) + 1, dict(x="float16")),  # the device's tanh is another one
        (mx.sym.sum(x + x, axis=1), dict(x="float16")),
        (mx.sym.cast(x, dtype="int32") + 1, dict(x="float32")),
    ],
)
def test_what_would_round_otherwise_stays_out(net, dtypes):
    args = {n: values(np.random.default_rng(4), (5, 9), t) for n, t in dtypes.items()}
    inside = [t for chain in chains(net, args) for _, t in chain.steps]
    assert not any("tanh" in str(t) or "int32" in str(t) for t in inside) and not any(
        r for chain in chains(net, args) for r in chain.reduce
    )
    same_bits(*run(net, args), *run(net, args, "fuse", "simplify"))


def test_a_device_that_mixes_none_gets_chains_of_one_dtype():
    device = type("Plain", (type(mx.cpu().device),), {"fused_dtypes": frozenset()})()
    net = mx.sym.cast((x + 1) * 2, dtype="float64") + y * 2
    found = chains(net, {"x": np.ones((3, 4), "f4"), "y": np.ones((3, 4))}, device)
    assert len(found) == 2 and not any(c.types for c in found) and {c.dtype for c in found} == {"float32", "float64"}


def test_reductions_have_the_dtype_of_their_operator():
    net = mx.sym.Group([mx.sym.sum(mx.sym.cast(x + 1, dtype="float64"), axis=0), mx.sym.max(x + 1, axis=0)])
    args = {"x": np.random.default_rng(5).integers(-9, 9, (64, 33)).astype("float32")}
    fused, plain = run(net, args), run(net, args, "fuse", "simplify")
    assert [f.dtype for f in fused] == ["float64", "float32"]
    for a, b in zip(fused, plain):
        same_bits(a, b)


def test_gradients_through_casts():
    net = mx.sym.sum(
        mx.sym.cast(mx.sym.cast(x * 2, dtype="float16") + mx.sym.cast(x, dtype="float16"), dtype="float32") * 0.5
    )
    grads = []
    for off in ((), ("fuse", "simplify")):
        with mx.executor.passes_off(*off) if off else nullcontext():
            ex = net.bind(mx.cpu(), {"x": nd.array(np.linspace(-3, 3, 21))}, args_grad={"x": nd.zeros((21,))})
            ex.forward(is_train=True)
            ex.backward(nd.ones((1,)))
            grads.append(ex.grad_dict["x"].asnumpy())
    same_bits(*grads)


def test_memory_is_shared_between_equal_dtypes_only():
    chain = Fused(
        ["a", "b"],
        ["t"],
        "float32",
        steps=[("t", ("+", ("name", "a"), ("cast", "float32", ("name", "b"))))],
        types={"b": "float64"},
        pattern=("a", "a", "a"),
        dims=(4,),
    )
    assert (
        chain.inplace == ((0, 0),)
        and chain.type_of("b") == "float64"
        and chain.key
        != Fused(
            ["a", "b"],
            ["t"],
            "float32",
            steps=[("t", ("+", ("name", "a"), ("cast", "float32", ("name", "b"))))],
            pattern=("a", "a", "a"),
            dims=(4,),
        ).key
    )
    run_it = mx.cpu().device.compile_fused(chain)
    a, b = np.arange(4, dtype="f4"), np.arange(4.0)
    run_it([a], a, b)
    assert a.tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="must have 4 elements of float64, got float32"):
        run_it([a], a, b.astype("f4"))


def test_a_gradient_that_bools_do_not_have_names_the_operator_and_its_inputs():
    s = mx.sym.cast(mx.sym.square(mx.sym.cast(mx.sym.var("x"), dtype="bool"), name="sq"), dtype="float32")
    ex = (s * mx.sym.var("y")).simple_bind(mx.cpu(), x=(3,), y=(3,))
    x, y = mx.nd.array([2, 0, 1]), mx.nd.array([1, 2, 3])
    assert ex.forward(is_train=False, x=x, y=y)[0].asnumpy().tolist() == [1, 0, 3]
    with pytest.raises(mx.MXNetError) as e:
        ex.forward(is_train=True)
    text = "gradient of operator square of node 'sq' with data bool (3,): "
    assert str(e.value).startswith(text) and str(e.value).endswith(
        "bools are no numbers to differentiate, cast them first"
    )
    only_y = (s * mx.sym.var("y")).simple_bind(mx.cpu(), x=(3,), y=(3,), grad_req={"y": "write"})
    only_y.forward(is_train=True, x=x, y=y)
    only_y.backward(mx.nd.ones((3,)))
    assert only_y.grad_dict["y"].asnumpy().tolist() == [1, 0, 1]
