"""Fused chains as CUDA C++, executed by the emulation, against the CPU's."""

import warnings

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by its name then
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore.fusion import FUNCTIONS
from mxcore.plugin import Fused
from mxcore_cpu.fused import compile_chain as numba_chain
from mxcore_cuda import fused, nvrtc
from mxcore_cuda.dtypes import HALVES
from mxcore_cuda.emulation import compiler
from mxcore_cuda.fused import code_of, compile_chain, print_cuda
from tests.marks import in_turn

from .chains import cases, differences, values


def run(chain, inputs, shapes, scalars=()):
    """Outputs of a chain on an emulated GPU, whose memory was poison before."""
    device = mx.gpu(0).device
    device.activate(0)
    outs = [
        device.empty(shape, np.dtype(chain.type_of(name)), 0) for shape, name in zip(shapes, chain.outputs, strict=True)
    ]
    compile_chain(chain)(outs, *[device.from_host(np.asarray(a), 0) for a in inputs], *scalars)
    return [device.to_host(o) for o in outs]


#: Where a function is asked: away from what has no value.
DOMAINS = {
    "arccosh": (1.1, 9),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctanh": (-0.9, 0.9),
    "erfinv": (-0.99, 0.99),
    "gamma": (0.1, 5),
    "lgamma": (0.1, 5),
    "digamma": (0.1, 5),
    "power": (0.1, 4),
} | dict.fromkeys("log log2 log10 sqrt rsqrt".split(), (0.01, 9))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_function_has_the_value_of_the_cpu(emulated, dtype):
    rs, names, data, steps = np.random.RandomState(0), [], [], []
    for fn, n in FUNCTIONS.items():
        args = [f"{fn}_{i}" for i in range(n)]
        low, high = DOMAINS.get(fn, (-4, 4))
        data += [rs.uniform(low, high, 40).astype(dtype) for _ in args]
        if fn == "where":
            data[-3] = (data[-3] > 0).astype(dtype)
        names += args
        steps.append(f"{fn}({', '.join(args)})")
    half = len(steps) // 2
    for part in (steps[:half], steps[half:]):
        used = [n for n in names if any(n in s for s in part)]
        given_ = [d for n, d in zip(names, data) if n in used]
        chain = Fused(used, part, dtype)
        found = run(chain, given_, [(40,)] * len(part))
        expected = [np.empty(40, dtype) for _ in part]
        numba_chain(chain)(expected, *given_)
        for text, a, b in zip(part, found, expected):
            np.testing.assert_allclose(a, b, rtol=3e-6 if dtype == "float32" else 1e-12, atol=1e-6, err_msg=text)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_those_of_numpy(emulated, dtype):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 2.0, -2.0], dtype)
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(x, x))
    numpy = {"mod": np.mod, "fmod": np.fmod, "floordiv": np.floor_divide, "maximum": np.maximum, "minimum": np.minimum,
             "arctan2": np.arctan2, "power": np.power, "hypot": np.hypot}  # fmt: skip
    found = run(Fused(["a", "b"], [f"{fn}(a, b)" for fn in numpy], dtype), [a, b], [a.shape] * len(numpy))
    with np.errstate(all="ignore"):
        for (name, fn), values in zip(numpy.items(), found):
            np.testing.assert_allclose(values, fn(a, b), rtol=1e-6, err_msg=name)
    single = {
        "sign": np.sign,
        "rint": np.rint,
        "relu": lambda v: np.where(v < 0, 0, v),
        "isnan": np.isnan,
        "abs": np.abs,
    }
    found = run(Fused(["a"], [f"{fn}(a)" for fn in single], dtype), [x], [x.shape] * len(single))
    for (name, fn), values in zip(single.items(), found):
        np.testing.assert_array_equal(values, fn(x), err_msg=name)


@pytest.mark.parametrize("how", ["sum", *in_turn("mean", "max", "min")])
@pytest.mark.parametrize(
    "pattern, dims, axes",
    [
        (("ab", "a"), (5, 700), 1),
        (("ab", "b"), (300, 70), 0),
        (("ab", ""), (300, 100), (0, 1)),
        (("abc", "b"), (4, 3, 500), (0, 2)),
        (("abc", "ac"), (4, 30, 50), 1),
        (("abc", "ac"), (2, 9000, 3), 1),  # few stay: in two stages
        (("ab", "a"), (1, 1), 1),
    ],
)
def test_reductions_along_any_dimensions(emulated, pattern, dims, axes, how):
    x = np.random.RandomState(0).uniform(0.5, 1.5, dims).astype("float32")
    expected = getattr(np, how)((x * x + 1).astype("float64"), axis=axes)
    [found] = run(Fused(["x"], ["x * x + 1"], pattern=pattern, dims=dims, reduce=[how]), [x], [expected.shape])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# -- barriers -------------------------------------------------------------------------------------------------------
ORDERS = {"forward": compiler.FORWARD, "backward": compiler.BACKWARD, "shuffled": compiler.SHUFFLED}
#: Two outputs of which few elements stay, so that blocks share them: all that is printed of a reduction, twice.
SHARED = Fused(["x"], ["x * x", "x + 1"], pattern=("abc", "ac", "ac"), dims=(2, 9000, 3), reduce=["sum", "max"])
#: The same in one stage.
ALONE = Fused(["x"], ["x * x", "x + 1"], pattern=("ab", "b", "b"), dims=(300, 70), reduce=["mean", "min"])
BARRIER = "__syncthreads();"


def reduces(chain):
    """Whether a chain of `x * x` and `x + 1` gives what NumPy does, in each order of threads."""
    x = np.random.RandomState(0).uniform(0.5, 1.5, chain.dims).astype("float32")
    axis = len(chain.dims) - 2
    wanted = [getattr(np, how)(y.astype("float64"), axis=axis) for how, y in zip(chain.reduce, (x * x, x + 1))]
    try:
        for order in ORDERS.values():
            compiler.set_order(order)
            found = run(chain, [x], [y.shape for y in wanted])
            if not all(np.allclose(a, b, rtol=1e-6, atol=0) for a, b in zip(found, wanted)):
                return False
    finally:
        compiler.set_order(compiler.FORWARD)
    return True


@pytest.mark.parametrize("chain", [SHARED, ALONE], ids=["shared", "alone"])
def test_several_reductions_in_every_order_of_threads(emulated, chain):
    assert reduces(chain)


@pytest.mark.parametrize("number", range(print_cuda(SHARED).count(BARRIER)))
def test_a_printed_barrier_that_is_deleted_is_found_out(emulated, monkeypatch, number):
    def cut(chain, wide=False):
        parts = print_cuda(chain, wide).split(BARRIER)
        return BARRIER.join([*parts[:number], parts[number] + parts[number + 1], *parts[number + 2 :]])

    monkeypatch.setattr(fused, "print_cuda", cut)
    monkeypatch.setattr(fused, "_made", {})  # kernels of whole chains
    assert not reduces(SHARED)


def test_scalars_change_without_being_compiled_again(emulated):
    device = mx.gpu(0).device
    x, y = device.from_host(np.arange(9, dtype="float32"), 0), device.empty((9,), np.float32, 0)
    call = compile_chain(Fused(["x"], ["x * rate"], scalars=["rate"])).bind([y], [x], [2.0])
    for rate in (2.0, 0.25):
        call.scalars[0] = rate
        call()
        assert device.to_host(y).tolist() == [i * rate for i in range(9)]


@pytest.mark.parametrize("half", HALVES)
def test_dtypes_may_be_mixed(emulated, half):
    x, y = np.arange(6, dtype="int32") - 3, np.linspace(-1, 1, 6).astype(half)
    chain = Fused(
        ["x", "y"],
        ["z", "w"],
        types={"x": "int32", "y": half, "w": half},
        steps=[
            ("z", ("+", ("cast", "float32", ("name", "x")), ("cast", "float32", ("name", "y")))),
            ("w", ("cast", half, ("*", ("name", "z"), ("name", "z")))),
        ],
    )
    z, w = run(chain, [x, y], [(6,), (6,)])
    np.testing.assert_array_equal(z, x.astype("float32") + y.astype("float32"))
    np.testing.assert_array_equal(w, (z * z).astype(half))


def test_nothing_and_strided_operands(emulated):
    assert run(Fused(["x"], ["x + 1"]), [np.empty((0, 3), "float32")], [(0, 3)])[0].shape == (0, 3)
    assert run(Fused(["x"], ["x"], reduce=["sum"]), [np.empty((0, 3), "float32")], [(1, 3)])[0].tolist() == [[0, 0, 0]]
    device = mx.gpu(0).device
    x = device.from_host(np.arange(12, dtype="float32").reshape(3, 4), 0)
    y = device.from_host(np.zeros((4, 3), "float32"), 0)
    compile_chain(Fused(["x"], ["x * 2"]))([y.T], x)
    assert device.to_host(y).tolist() == (np.arange(12).reshape(3, 4).T * 2).tolist()


def test_wrong_operands_are_told(emulated):
    device = mx.gpu(0).device
    code = compile_chain(Fused(["x"], ["x + 1"], pattern=("a", "a"), dims=(4,)))
    x = device.from_host(np.zeros(4, "float64"), 0)
    with pytest.raises(ValueError, match="x must have 4 elements of float32, got float64"):
        code.bind([x], [x])
    with pytest.raises(ValueError, match="takes 1 outputs, 1 inputs"):
        code.bind([x], [])


# -- random chains ------------------------------------------------------------------------------------------------
def compared(case, seed):
    """How many numbers of a random chain the GPU and the CPU agree on: all that can be compared."""
    chain, (arrays, numbers) = case.chain(), values(case, seed)
    found = run(chain, arrays, case.shapes(), numbers)
    expected = [np.full(shape, 77, chain.type_of(name)) for shape, name in zip(case.shapes(), chain.outputs)]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numba_chain(chain)(expected, *arrays, *numbers)
    many, wrong = differences(case, arrays, numbers, found, expected)
    assert not wrong, (chain, case, wrong)
    return many, sum(a.size for a in found)


#: Each is compiled twice, for a second; making a failing one smaller would take minutes.
RANDOM = {
    "deadline": None,
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}


@settings(max_examples=4, **RANDOM)
@given(cases(), st.integers(0, 99))
def test_a_few_random_chains(emulated, case, seed):
    compared(case, seed)


@pytest.mark.slow
def test_random_chains(emulated):
    counts = []

    @settings(max_examples=200, **RANDOM)
    @given(cases(), st.integers(0, 99))
    def each(case, seed):
        counts.append(compared(case, seed))

    each()
    assert len(counts) >= 200
    # Next to all numbers could be compared.
    assert np.mean([many / of for many, of in counts]) > 0.9


@pytest.mark.libraries
@pytest.mark.skipif(not nvrtc.available(), reason="NVRTC (nvidia-cuda-nvrtc) is not installed")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("reduce", [None, "sum", "max"])
def test_chains_compile_for_the_gpu_without_spills(reduce, wide):
    types, pattern = {"h": "float64", "b": "bfloat16"}, ("abc", "b", "ac", "abc" if reduce is None else "ac", "abc")
    chain = Fused(["x", "h", "b"], ["tanh(x) * h + s - b", "x"], pattern=pattern, dims=(4, 5, 6), scalars=["s"],
                  types=types, reduce=[reduce, None])  # fmt: skip
    code = code_of(chain, wide)
    log = nvrtc.compile_code(code, "sm_90")[1]
    used = nvrtc.usage(log)
    assert used.keys() == code.signatures.keys() and all(u.spilled == 0 for u in used.values())
