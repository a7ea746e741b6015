"""Elementwise functions of mx.np and Python's operators against NumPy: dtypes, gradients, graphs, short ways."""

import operator

import numpy as onp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import autograd, gluon, np, npx
from mxcore._core import tables
from mxcore._core.kernels import Spec
from mxcore.ndarray.operators import SHORT
from mxcore.ops.elementwise.numpy_operators import common_dtype
from mxcore.symbol.numpy import symbols
from mxcore.testing.gradcheck import check_grads

from .numbers import DTYPES, FLOATS, check, drawn, wide

ALL = [*DTYPES, "int8"]
SMOOTH = """
arccos arccosh arcsin arcsinh arctan arctanh cbrt cos cosh deg2rad degrees exp exp2 expm1 log log10 log1p log2 rad2deg
radians reciprocal sin sinh sqrt tan tanh
""".split()
ROUNDING = "abs absolute ceil fabs fix floor trunc".split()
TESTS = "isfinite isinf isnan isneginf isposinf logical_not".split()
SHAPES = [(2, 3), (), (0, 3)]
PAIRS = [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2, 3)), ((), ()), ((0, 3), (1, 3))]


def kind(t):
    return onp.dtype(t).kind


def joined(a, b):
    return str(common_dtype(onp.dtype(a), onp.dtype(b)))


def floating(a, b):
    t = joined(a, b)
    return t if kind(t) == "f" else "float32"


def measured(a, b):
    t = joined(a, b)
    return "float32" if t == "bool" else t


def counted(a, b):
    t = joined(a, b)
    return "int8" if t == "bool" else t


def truth(a, b):
    return "bool"


#: Function -> dtype of its result; where it is None, the function refuses such arrays.
BINARY = {
    **dict.fromkeys("add multiply power maximum minimum fmax fmin".split(), joined),
    "subtract": lambda a, b: None if a == b == "bool" else joined(a, b),
    **dict.fromkeys("true_divide divide hypot arctan2".split(), floating),
    **dict.fromkeys("copysign ldexp".split(), measured),
    **dict.fromkeys("mod remainder floor_divide fmod".split(), counted),
    **dict.fromkeys(
        "bitwise_and bitwise_or bitwise_xor lcm gcd".split(),
        lambda a, b: None if "f" in kind(a) + kind(b) else joined(a, b),
    ),
    **dict.fromkeys("equal not_equal less less_equal greater greater_equal".split(), truth),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), truth),
}


def positive(x):
    """The same numbers, none of them 0."""
    return onp.where(x == 0, onp.ones_like(x), x)


def wanted(name, x, y, dtype):
    """What NumPy gives, computed in the dtype that results have, or a wider one."""
    with onp.errstate(all="ignore"):
        if BINARY[name] is truth or name.startswith("bitwise"):
            return getattr(onp, name)(x, y)
        t = "float64" if kind(dtype) == "f" else dtype if dtype != "bool" else "int8"
        x, y = x.astype(dtype).astype(t), y.astype(dtype).astype(t)
        if name == "ldexp":
            return onp.trunc(x * 2.0**y) if kind(dtype) in "iu" else x * 2.0**y
        if name == "power" and kind(t) in "iu":
            return x ** abs(y)
        return getattr(onp, name)(x, y)


@pytest.mark.both_ways
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ALL)
def test_smooth_functions(name, dtype):
    for shape in SHAPES:
        x = drawn(shape, dtype)
        x = abs(x) if kind(dtype) == "f" else x
        if name == "arccosh":
            x = x + onp.ones_like(x)
        elif name.startswith(("arcsin", "arccos", "arctanh")) and name != "arcsinh":
            x = x / onp.asarray(2.5, dtype) if kind(dtype) == "f" else x.astype(bool).astype(dtype)
            x = onp.zeros_like(x) if name == "arctanh" and kind(dtype) != "f" else x
        x = positive(x) if name.startswith("log") or name == "reciprocal" else x
        want = getattr(onp, name)(x.astype("float64"))
        result = "float32" if dtype == "bool" else dtype
        if name == "exp2" and dtype == "bool":
            result = "int64"  # a power with a number
        if kind(result) != "f":
            want = onp.trunc(want + onp.sign(want) * 1e-9)
        check(getattr(np, name)(np.array(x)), want, result, coarse=None if dtype != "float16" else "float16")


@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize("dtype", ALL)
def test_functions_that_keep_the_dtype(name, dtype):
    for shape in SHAPES:
        x = drawn(shape, dtype)
        want = onp.trunc if name == "fix" else getattr(onp, name)  # NumPy 2.5 warns of `fix`
        check(getattr(np, name)(np.array(x)), want(wide(x)), dtype)


@pytest.mark.parametrize("dtype", ALL)
def test_sign_square_negative_and_what_they_make_of_truth_values(dtype):
    x = drawn((2, 3), dtype)
    result, y = ("int64", x.astype("int64")) if dtype == "bool" else (dtype, x)
    for name in ("sign", "square", "negative"):
        check(getattr(np, name)(np.array(x)), getattr(onp, name)(wide(y)), result, coarse=dtype)
    check(-np.array(x), -y, result)
    check(np.positive(np.array(x)), x, dtype)
    assert np.sign(np.array([onp.nan])).item() == 0


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("dtype", ALL)
def test_tests(name, dtype):
    for shape in SHAPES:
        x = drawn(shape, dtype)
        if kind(dtype) == "f" and x.size > 3:
            x.flat[:4] = [onp.inf, -onp.inf, onp.nan, 0]
        want = getattr(onp, name)(x.astype("float64") if name in ("isneginf", "isposinf") else x)
        check(getattr(np, name)(np.array(x)), want, "bool")


def test_rounding_to_decimals():
    for dtype in ALL:
        x = drawn((3, 4), dtype) * onp.asarray(3, dtype) if dtype != "bool" else drawn((3, 4), dtype)
        for name in ("around", "round", "round_"):
            for d in (0, 1, -1) if dtype != "bool" else (0, 1):
                check(getattr(np, name)(np.array(x), d), onp.round(wide(x) * 1, d), dtype, coarse="float16")
    assert np.around(np.array([0.5, 1.5, 2.5])).asnumpy().tolist() == [0, 2, 2]
    assert np.around(np.array([15, 25, -35], dtype="int32"), -1).asnumpy().tolist() == [20, 20, -40]
    assert round(np.array([1.25]), 1).item() == onp.float32(1.2) and round(np.array([1.5])).item() == 2
    assert np.rint(np.array([-1.5, -0.5, 0.5, 1.5])).asnumpy().tolist() == [-2, -1, 0, 1]  # as MXNet's
    assert np.around(1.25, 1) == 1.2 and np.rint(2.5) == 2


def test_nan_to_num():
    x = onp.array([onp.nan, onp.inf, -onp.inf, 1.5])
    for dtype in FLOATS:
        check(np.nan_to_num(np.array(x.astype(dtype))), onp.nan_to_num(x.astype(dtype)), dtype)
        got = np.nan_to_num(np.array(x.astype(dtype)), nan=2, posinf=3.5, neginf=-4)
        check(got, onp.array([2, 3.5, -4, 1.5]), dtype)
    a = np.array(x)
    assert np.nan_to_num(a, copy=False, posinf=0, neginf=0) is a and a.asnumpy().tolist() == [0, 0, 0, 1.5]
    assert np.nan_to_num(onp.inf, posinf=1.0) == 1 and np.nan_to_num(np.array([True], dtype="bool")).dtype == onp.bool_
    b = np.array([1.0, onp.inf, onp.nan])
    b.attach_grad()
    with autograd.record():
        y = np.nan_to_num(b) * 2
    y.backward()
    assert b.grad.asnumpy().tolist() == [2, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_clip(dtype):
    x = drawn((3, 4), dtype)
    t = "int64" if dtype == "bool" else dtype
    for low, high in ((1, 2), (None, 1), (1, None), (2, 1)):
        check(np.clip(np.array(x), low, high), onp.clip(x.astype(t), low, high), t)
    lows = drawn((4,), "float32", 1)
    check(
        np.clip(np.array(x), np.array(lows), 1),
        onp.clip(x.astype(joined(dtype, "float32")), lows, 1),
        joined(t, "float32"),
    )
    with pytest.raises(ValueError, match="np.clip: one of a_min and a_max must be given"):
        np.clip(np.array(x), None, None)
    assert np.clip(3, 0, 2) == 2


@pytest.mark.both_ways
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("first", ALL)
def test_two_arrays(name, first):
    for second in ALL:
        result = BINARY[name](first, second)
        for i, (s, t) in enumerate(PAIRS):
            x, y = drawn(s, first, i), drawn(t, second, i + 7)
            if name in ("power", "true_divide", "divide", "mod", "remainder", "floor_divide", "fmod", "ldexp"):
                y = positive(abs(y) if kind(second) == "f" else y)
            if name == "power":
                x = abs(x) if kind(first) == "f" else x
            a, b = np.array(x), np.array(y)
            if result is None:
                with pytest.raises(TypeError, match=f"_npi_{name}: .*(bool|whole numbers)"):
                    getattr(np, name)(a, b)
                continue
            want = wanted(name, x, y, result)
            coarse = "float16" if "float16" in (first, second, result) else None
            if name in ("floor_divide", "mod", "remainder", "fmod") and coarse:
                continue  # a last bit decides
            check(getattr(np, name)(a, b), want, result, coarse=coarse or ("float32" if kind(result) == "f" else None))


def test_division_of_whole_numbers_by_zero():
    x, zero = np.array([1, 0, -3], dtype="int32"), np.array([0, 0, 0], dtype="int32")
    for name in ("mod", "fmod", "floor_divide"):
        assert getattr(np, name)(x, zero).asnumpy().tolist() == [0, 0, 0]
        assert getattr(np, name)(x, 0).asnumpy().tolist() == [0, 0, 0]
    assert np.true_divide(x, zero).asnumpy().tolist()[::2] == [onp.inf, -onp.inf]
    assert np.mod(np.array([1.5]), 0).item() == 0  # as MXNet's; NumPy has a NaN
    assert onp.isnan(np.fmod(np.array([1.5]), 0).item()) and np.floor_divide(np.array([1.5]), 0).item() == onp.inf


NUMBERS = [2, 3.0, 1.5, True, onp.float64(2), onp.int32(3)]
WITH_NUMBERS = [n for n in BINARY if n not in ("lcm", "gcd", "bitwise_and", "bitwise_or", "bitwise_xor")]


@pytest.mark.both_ways
@pytest.mark.parametrize("name", WITH_NUMBERS)
@pytest.mark.parametrize("dtype", ALL)
def test_array_and_number(name, dtype):
    x = positive(abs(drawn((2, 3), dtype)) if kind(dtype) == "f" else drawn((2, 3), dtype))
    divides = name in ("true_divide", "divide")
    for s in NUMBERS:
        if name in ("mod", "remainder", "fmod", "floor_divide") and dtype == "float16":
            continue
        if kind(dtype) == "f":
            result, number = dtype, onp.asarray(s, dtype)
        elif divides:
            result, number = "float32", onp.asarray(s, "float64")
        else:  # a number is cast to the dtype of whole numbers, of which truth values are int64
            result = "int64" if dtype == "bool" else dtype
            number = onp.asarray(s).astype(result)
        if BINARY[name] is truth:
            number, result = onp.asarray(s), "bool"
        for a, b, p, q in ((np.array(x), s, x, number), (s, np.array(x), number, x)):
            t = result if BINARY[name] is not truth else "float64"
            with onp.errstate(all="ignore"):
                if BINARY[name] is truth:
                    want = getattr(onp, name)(p.astype("float64"), q.astype("float64"))
                elif kind(t) == "f":
                    want = wanted(name, p.astype("float64"), q.astype("float64"), t)
                elif name in ("hypot", "arctan2"):
                    want = onp.trunc(getattr(onp, name)(p.astype("float64"), q.astype("float64")))
                else:
                    want = wanted(name, p, q, t)
            check(getattr(np, name)(a, b), want, result, coarse="float16" if dtype == "float16" else None)


@pytest.mark.parametrize("name", "lcm gcd bitwise_and bitwise_or bitwise_xor".split())
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "bool"])
def test_whole_numbers_and_a_number(name, dtype):
    x = drawn((2, 3), dtype)
    t = "int64" if dtype == "bool" and name in ("lcm", "gcd") else dtype
    for s in (2, 6.7, True):
        want = getattr(onp, name)(x.astype(t), onp.asarray(s).astype(t))
        check(getattr(np, name)(np.array(x), s), want, t)
        check(getattr(np, name)(s, np.array(x)), want, t)
    with pytest.raises(TypeError, match=f"_npi_{name}_scalar: whole numbers or truth values are needed, got float32"):
        getattr(np, name)(np.array([1.0]), 2)


@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "int64", "uint64"])
def test_shifts(name, dtype):
    x, by = drawn((2, 3), dtype), drawn((3,), dtype, 1) % 3
    f = getattr(np, name)
    check(f(np.array(x), np.array(by)), getattr(onp, name)(x, by), dtype)
    check(f(np.array(x), 2), getattr(onp, name)(x, onp.asarray(2, dtype)), dtype)
    check(f(5, np.array(by)), getattr(onp, name)(onp.asarray(5, dtype), by), dtype)
    assert getattr(np, f"bitwise_{name}")(np.array(x), 2).tolist() == f(np.array(x), 2).tolist()
    net = getattr(symbols, name)(symbol("x"), symbol("y"))
    (got,) = net.bind(mx.cpu(), {"x": np.array(x), "y": np.array(by)}).forward()
    check(got.as_np_ndarray(), getattr(onp, name)(x, by), dtype)
    y = np.array(x)
    y <<= 1
    y >>= np.array(by)
    check(y, (x << onp.asarray(1, dtype)) >> by, dtype)
    assert (1 << np.array(by)).tolist() == (onp.asarray(1, dtype) << by).tolist()
    with pytest.raises(TypeError, match="whole numbers"):
        f(np.array([1.0]), np.array([1]))


def test_products_are_written_in_place():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    same = x
    x @= np.array([[0.0, 1.0], [1.0, 0.0]])
    assert same is x and x.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    with pytest.raises(ValueError, match=r"\(2,\)"):
        x @= np.array([1.0, 1.0])


def test_comparisons_take_numbers_as_they_are():
    u, i = np.array([0, 1, 2], dtype="uint8"), np.array([1, 2, 3], dtype="int32")
    b = np.array([True, False], dtype="bool")
    assert (u > -1).asnumpy().all() and not (u == 257).asnumpy().any() and (u < 1000).asnumpy().all()
    assert (i < 2.5).asnumpy().tolist() == [True, True, False] and not (i == 2.5).asnumpy().any()
    assert (b == 2).asnumpy().tolist() == [False, False] and (b < 1).asnumpy().tolist() == [False, True]
    assert (i < float("inf")).asnumpy().all() and not (i == float("nan")).asnumpy().any()
    big = np.array([2**53 + 1], dtype="int64")
    assert not (big == np.array([2**53], dtype="int64")).item()
    assert not (np.array([16777217], dtype="int32") == np.array([16777216.0])).item()


def test_special_numbers():
    x = [-onp.inf, -2.5, -1.0, -0.0, 0.0, 0.5, 3.0, onp.inf, onp.nan]
    p, q = (v.ravel().astype("float32") for v in onp.meshgrid(x, x))
    for (
        name
    ) in "add subtract multiply true_divide power maximum minimum hypot arctan2 fmod fmax fmin floor_divide".split():
        with onp.errstate(all="ignore"):
            want = getattr(onp, name)(p, q)
        check(getattr(np, name)(np.array(p), np.array(q)), want, "float32")
    known = ~onp.isnan(q)
    got = np.copysign(np.array(p), np.array(q)).asnumpy()[known]
    onp.testing.assert_array_equal(onp.signbit(got), onp.signbit(onp.copysign(p, q)[known]))
    assert not onp.signbit(np.copysign(np.array([1.0]), onp.nan).item())


# -- Python's operators ---------------------------------------------------------------------------------------------

OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
WHOLE = ("and_", "or_", "xor")


@pytest.mark.parametrize("name", OPERATORS)
def test_python_operators(name):
    fn, named = getattr(operator, name), getattr(np, OPERATORS[name])
    for dtype in ("int32",) if name in WHOLE else ("float32", "int32"):
        x, y = np.array([[1, 2], [3, 4]], dtype=dtype), np.array([2, 3], dtype=dtype)
        for a, b in ((x, y), (x, x), (x, 2), (2, x), (x, onp.float32(2)), (onp.int64(2), x), (y[0], y), (y[0], 3)):
            for _ in range(3):  # the short way is known after the first call
                got, want = fn(a, b), named(a, b)
                assert type(got) is np.ndarray and got.dtype == want.dtype and got.shape == want.shape
                onp.testing.assert_array_equal(got.asnumpy(), want.asnumpy())


@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in ("eq", "ne", "lt", "le", "gt", "ge")])
def test_operators_that_assign(name):
    fn = getattr(operator, "i" + name.rstrip("_"))
    dtype = "int32" if name in WHOLE else "float32"
    for other in (2, np.array([1, 3], dtype=dtype)):
        x = np.array([4, 6], dtype=dtype)
        want, view = getattr(operator, name)(x, other).asnumpy(), x[:1]
        got = fn(x, other)
        assert got.asnumpy().tolist() == want.tolist()
        if name == "pow":  # as MXNet has it
            assert x.asnumpy().tolist() == [4, 6] and view.item() == 4
        else:
            assert got is x and view.item() == want[0]


def test_operators_that_assign_cast_within_a_kind():
    h, f = np.array([1, 2], dtype="float16"), np.array([0.5, 1.5])
    h += f
    f += np.array([1, 2], dtype="float64")
    f *= np.array([2, 2], dtype="int32")
    assert h.dtype == onp.float16 and h.asnumpy().tolist() == [1.5, 3.5]
    assert f.dtype == onp.float32 and f.asnumpy().tolist() == [3, 7]
    i = np.array([1, 2], dtype="int32")
    with pytest.raises(TypeError, match="_npi_add: a result of float32 is not written to an array of int32"):
        i += f
    with pytest.raises(TypeError, match="out is int32, the result float32"):
        i /= 2
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x * 2
        with pytest.raises(mx.MXNetError, match="_npi_add"):
            y += h


def test_other_methods_of_python():
    x, y = np.array([[1.5, -2.5]]), np.array([[1.0], [2.0]])
    assert (x @ y).asnumpy().tolist() == [[-3.5]] and (+x).asnumpy().tolist() == [[1.5, -2.5]] and +x is not x
    assert abs(x).asnumpy().tolist() == [[1.5, 2.5]] and [v.asnumpy().tolist() for v in divmod(x, 1)] == [
        [[1, -3]],
        [[0.5, 0.5]],
    ]
    assert [v.item() for v in divmod(7, np.array([2.0]))] == [3, 1]
    b = np.array([True, False], dtype="bool")
    assert (~b).asnumpy().tolist() == [False, True] and (-b).asnumpy().tolist() == [-1, 0]
    assert (~np.array([5], dtype="int32")).item() == -6 and (b & True).asnumpy().tolist() == [True, False]
    assert (b | ~b).asnumpy().all() and (x == None) is False and (x != "a") is True  # noqa: E711


def test_short_ways():
    x = np.array([[1.0, 2.0]])
    for fn, op in ((operator.add, "_npi_add"), (operator.gt, "_npi_greater"), (operator.truediv, "_npi_true_divide")):
        fn(x, x), fn(x, 2)
        assert SHORT[op][mx.cpu(), x._data.dtype] is not None
        assert SHORT[op + "_scalar"][mx.cpu(), x._data.dtype] is not None or fn is operator.truediv
    i = np.array([1, 2], dtype="int32")
    i / i, i > i
    assert SHORT["_npi_true_divide"][mx.cpu(), i._data.dtype] is None
    assert (i / i).dtype == onp.float32 and (i > i).dtype == onp.bool_


def test_numbers_alone_give_numpys_results():
    assert np.add(1, 2) == 3 and np.exp(0.0) == 1 and np.equal(2, 2) and np.divmod(7, 2) == (3, 1)
    assert np.hypot(3, 4.0) == 5 and np.float_power(2, 3) == 8 and np.exp2(3) == 8 and np.positive(-1) == -1


def test_float_power_and_divmod():
    x = drawn((2, 3), "int32")
    check(np.float_power(np.array(x), 0.5), x.astype("float64") ** 0.5, "float64")
    check(np.float_power(2, np.array(x)), 2.0**x, "float64")
    for got, want in zip(np.divmod(np.array(x), 3), onp.divmod(x, 3)):
        check(got, want, "int32")


def test_out():
    x, out = np.array([1.0, 4.0]), np.array([0.0, 0.0])
    assert np.sqrt(x, out=out) is out and out.asnumpy().tolist() == [1, 2]
    assert np.add(x, x, out) is out and out.asnumpy().tolist() == [2, 8]
    assert np.maximum(x, 3, out=(out,))[0] is out and out.asnumpy().tolist() == [3, 4]
    flags = np.array([False, False], dtype="bool")
    assert np.equal(x, 4, out=flags) is flags and flags.asnumpy().tolist() == [False, True]
    assert np.clip(x, 2, np.array([3.0, 3.0]), out=out) is out and out.asnumpy().tolist() == [2, 3]
    for call in (lambda: np.equal(x, x, out=out), lambda: np.add(x, x, out=flags)):
        with pytest.raises(TypeError, match="out is .*, the result"):
            call()
    with pytest.raises(ValueError, match=r"out has shape \(2,\), the result \(1, 2\)"):
        np.exp(np.array([[1.0, 2.0]]), out=out)
    with pytest.raises(TypeError, match="out must be an array of mx.np, got list"):
        np.exp(x, out=[1.0])


def test_errors():
    x, b = np.array([1.0, 2.0]), np.array([True, False], dtype="bool")
    for call, told in (
        (lambda: np.exp([1.0]), "np.exp takes arrays of mx.np and numbers, got list; np.array makes one"),
        (lambda: np.exp(mx.nd.ones(2)), "np.exp takes .*as_np_ndarray"),
        (lambda: np.add(x, [1.0]), "np.add: an array of mx.np cannot be combined with a list"),
        (lambda: np.add(x, mx.nd.ones(2)), "add: got mx.np.ndarray and mx.nd.NDArray.*as_np_ndarray"),
        (lambda: x + mx.nd.ones(2), "as_np_ndarray"),
        (lambda: mx.nd.ones(2) + x, "as_np_ndarray"),
        (lambda: x + [1.0], r"an array cannot be combined with list; use an array \(mx.np.array"),
        (lambda: x + None, "unsupported operand"),
        (lambda: x < "a", "not supported between"),
        (lambda: x @ 2, "unsupported operand"),
        (lambda: divmod(x, "a"), "unsupported operand"),
        (lambda: x + 1j, "parameter 'scalar' must be float"),
        (lambda: b - b, "truth values cannot be subtracted; use \\^"),
        (lambda: ~x, "whole numbers or truth values are needed, got float32; x.astype"),
        (lambda: x & x, "_npi_bitwise_and: whole numbers"),
        (lambda: np.exp(x, foo=1), "np.exp has no argument 'foo'"),
        (lambda: np.equal(x, x, where=True), "where"),
    ):
        with pytest.raises(TypeError, match=told):
            call()
    for options in ({"where": b}, {"casting": "safe"}, {"order": "C"}, {"dtype": "float64"}, {"subok": False}):
        for call in (np.exp, np.around, np.positive, np.exp2, np.nan_to_num, lambda x, **k: np.add(x, x, **k)):
            with pytest.raises(NotImplementedError, match=f"{next(iter(options))}=.* is not supported"):
                call(x, **options)
    assert np.exp(x, where=True, casting="same_kind", order="K", dtype=None, subok=True).shape == (2,)
    with pytest.raises(ValueError, match=r"_npi_add: \(2,\) and \(3,\) cannot be broadcast"):
        np.add(x, np.array([1.0, 2.0, 3.0]))


# -- gradients ------------------------------------------------------------------------------------------------------


def of_np(fn):
    return lambda *xs: fn(*[x.as_np_ndarray() for x in xs])


_X = onp.random.RandomState(3).uniform(0.3, 0.9, (2, 3))
_Y = onp.random.RandomState(4).uniform(1.1, 1.9, (3,))


@pytest.mark.parametrize("name", [*SMOOTH, "abs", "square", "negative", "positive"])
def test_gradients_of_one(name):
    check_grads(of_np(getattr(np, name)), [_X + 1 if name == "arccosh" else _X], order=(1, 2))


SLOPES = [n for n in BINARY if BINARY[n] is not truth and BINARY[n]("float32", "float32") and n != "floor_divide"]


@pytest.mark.parametrize("name", SLOPES)
def test_gradients_of_two(name):
    fn = getattr(np, name)
    order = 1 if name in ("maximum", "minimum", "fmax", "fmin", "copysign", "mod", "remainder", "fmod") else (1, 2)
    check_grads(of_np(fn), [_X, _Y], order=order)
    check_grads(of_np(fn), [_X, _X[::-1] + 0.05], order=order)
    check_grads(of_np(lambda x: fn(x, 1.5)), [_X], order=order)
    check_grads(of_np(lambda x: fn(1.5, x)), [_X], order=order)


@pytest.mark.parametrize("name", "exp rint sign floor around isnan logical_not floor_divide equal bitwise_and".split())
def test_gradients_of_steps_are_zero(name):
    x = np.array([1.0, 2.0]) if name != "bitwise_and" else np.array([1, 2], dtype="int32")
    x.attach_grad()
    with autograd.record():
        fn = getattr(np, name)
        y = fn(x, x) if name in BINARY else fn(x)
    y.backward()
    assert x.grad.asnumpy().any() == (name == "exp")


@pytest.mark.parametrize("name", [n for n in BINARY if BINARY[n] in (joined, floating, measured)])
def test_gradients_have_the_dtypes_of_their_inputs(name):
    fn = getattr(np, name)
    for first, second in (("float16", "float32"), ("float32", "float64"), ("float64", "int32"), ("float16", "int64")):
        x, y = onp.asarray([[1.5], [0.75]]).astype(first), onp.asarray([2.0, 1.0, 3.0]).astype(second)
        a, b = np.array(x), np.array(y)
        p, q = np.array(x.astype("float64")), np.array(y.astype("float64"))
        for v in (a, b, p, q):
            v.attach_grad()
        with autograd.record():
            got, want = fn(a, b), fn(p, q)
        got.backward()
        want.backward()
        for v, w in ((a, p), (b, q)):
            assert v.grad.dtype == v.dtype and type(v.grad) is np.ndarray and v.grad.shape == v.shape
            if v.asnumpy().dtype.kind == "f":
                onp.testing.assert_allclose(v.grad.asnumpy(), w.grad.asnumpy(), rtol=1e-2)


def test_gradient_of_a_quotient_of_whole_numbers_and_a_number():
    x = np.array([8, 2], dtype="int32")
    x.attach_grad()
    for fn, want in ((lambda: x / 0.25, [4, 4]), (lambda: 64 / x, [-1, -16])):
        with autograd.record():
            y = fn()
        y.backward()
        assert y.dtype == onp.float32 and x.grad.dtype == onp.int32 and x.grad.asnumpy().tolist() == want


def test_gradients_behind_the_short_way_can_be_differentiated_again():
    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x.attach_grad()
    for _ in range(2):  # the second time by the short way
        with autograd.record():
            (g,) = autograd.grad((x * x * w + x).sum(), [x], create_graph=True)
            y = (g * g).sum()
        y.backward()
        onp.testing.assert_allclose(x.grad.asnumpy(), [2 * (6 + 1) * 6, 2 * (16 + 1) * 8])


# -- graphs ---------------------------------------------------------------------------------------------------------


def symbol(name):
    return mx.sym.var(name).as_np_ndarray()


@pytest.mark.parametrize("name", [*SMOOTH, *ROUNDING, "sign", "rint", "isnan", "around", *BINARY])
def test_graphs_give_the_same(name):
    whole = name in ("lcm", "gcd", "bitwise_and", "bitwise_or", "bitwise_xor")
    x = onp.asarray([[1.25, 1.5, 1.75]]).astype("int32" if whole else "float32")
    x = x / 2 if name.startswith(("arcsin", "arccos", "arctanh")) and name != "arccosh" else x
    y = onp.asarray([[1.5], [2.5]]).astype("int64" if whole else "float64")
    two = name in BINARY
    given = {"x": np.array(x), **({"y": np.array(y)} if two else {})}
    net = getattr(symbols, name)(*map(symbol, given))
    exe = net.bind(mx.cpu(), given, {k: np.zeros_like(v) for k, v in given.items()})
    (got,) = exe.forward(is_train=True)
    for v in given.values():
        v.attach_grad()
    with autograd.record():
        want = getattr(np, name)(*given.values())
    assert got.dtype == want.dtype and got.shape == want.shape
    onp.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6)
    if want.asnumpy().dtype.kind == "f" and name != "floor_divide":
        head = np.ones_like(want)
        exe.backward(head)
        want.backward(head)
        for k, v in given.items():
            assert exe.grad_dict[k].dtype == v.grad.dtype
            onp.testing.assert_allclose(exe.grad_dict[k].asnumpy(), v.grad.asnumpy(), rtol=1e-5, atol=1e-6)


def test_operators_of_symbols():
    x, y = symbol("x"), symbol("y")
    for made, op, attrs in (
        (x + y, "_npi_add", {}),
        (x + 1, "_npi_add_scalar", {"scalar": "1"}),
        (1 - x, "_npi_rsubtract_scalar", {}),
        (2 / x, "_npi_rtrue_divide_scalar", {}),
        (x**y, "_npi_power", {}),
        (x // 2, "_npi_floor_divide_scalar", {}),
        (x > y, "_npi_greater", {}),
        (operator.gt(2, x), "_npi_less_scalar", {}),
        (x & y, "_npi_bitwise_and", {}),
        (~x, "_npi_bitwise_not", {}),
        (-x, "_npi_negative", {}),
        (abs(x), "_npi_absolute", {}),
        (x @ y, "_npi_matmul", {}),
        (round(x, 2), "_npi_around", {"decimals": "2"}),
        (symbols.nan_to_num(x), "_npi_nan_to_num", {}),
        (symbols.deg2rad(x), "_npi_radians", {}),
        (symbols.clip(x, 0, None), "_npi_clip", {"a_min": "0", "a_max": "inf"}),
    ):
        assert type(made) is type(x)
        node = made.tojson()
        assert f'"op": "{op}"' in node, node
        for k, v in attrs.items():
            assert f'"{k}": "{v}"' in node or f'"{k}": "{float(v)}"' in node, node
    with pytest.raises(TypeError, match="a symbol cannot be combined"):
        symbols.add(x, [1.0])


def test_kernels_of_nd_serve_floats_of_one_dtype():
    def kernel(name, *dtypes):
        op = tables.ops.get(name)
        return tables.kernels.best(op, mx.cpu().device, op.plain, [Spec((1 << 15,), onp.dtype(t)) for t in dtypes])

    assert kernel("_npi_exp", "float32") is kernel("exp", "float32") is not None
    assert kernel("_npi_hypot", "float32", "float32") is kernel("broadcast_hypot", "float32", "float32") is not None
    assert kernel("_npi_hypot", "float32", "float64") is None and kernel("_npi_exp", "int32") is None


STEPS = {
    "one": "exp tanh abs negative floor sqrt around rint sign square isnan logical_not reciprocal".split(),
    "two": "add subtract multiply true_divide maximum minimum power hypot copysign fmax fmin fmod floor_divide less "
    "equal greater_equal logical_and arctan2 ldexp mod".split(),
    "number": "add subtract multiply true_divide maximum minimum greater less_equal power mod fmod copysign".split(),
}


class Chain(gluon.HybridBlock):
    """Steps, each a function of earlier values."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def hybrid_forward(self, F, x, y, z, w):
        values = [x, y, z, w]
        for how, name, i, j, s in self.steps:
            fn, a, b = getattr(F.np, name), values[i % len(values)], values[j % len(values)]
            values.append(fn(a) if how == "one" else fn(a, b) if how == "two" else fn(s, a) if j % 2 else fn(a, s))
        return values[-1] if len(values) == 5 else values[4:]


@st.composite
def chains(draw):
    found = []
    for _ in range(draw(st.integers(2, 7))):
        how = draw(st.sampled_from([*STEPS]))
        found.append(
            (
                how,
                draw(st.sampled_from(STEPS[how])),
                draw(st.integers(0, 9)),
                draw(st.integers(0, 9)),
                draw(st.sampled_from([0.5, 2, 3.0])),
            )
        )
    return found


@pytest.mark.filterwarnings("ignore:.*HybridBlock is not used")
@settings(max_examples=40, deadline=None)
@given(
    chains(),
    st.lists(st.sampled_from(["float32", "float64", "float16", "int32", "uint8", "bool"]), min_size=4, max_size=4),
    st.integers(0, 99),
)
def test_hybridised_chains_over_any_dtypes_are_eager_ones(steps, dtypes, seed):
    shapes = [(5, 40), (5, 40), (40,), (5, 1)]
    given_ = [
        np.array(abs(drawn(s, t, seed + i)) if kind(t) == "f" else drawn(s, t, seed + i))
        for i, (s, t) in enumerate(zip(shapes, dtypes))
    ]
    with mx.util.np_shape(), mx.util.np_array():
        compare_chain(Chain(steps), given_, steps, dtypes)


def compare_chain(net, given_, steps, dtypes):
    try:
        with onp.errstate(all="ignore"):
            want = net(*given_)
    except TypeError as e:
        assert "truth values" in str(e)
        return
    net.hybridize()
    got = net(*given_)
    for g, w in zip(
        got if isinstance(got, (list, tuple)) else [got], want if isinstance(want, (list, tuple)) else [want]
    ):
        assert g.dtype == w.dtype and g.shape == w.shape
        p, q = g.asnumpy(), w.asnumpy()
        if q.dtype.kind == "f":
            p, q = p.astype("float64"), q.astype("float64")
            # Chains round less often; floors and comparisons of what differs in the last bit may fall elsewhere.
            tol = 4e-3 if w.dtype == onp.float16 or "float16" in dtypes else 1e-4
            off = ~onp.isclose(p, q, rtol=tol, atol=tol, equal_nan=True)
        else:
            off = p != q
        assert off.mean() <= 0.1, (steps, dtypes, p[off][:3], q[off][:3])


def test_sigmoid_of_truth_values_has_values_between():
    y = npx.sigmoid(np.array([True, False], dtype=bool))
    assert y.dtype == onp.float32
    onp.testing.assert_allclose(y.asnumpy(), 1 / (1 + onp.exp([-1.0, 0.0])), rtol=1e-6)


@pytest.mark.both_ways
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_common_divisors_are_never_negative_where_there_is_such_a_number(dtype):
    least = onp.iinfo(dtype).min
    a, b = (onp.array(x, dtype) for x in ([-2, least, 12, least + 1], [least, -4, least, least]))
    onp.testing.assert_array_equal(np.gcd(np.array(a, dtype=dtype), np.array(b, dtype=dtype)).asnumpy(), onp.gcd(a, b))
