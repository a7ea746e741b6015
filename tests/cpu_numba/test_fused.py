"""Fused chains compute what NumPy computes, on any pattern of broadcasting, once compiled and ever after."""

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore.codecache import Places
from mxcore.plugin import Expr, Fused
from mxcore_cpu import fused
from mxcore_cpu.cache import CODE

DEVICE = mx.cpu().device
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_with_broadcast_inputs_and_two_outputs(dtype):
    f = DEVICE.compile_fused(
        Fused(["x", "b"], ["tanh(x * x + 1) * exp(-x) + sigmoid(x)", "maximum(x, b) if x > 0 else b"], dtype)
    )
    rs = np.random.RandomState(0)
    x, b = rs.randn(7, 50).astype(dtype), rs.randn(50).astype(dtype)
    outs = [np.empty_like(x), np.empty_like(x)]
    f(outs, x, b)
    np.testing.assert_allclose(outs[0], np.tanh(x * x + 1) * np.exp(-x) + sigmoid(x), rtol=TOLERANCE[dtype])
    np.testing.assert_array_equal(outs[1], np.where(x > 0, np.maximum(x, b), np.broadcast_to(b, x.shape)))


def test_equal_chains_are_compiled_once():
    assert DEVICE.compile_fused(Fused(["x"], ["x + 1"])) is DEVICE.compile_fused(Fused(["x"], [Expr("x + 1")]))
    small = Fused(["x"], ["x + 1"], pattern=("a", "a"), dims=(3,))
    large = Fused(["x"], ["x + 1"], pattern=("a", "a"), dims=(5,))
    assert DEVICE.compile_fused(small)._code is DEVICE.compile_fused(large)._code


def test_strided_arrays_are_read_and_written():
    f = DEVICE.compile_fused(Fused(["x"], ["x + 1"]))
    whole, x = np.zeros((4, 6), "float32"), np.arange(12, dtype="float32").reshape(3, 4)
    run = f.bind([whole[:, ::2]], [x.T])
    run()
    assert whole[:, ::2].tolist() == (x.T + 1).tolist() and not whole[:, 1::2].any()
    x += 1  # what was copied at binding would be stale
    run()
    assert whole[:, ::2].tolist() == (x.T + 1).tolist()


def test_a_dtype_that_is_not_compiled_gives_none():
    assert DEVICE.compile_fused(Fused(["x"], ["x + 1"], "float16")) is None


def test_scalars_come_at_run_time():
    f = DEVICE.compile_fused(Fused(["x"], ["x * s + t"], scalars=["s", "t"]))
    x, y = np.arange(3, dtype="float32"), np.empty(3, "float32")
    f([y], x, 2, -1)
    assert y.tolist() == [-1, 1, 3]
    before = len(fused._codes)
    run = f.bind([y], [x], [3, 0.5])
    run()
    assert y.tolist() == [0.5, 3.5, 6.5]
    run.scalars[:] = 1, 0
    run()
    assert y.tolist() == [0, 1, 2] and len(fused._codes) == before


def test_truth_values_and_numbers_mix():
    f = DEVICE.compile_fused(Fused(["x", "y"], ["x * (y > 0) + (not (x and y))", "(x > 0) == (y > 0)", "isnan(x)"]))
    x = np.array([1, 2, 0, np.nan, -3], "float32")
    y = np.array([1, -1, 0, 2, -2], "float32")
    outs = [np.empty(5, "float32") for _ in range(3)]
    f(outs, x, y)
    np.testing.assert_array_equal(outs[0], x * (y > 0) + ~((x != 0) & (y != 0)))
    np.testing.assert_array_equal(outs[1], (x > 0) == (y > 0))
    np.testing.assert_array_equal(outs[2], np.isnan(x))


@pytest.mark.parametrize("size", [1, 5, 100, 200_001])
def test_an_output_may_overwrite_an_input(size):
    chain = Fused(["x", "y"], ["tanh(x) + y", "x - y"])
    x, y = np.random.RandomState(size).randn(2, size).astype("float32")
    apart = [np.empty_like(x), np.empty_like(x)]
    DEVICE.compile_fused(chain)(apart, x, y)
    for outs in ([0, 1], [1, 0]):
        a = [x.copy(), y.copy()]
        DEVICE.compile_fused(chain)([a[i] for i in outs], *a)
        for i, result in zip(outs, apart):
            np.testing.assert_array_equal(a[i], result)


REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


#: Compiling each takes some tenths of a second.
_MORE = [
    *(("sum", s) for s in [(40, 3, 700, 5), (1, 33), (30000,), (2, 40000), (40000, 2), (2, 3, 30000)]),
    *((how, (3, 4, 50, 2)) for how in REDUCE),
    ("max", (300, 1000)),
    ("min", (40000, 2)),
]


@pytest.mark.parametrize(
    ("how", "shape"), [("sum", (300, 1000)), *(pytest.param(*case, marks=pytest.mark.slow) for case in _MORE)]
)
def test_reductions_over_all_sets_of_axes(how, shape):
    rs = np.random.RandomState(0)
    x = rs.randn(*shape).astype("float32")
    b = rs.randn(*shape[-1:]).astype("float32")
    for bits in range(1, 1 << len(shape)):
        axes = tuple(i for i in range(len(shape)) if bits >> i & 1)
        expected = REDUCE[how](x.astype("float64") * b, axes, keepdims=True)
        out, y = np.empty(expected.shape, "float32"), np.empty_like(x)
        DEVICE.compile_fused(Fused(["x", "b"], ["x * b", "x + b"], reduce=[how, None]))([out, y], x, b)
        scale = np.abs(x * b).sum(axes).max() if how == "sum" else 1
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=2e-7 * scale, err_msg=f"axes {axes}")
        np.testing.assert_array_equal(y, x + b)


def test_sums_do_not_depend_on_threads():
    from mxcore_cpu import threads

    for shape, pattern in (
        ((3_000_001,), ("a", "")),
        ((1500, 1501), ("ab", "b")),
        ((1500, 1501), ("ab", "a")),
        ((20, 60, 1000), ("abc", "b")),
    ):
        x = np.random.RandomState(1).randn(*shape).astype("float32")
        size = int(np.prod([d for c, d in zip("abc", shape) if c in pattern[1]]))
        one, many = np.empty(size, "float32"), np.empty(size, "float32")
        code = DEVICE.compile_fused(Fused(["x"], ["exp(x)"], reduce=["sum"], pattern=pattern, dims=shape))
        code.bind([many], [x])()
        with threads.limit(1):
            code.bind([one], [x])()
        np.testing.assert_array_equal(one, many)


def test_nan_wins_maxima():
    x = np.random.RandomState(0).randn(64, 65).astype("float32")
    x[3, 4], x[5] = np.nan, -np.inf
    for how in ("max", "min"):
        for axis in (0, 1, (0, 1)):
            expected = REDUCE[how](x, axis, keepdims=True)
            out = np.empty(expected.shape, "float32")
            DEVICE.compile_fused(Fused(["x"], ["x"], reduce=[how]))([out], x)
            np.testing.assert_array_equal(out, expected)


def test_nothing_at_all():
    x, total, low = np.empty((0, 3), "float32"), np.empty((1, 3), "float32"), np.empty((1, 1), "float32")
    DEVICE.compile_fused(Fused(["x"], ["x + 1"]))([x], x)
    DEVICE.compile_fused(Fused(["x"], ["x"], reduce=["sum"]))([total], x)
    DEVICE.compile_fused(Fused(["x"], ["x"], reduce=["min"]))([low], x)
    assert total.tolist() == [[0, 0, 0]] and low.tolist() == [[np.inf]]


def test_operands_that_do_not_fit_are_refused():
    code = DEVICE.compile_fused(Fused(["x"], ["x + 1"], pattern=("a", "a"), dims=(4,)))
    x = np.zeros(4, "float32")
    with pytest.raises(ValueError, match="must have 4 elements of float32, got float32 \\(5,\\)"):
        code.bind([x], [np.zeros(5, "float32")])
    with pytest.raises(ValueError, match="got float64"):
        code.bind([x], [np.zeros(4)])
    with pytest.raises(ValueError, match="takes 1 outputs, 1 inputs and 0 scalars, got 1, 2 and 0"):
        code.bind([x], [x, x])


# -- random chains ---------------------------------------------------------------------------------------------------

UNARY = {
    "tanh": np.tanh,
    "exp": lambda x: np.exp(np.minimum(x, 3)),
    "sigmoid": sigmoid,
    "abs": np.abs,
    "square": np.square,
    "relu": lambda x: np.maximum(x, 0),
    "-": np.negative,
    "floor": np.floor,
    "softplus": lambda x: np.logaddexp(x, 0),
}
TEXT = {"exp": "exp(minimum({}, 3))", "-": "(-{})"}
BINARY = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    ">": np.greater,
}


@st.composite
def chains(draw):
    """(steps as text, the same as functions, inputs)."""
    steps, names = [], [f"x{i}" for i in range(draw(st.integers(1, 4)))]
    inputs = list(names)
    for i in range(draw(st.integers(1, 7))):
        if draw(st.booleans()):
            fn, a = draw(st.sampled_from(sorted(UNARY))), draw(st.sampled_from(names))
            steps.append((f"t{i}", TEXT.get(fn, fn + "({})").format(a), lambda env, fn=fn, a=a: UNARY[fn](env[a])))
        else:
            fn, a, b = draw(st.sampled_from(sorted(BINARY))), draw(st.sampled_from(names)), draw(st.sampled_from(names))
            text = f"{fn}({a}, {b})" if fn.isalpha() else f"({a} {fn} {b})"
            steps.append((f"t{i}", text, lambda env, fn=fn, a=a, b=b: BINARY[fn](env[a], env[b]).astype("float64")))
        names.append(f"t{i}")
    return steps, inputs


SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


# Each example compiles: a third of a second. Making a failing one smaller would take minutes.
@pytest.mark.slow
@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(chains(), SHAPES, st.data(), st.sampled_from(["float32", "float64"]))
def test_random_chains(chain, shape, data, dtype):
    steps, inputs = chain
    rs = np.random.RandomState(data.draw(st.integers(0, 99)))
    # Multiples of 1/8: floor and comparisons must not hang on the last bit.
    arrays = {}
    for i, name in enumerate(inputs):
        mask = (
            [True] * len(shape)
            if i == 0
            else data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
        )
        arrays[name] = (rs.randint(-12, 13, [d if m else 1 for d, m in zip(shape, mask)]) / 8).astype(dtype)
    exact = dict(arrays)
    for name, _, fn in steps:
        exact[name] = fn({k: v.astype("float64") for k, v in exact.items()}).astype(dtype)
    ends = [name for name, _, _ in steps][-2:]
    how = data.draw(st.sampled_from([None, "sum", "max"]))
    kept = [data.draw(st.booleans()) or how is None for _ in shape]
    results = [np.broadcast_to(exact[n], shape).astype("float64") for n in ends]
    axes = tuple(i for i, k in enumerate(kept) if not k)
    reduce = [how if axes and i == len(ends) - 1 else None for i in range(len(ends))]
    outs, expected = [], []
    for result, r in zip(results, reduce):
        value = result if r is None else REDUCE[r](result, axes, keepdims=True)
        expected.append(value)
        outs.append(np.full(value.shape, 777, dtype))
    code = DEVICE.compile_fused(Fused(inputs, ends, dtype, steps=[(n, text) for n, text, _ in steps], reduce=reduce))
    with np.errstate(all="ignore"):
        code(outs, *[arrays[n] for n in inputs])
    for out, value in zip(outs, expected):
        if np.isfinite(value).all() and np.abs(value).max() < 1e3:
            # Steps may compare or cut values that differ in the last bit; then a step's whole height is the error.
            close = np.isclose(out, value, rtol=2e-5, atol=2e-5)
            cut = any(text.startswith("floor") or " > " in text for _, text, _ in steps)
            assert close.mean() > 0.8 if cut else close.all(), (steps, out, value)


# -- compiling ---------------------------------------------------------------------------------------------------------


def test_a_chain_that_does_not_compile_gives_none_and_one_warning(monkeypatch):
    def broken(chain, name):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(fused, "write_chain", broken)
    chain = Fused(["x"], ["x * 12345"], pattern=("a", "a"), dims=(3,))
    with pytest.warns(UserWarning, match="could not be compiled and runs in parts: RuntimeError: no such luck") as seen:
        assert DEVICE.compile_fused(chain) is None
        assert DEVICE.compile_fused(chain) is None
        assert DEVICE.compile_fused(Fused(["x"], ["x * 12345"], pattern=("a", "a"), dims=(4,))) is None
    assert len(seen) == 1


def test_threads_compile_one_code():
    chain = Fused(["x"], ["x * 54321 + 1"], pattern=("a", "a"), dims=(3,))
    found, start = [], threading.Barrier(4)

    def work():
        start.wait()
        found.append(DEVICE.compile_fused(chain))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(found) == 4 and len({id(f._code) for f in found}) == 1


_CHILD = """
import numpy as np, sys
from mxcore_cpu import fused, jit
from mxcore.plugin import Fused
compiled = []
if {spy}:
    from numba.core import compiler
    plain = compiler.compile_extra
    compiler.compile_extra = lambda *a, **k: compiled.append(a[2].__name__) or plain(*a, **k)
    from numba.core import dispatcher
    dispatcher.compiler.compile_extra = compiler.compile_extra
code = fused.compile_chain(Fused(["x"], ["exp(x) + 3"], pattern=("a", "a"), dims=(4,)))
y = np.empty(4, "f4")
code.bind([y], [np.zeros(4, "f4")])()
print(y.tolist(), compiled, 'numba' in sys.modules)
"""


def test_a_second_process_compiles_nothing(tmp_path):
    env = {**os.environ, "MXCORE_CACHE_DIR": str(tmp_path)}
    outs = [
        subprocess.run(
            [sys.executable, "-c", _CHILD.format(spy=True)], env=env, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert outs[0].startswith("[4.0, 4.0, 4.0, 4.0]") and "'_exp32'" in outs[0] and outs[0].endswith(" True\n")
    assert outs[1].strip() == "[4.0, 4.0, 4.0, 4.0] [] True"
    loaded = subprocess.run(
        [sys.executable, "-c", _CHILD.format(spy=False)], env=env, capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[4.0, 4.0, 4.0, 4.0] [] False", "Numba is not imported for what is compiled"
    assert not list(tmp_path.rglob("*.py*"))  # no source to be altered


def test_a_cache_that_cannot_be_written_costs_a_compilation(tmp_path, monkeypatch):
    monkeypatch.setitem(vars(CODE), "places", Places((tmp_path / "gone",), tmp_path / "gone"))
    with pytest.warns(UserWarning, match="compiled code cannot be kept in .*gone: No such file"):
        code = DEVICE.compile_fused(Fused(["x"], ["x * 98765"], pattern=("a", "a"), dims=(2,)))
    y = np.empty(2, "float32")
    code.bind([y], [np.ones(2, "float32")])()
    assert y.tolist() == [98765, 98765]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_runs_and_compiles_chains():
    n = 1_000_000
    x, y = np.ones(n, "float32"), np.empty(n, "float32")
    run = DEVICE.compile_fused(Fused(["x"], ["tanh(x) * 2"], pattern=("a", "a"), dims=(n,))).bind([y], [x])
    run()
    expected = y[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads at a fork
        child = os.fork()
    if not child:
        status = 1
        try:
            y[:] = 0
            run()
            z = np.empty(n, "float32")
            DEVICE.compile_fused(Fused(["x"], ["x * 2 + 31"], pattern=("a", "a"), dims=(n,))).bind([z], [x])()
            status = 0 if y[-1] == expected and z[-1] == 33 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_function_has_a_meaning(dtype):
    """All functions of expressions compile, and those with a namesake in NumPy agree with it."""
    from mxcore.fusion.expr import FUNCTIONS

    x, y = np.random.RandomState(0).uniform(0.3, 0.9, (2, 40)).astype(dtype)
    names = [fn for fn in sorted(FUNCTIONS) if fn != "where"]
    texts = [f"{fn}(x, y)" if FUNCTIONS[fn] == 2 else f"{fn}({'x + 1' if fn == 'arccosh' else 'x'})" for fn in names]
    outs = [np.full(40, np.nan, dtype) for _ in names]
    DEVICE.compile_fused(Fused(["x", "y"], texts, dtype))(outs, x, y)
    checked = 0
    for fn, out in zip(names, outs):
        known = getattr(np, "trunc" if fn == "fix" else fn, None)  # NumPy 2.5 warns of `fix`
        if known is not None:
            arguments = [x, y] if FUNCTIONS[fn] == 2 else [x + 1 if fn == "arccosh" else x]
            np.testing.assert_allclose(out, known(*arguments), rtol=TOLERANCE[dtype] * 5, atol=1e-7, err_msg=fn)
            checked += 1
        else:
            assert np.isfinite(out).all(), fn
    assert checked > 30
