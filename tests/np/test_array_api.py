"""The array API standard, function by function, against its reference library."""

import inspect
import itertools
import math
import warnings

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, np, npx

from .standard import (
    DTYPES,
    FLOATS,
    REFUSALS,
    SPECIAL,
    WHOLE,
    call,
    check_agreement,
    check_same,
    drawn,
    dtype_,
    strict,
    xp,
)

NO_COMPLEX = {"complex64", "complex128"}
#: The reference library's own, and the extension of Fourier transforms, which are complex.
NOT_OURS = {"fft", "Device", "ArrayAPIStrictFlags"} | {n for n in strict.__all__ if n.endswith("strict_flags")}
NAMES = sorted(set(strict.__all__) - NOT_OURS - NO_COMPLEX - {"__version__"})
FUNCTIONS = [n for n in NAMES if inspect.isfunction(getattr(strict, n))]
FUNCTIONS += [f"linalg.{n}" for n in strict.linalg.__all__]
UNARY = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
""".split()
BINARY = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal pow remainder subtract
""".split()
#: (0-d, zero-size, broadcast) shapes of two arrays.
SHAPES = [((), ()), ((0,), ()), ((2, 0), (1,)), ((2, 1, 3), (4, 1)), ((3,), ())]


@pytest.fixture(autouse=True)
def numpys_shapes(numpy_mode):
    """Indices give arrays without dimensions."""


@pytest.fixture(autouse=True, scope="module")
def version():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are later versions
        strict.set_array_api_strict_flags(api_version="2024.12")
    yield
    strict.reset_array_api_strict_flags()


def _parameters(fn):
    for p in inspect.signature(fn).parameters.values():
        default = None if type(p.default).__name__ == "Undef" else p.default
        yield p.name, p.kind, default


def _of(space, name):
    for part in name.split("."):
        space = getattr(space, part)
    return space


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures(name):
    ours, theirs = list(_parameters(_of(xp, name))), list(_parameters(_of(strict, name)))
    if name == "expand_dims":  # the standard has a default, the reference library none
        assert ours.pop() == ("axis", inspect.Parameter.POSITIONAL_OR_KEYWORD, 0)
        theirs.pop()
    assert ours == theirs
    assert inspect.getdoc(_of(xp, name))


def test_all_names_are_there():
    assert not set(NAMES) - set(dir(xp)) and set(NAMES) - {"bool"} <= set(xp.__all__)
    assert xp.__array_api_version__ == "2024.12"
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xp.nan)
    for name in (*NO_COMPLEX, "fft"):
        with pytest.raises(AttributeError, match="no complex numbers"):
            getattr(xp, name)
    with pytest.raises(AttributeError, match="no 'sine'"):
        xp.sine  # noqa: B018


METHODS = [n for n in dir(strict.asarray(1)) if n.startswith("__") and callable(getattr(strict.asarray(1), n))]
OF_OBJECTS = set(dir(object)) | {"__buffer__", "__array__", "__annotations__", "__iter__"}


@pytest.mark.parametrize("name", sorted(set(METHODS) - OF_OBJECTS))
def test_methods(name):
    assert callable(getattr(np.ndarray, name))


def test_attributes():
    x = xp.zeros((2, 3), dtype=xp.int8)
    assert x.dtype == xp.int8 and x.shape == (2, 3) and x.ndim == 2 and x.size == 6
    assert x.T.shape == x.mT.shape == (3, 2) and xp.zeros((4, 2, 3)).mT.shape == (4, 3, 2)
    assert x.device == mx.cpu() == xp.__array_namespace_info__().default_device()
    assert x.to_device(x.device) is x and x.__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError, match="mT"):
        xp.zeros(3).mT  # noqa: B018
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(x.device, stream=1)


# -- dtypes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNARY)
def test_elements(name):
    for dtype in DTYPES:
        for shape in ((), (0, 2), (3, 4)):
            check_agreement(name, drawn(dtype, shape))
        if dtype in FLOATS and name != "signbit":
            check_agreement(name, onp.asarray(SPECIAL, dtype))
        elif dtype in FLOATS:  # the sign of a NaN is not seen
            check_agreement(name, onp.asarray(SPECIAL[:-1], dtype))


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_dtypes(name):
    taken = [check_agreement(name, drawn(a, (3,)), drawn(b, (3,), 1)) for a, b in itertools.product(DTYPES, DTYPES)]
    assert any(t is not None for t in taken) and any(t is None for t in taken)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_shapes(name):
    dtype = "bool" if "logical" in name else "int32" if "bitwise" in name else "float32"
    for a, b in SHAPES:
        assert check_agreement(name, drawn(dtype, a), drawn(dtype, b, 1)) is not None
        check_agreement(name, drawn(dtype, b), drawn(dtype, a, 1))
    assert check_agreement(name, drawn(dtype, (2,)), drawn(dtype, (3,))) is None


@pytest.mark.parametrize("name", [n for n in BINARY if "logical" not in n and "bitwise" not in n])
def test_pairs_of_special_values(name):
    values = SPECIAL[:-1] if name == "copysign" else SPECIAL  # the sign of a NaN is not seen
    for dtype in FLOATS:
        x = onp.asarray(values, dtype)
        check_agreement(name, x[:, None], x)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_with_numbers(name):
    for dtype in DTYPES:
        x = drawn(dtype, (3,))
        for number in (True, 2, 1.5):
            check_agreement(name, x, number)
            check_agreement(name, number, x)
    assert call(xp, name, 1, 2) is None and call(xp, name, drawn("float32", ()), 1j) is None


def test_numbers_keep_their_value():
    x = xp.asarray([1, 2], dtype=xp.int64)
    assert xp.add(x, 2**53).tolist() == [2**53 + 1, 2**53 + 2]
    with pytest.raises(OverflowError, match="int8 does not hold 300"):
        xp.add(xp.asarray([1], dtype=xp.int8), 300)
    with pytest.raises(TypeError, match="takes no float"):
        xp.multiply(x, 0.5)
    with pytest.raises(TypeError, match="no complex numbers"):
        xp.multiply(xp.ones(1), 1j)


def test_kinds_do_not_mix():
    with pytest.raises(TypeError, match="add: int64, float32 are not promoted to one dtype: whole numbers and floats"):
        xp.add(xp.asarray([1]), xp.asarray([1.0]))
    with pytest.raises(TypeError, match="add: int64, uint64 are not promoted"):
        xp.add(xp.asarray([1]), xp.asarray([1], dtype=xp.uint64))
    with pytest.raises(TypeError, match="exp: the dtype must be floating-point, got int64"):
        xp.exp(xp.asarray([1]))
    with pytest.raises(TypeError, match="exp: an array of mx.np is needed, got list"):
        xp.exp([1.0])
    with pytest.raises(TypeError, match="got NDArray"):
        xp.exp(mx.nd.ones(1))


def test_half_precision_is_a_float_beside_the_standard():
    x = xp.asarray([1.0], dtype=xp.float16)
    assert xp.add(x, xp.ones(1)).dtype == xp.float32 and xp.exp(x).dtype == xp.float16
    assert xp.isdtype(x.dtype, "real floating") and xp.finfo(x).bits == 16


def test_pairs_of_dtypes_have_a_type():
    for a, b in itertools.product(DTYPES, DTYPES):
        check_agreement("result_type", dtype_(a), dtype_(b))
        check_agreement("result_type", drawn(a, (2,)), dtype_(b))
        check_agreement("can_cast", dtype_(a), dtype_(b))
        check_agreement("can_cast", drawn(a, ()), dtype_(b))
    for a in DTYPES:
        for number in (True, 3, 2.5):
            check_agreement("result_type", dtype_(a), number)
    check_agreement("result_type")


def test_kinds_of_dtypes():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for a in DTYPES:
        for kind in (*kinds, ("bool", "integral"), (), *map(dtype_, DTYPES), (dtype_("int8"), "real floating")):
            assert check_agreement("isdtype", dtype_(a), kind) is not None
    assert xp.isdtype(xp.float32, onp.complex64) is False
    with pytest.raises(ValueError, match="'number'"):
        xp.isdtype(xp.int8, "number")


def test_limits_of_dtypes():
    for name in (*WHOLE, *FLOATS):
        limits = "finfo" if name in FLOATS else "iinfo"
        ours, theirs = (getattr(space, limits)(getattr(space, name)) for space in (xp, strict))
        for attribute in ("bits", "eps", "max", "min", "smallest_normal"):
            if hasattr(theirs, attribute):
                got, want = getattr(ours, attribute), getattr(theirs, attribute)
                assert type(got) is type(want) and got == want
        assert ours.dtype == getattr(xp, name)
    with pytest.raises(ValueError, match="finfo"):
        xp.finfo(xp.int8)
    with pytest.raises(ValueError, match="iinfo"):
        xp.iinfo(xp.float32)


def test_what_the_namespace_says_of_itself():
    info, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities().keys() == theirs.capabilities().keys()
    n = info.capabilities()["max dimensions"]
    assert xp.reshape(xp.ones(1), (1,) * n).ndim == n
    assert set(info.default_dtypes()) == {"real floating", "integral", "indexing"}
    assert info.default_dtypes()["real floating"] == xp.zeros(1).dtype == xp.float32
    assert info.default_dtypes()["integral"] == xp.asarray(1).dtype == xp.int64
    for kind in (None, "bool", "signed integer", "unsigned integer", "integral", "real floating", ("bool", "integral")):
        assert set(info.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind)) - NO_COMPLEX
    assert set(info.dtypes(kind="numeric")) == {*WHOLE, *FLOATS} and info.dtypes(kind="complex floating") == {}
    assert mx.cpu() in info.devices() and len(set(info.devices())) == len(info.devices())
    with pytest.raises(ValueError, match="'number'"):
        info.dtypes(kind="number")


def test_casts():
    for a, b in itertools.product(DTYPES, DTYPES):
        check_agreement("astype", drawn(a, (3,)), dtype_(b))
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32) is not x
    with pytest.raises(TypeError, match="no complex numbers"):
        xp.astype(x, onp.complex64)


# -- creation -------------------------------------------------------------------------------------------------------

_F32 = dtype_("float32")
CREATED = [
    ("arange", (5,), {}),
    ("arange", (2, 9, 3), {}),
    ("arange", (9, 2, -3), {}),
    ("arange", (2, 2), {}),
    ("arange", (5, 2), {}),
    ("arange", (0.0, 1.0, 0.25), {"dtype": _F32}),
    ("arange", (3,), {"dtype": _F32}),
    ("arange", (3,), {"dtype": dtype_("uint8")}),
    ("eye", (3,), {"dtype": _F32}),
    ("eye", (2, 4), {"k": 1, "dtype": dtype_("int32")}),
    ("eye", (4, 2), {"k": -1, "dtype": dtype_("bool")}),
    ("eye", (0,), {"dtype": _F32}),
    ("full", ((2, 0), 1), {}),
    ("full", ((), True), {}),
    ("full", (3, 7), {}),
    ("full", ((2,), 2**53 + 1), {}),
    ("full", ((2,), 1.5), {"dtype": _F32}),
    ("full", ((2,), 3), {"dtype": dtype_("uint64")}),
    ("full", ((2,), math.nan), {"dtype": dtype_("float64")}),
    ("linspace", (0, 1, 5), {"dtype": _F32}),
    ("linspace", (2.0, -1.0, 4), {"dtype": dtype_("float64"), "endpoint": False}),
    ("linspace", (0, 1, 0), {"dtype": _F32}),
    ("linspace", (3, 5, 1), {"dtype": _F32}),
    ("zeros", ((2, 3),), {"dtype": dtype_("int8")}),
    ("zeros", ((),), {"dtype": _F32}),
    ("zeros", (3,), {"dtype": dtype_("bool")}),
    ("ones", ((0, 2),), {"dtype": _F32}),
    ("ones", ((2,),), {"dtype": dtype_("uint16")}),
    ("asarray", (True,), {}),
    ("asarray", (3,), {}),
    ("asarray", ([[1, 2], [3, 4]],), {}),
    ("asarray", ([True, False],), {}),
    ("asarray", ([1, 2.5],), {"dtype": _F32}),
    ("asarray", ([True, 2],), {"dtype": dtype_("uint8")}),
    ("asarray", ([2**63 - 1],), {}),
    ("asarray", ([2**64 - 1],), {"dtype": dtype_("uint64")}),
    ("asarray", ([],), {"dtype": _F32}),
    ("asarray", ([[], []],), {"dtype": _F32}),
    ("asarray", ("text",), {}),
    ("asarray", ([[1], [1, 2]],), {}),
    ("asarray", ([300],), {"dtype": dtype_("uint8")}),
    ("zeros", ((-1,),), {}),
]


@pytest.mark.parametrize("case", range(len(CREATED)))
def test_creation(case):
    name, args, kwargs = CREATED[case]
    check_agreement(name, *args, **kwargs)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "full_like"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_creation_like(name, dtype):
    value = () if name != "full_like" else (True,) if dtype == "bool" else (3,)
    for shape in ((), (0, 2), (2, 3)):
        assert check_agreement(name, drawn(dtype, shape), *value) is not None
        assert check_agreement(name, drawn(dtype, shape), *value, dtype=dtype_("float64")) is not None
    assert xp.empty_like(xp.asarray(drawn(dtype, (2, 0)))).shape == (2, 0)


def test_defaults_are_those_of_numpy_mode():
    assert xp.asarray([1.5]).dtype == xp.zeros(2).dtype == xp.linspace(0, 1, 3).dtype == xp.float32
    assert xp.asarray([1]).dtype == xp.arange(3).dtype == xp.full(2, 3).dtype == xp.int64
    assert xp.asarray([True]).dtype == xp.full((), True).dtype == xp.bool
    assert xp.arange(3.0).dtype == xp.full(2, 3.0).dtype == xp.eye(2).dtype == xp.float32
    assert xp.empty(3).shape == (3,) and xp.full(2, xp.asarray(3)).tolist() == [3, 3]


def test_copies():
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x and xp.asarray(x, dtype=xp.float32) is x
    again = xp.asarray(x, copy=True)
    again[0] = 9
    assert x.tolist() == [1.0, 2.0]
    for call_ in (
        lambda: xp.asarray([1.0], copy=False),
        lambda: xp.asarray(onp.ones(2), copy=False),
        lambda: xp.asarray(x, dtype=xp.float64, copy=False),
    ):
        with pytest.raises(ValueError, match="copy=False"):
            call_()
    view = xp.reshape(x, (2, 1), copy=False)
    view[0, 0] = 5
    assert x.tolist() == [5.0, 2.0]
    xp.reshape(x, (2, 1), copy=True)[0, 0] = 7
    assert x.tolist() == [5.0, 2.0]


def test_what_offers_its_memory():
    host = onp.arange(3, dtype="uint16")
    assert xp.asarray(host).dtype == xp.uint16 and xp.asarray(memoryview(host)).tolist() == [0, 1, 2]
    assert xp.asarray([xp.asarray(1), xp.asarray(2)]).tolist() == [1, 2]
    shared, copied = xp.from_dlpack(host), xp.from_dlpack(host, copy=True)
    host[0] = 7
    assert shared.tolist() == [7, 1, 2] and copied.tolist() == [0, 1, 2]
    assert strict.from_dlpack(shared).dtype == strict.uint16 and onp.from_dlpack(shared).tolist() == [7, 1, 2]
    with pytest.raises(TypeError, match="__dlpack__"):
        xp.from_dlpack([1])
    with pytest.raises(TypeError, match="no complex numbers"):
        xp.asarray([1j])
    with pytest.raises(TypeError, match="no complex numbers"):
        xp.zeros(2, dtype=complex)


def test_devices():
    other = mx.Context("cpu", 1)
    x = xp.ones(2, device=other)
    assert x.device == other and xp.zeros_like(x).device == other and xp.asarray(x, device=mx.cpu()).device == mx.cpu()
    assert xp.astype(x, xp.int8, device=mx.cpu()).device == mx.cpu() and xp.add(x, 1).device == other
    for name in ("arange", "eye", "zeros", "ones", "empty"):
        assert getattr(xp, name)(2, device=other).device == other
    assert xp.full(2, 1, device=other).device == xp.linspace(0, 1, 2, device=other).device == other
    assert xp.asarray([1], device="cpu").device == mx.cpu()
    with pytest.raises(ValueError, match="zeros: device must be a context"):
        xp.zeros(2, device=1)


# -- manipulation ---------------------------------------------------------------------------------------------------

_A = drawn("float32", (2, 3, 4))
_I = drawn("int64", (2, 3))
MANIPULATED = [
    *[("broadcast_to", (a, s), {}) for a, s in ((_I, (4, 2, 3)), (_I[:, :1], (2, 5)), (onp.float32([]), (2, 0)))],
    ("broadcast_to", (_I, (3, 2)), {}),
    ("broadcast_to", (_I, (3,)), {}),
    ("broadcast_arrays", (_A, drawn("int8", (3, 1)), drawn("bool", ())), {}),
    ("broadcast_arrays", (_I, _A), {}),
    *[("concat", ([_I, _I + 1],), {"axis": a}) for a in (0, 1, -1, None, 2)],
    ("concat", ([_I.astype("int8"), _I.astype("uint8")],), {}),
    ("concat", ([_I, _A[0, :2, :3]],), {}),
    ("concat", ([drawn("float32", (0, 2)), drawn("float32", (1, 2))],), {}),
    ("concat", ([_I, _I[0]],), {}),
    ("concat", ([],), {}),
    *[("stack", ([_I, _I + 1],), {"axis": a}) for a in (0, 1, -1, 3)],
    ("stack", ([drawn("int8", ()), drawn("int16", ())],), {}),
    *[("unstack", (_A,), {"axis": a}) for a in (0, 1, -1, 3)],
    ("unstack", (drawn("float32", (0, 2)),), {}),
    ("unstack", (drawn("float32", ()),), {}),
    *[("expand_dims", (_A,), {"axis": a}) for a in (0, 2, -1, -4, 4)],
    *[("squeeze", (_A[:1, :, :1], a), {}) for a in (0, (0, 2), -1, 1, 3)],
    *[("flip", (_A,), {"axis": a}) for a in (None, 0, -1, (0, 2), 3)],
    ("flip", (drawn("int8", ()),), {}),
    *[("moveaxis", (_A, s, d), {}) for s, d in ((0, 2), (-1, 0), ((0, 1), (-1, 0)), ((0, 1), 0), (0, 3))],
    *[("permute_dims", (_A, axes), {}) for axes in ((2, 0, 1), (-1, 0, 1), (0, 1), (0, 0, 1))],
    ("permute_dims", (drawn("int8", ()), ()), {}),
    *[("repeat", (_I, r), {"axis": a}) for r, a in ((2, None), (2, 0), (0, 1), (2, -1))],
    ("repeat", (_I, onp.asarray([1, 0, 2])), {"axis": 1}),
    ("repeat", (_I, onp.asarray([2])), {"axis": 0}),
    ("repeat", (_I, onp.asarray([1, 2, 1, 2])), {"axis": 0}),
    *[("reshape", (_A, s), {}) for s in ((4, 6), (-1,), (2, -1, 2), (5, 5), (-1, -1), (2, 12, 1))],
    ("reshape", (drawn("bool", ()), (1, 1)), {}),
    ("reshape", (drawn("float32", (0, 3)), (3, 0)), {}),
    *[("roll", (_A, s), {"axis": a}) for s, a in ((1, None), (-7, None), (1, 0), (-1, -1), ((1, 2), (0, 1)), (5, 2))],
    ("roll", (_A, (1, 2)), {"axis": 3}),
    ("roll", (drawn("float32", (0, 2)), 1), {"axis": 0}),
    *[("tile", (_I, r), {}) for r in ((2,), (2, 1), (2, 1, 3), (0,), ())],
    *[(n, (_A,), {"k": k}) for n in ("tril", "triu") for k in (0, 1, -1, 9)],
    ("tril", (_I[0],), {}),
    *[("meshgrid", (_I[0], _I[1, :2]), {"indexing": i}) for i in ("xy", "ij")],
    ("meshgrid", (_I[0], _I[1], _I[0]), {}),
    ("meshgrid", (_I[0],), {}),
    ("meshgrid", (_I[0], _A[0, 0]), {}),
    *[("take", (_A, onp.asarray([1, 0, -1])), {"axis": a}) for a in (0, 1, -1)],
    ("take", (_I[0], onp.asarray([2, 0], "int8")), {}),
    ("take", (_I[0], onp.asarray([], "int64")), {}),
    ("take", (_I, onp.asarray([1])), {}),
    ("take", (_I[0], onp.asarray([3])), {}),
    ("take", (_I[0], onp.asarray([1.0])), {}),
    *[("take_along_axis", (_I, onp.asarray([[0], [1]])), {"axis": a}) for a in (1, -1)],
    ("take_along_axis", (_I, onp.asarray([[0, 1, -1]])), {"axis": 0}),
    ("take_along_axis", (_I, onp.asarray([0])), {}),
    *[("matrix_transpose", (a,), {}) for a in (_A, _I, _I[0])],
]


@pytest.mark.parametrize("case", range(len(MANIPULATED)))
def test_manipulation(case):
    name, args, kwargs = MANIPULATED[case]
    check_agreement(name, *args, **kwargs)


def test_shapes_broadcast():
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3) and xp.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="do not broadcast"):
        xp.broadcast_shapes((2,), (3,))


# -- reductions -----------------------------------------------------------------------------------------------------

REDUCED = "all any count_nonzero max mean min prod std sum var".split()


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(name, dtype):
    x = drawn(dtype, (2, 3, 4))
    for axis in (None, 0, -1, (0, 2), (), 3, (0, 0)):
        for keepdims in (False, True):
            if axis != () or name not in ("std", "var"):
                check_agreement(name, x, axis=axis, keepdims=keepdims, coarse=4)
    check_agreement(name, drawn(dtype, ()))
    for axis in (None, 0, 1):
        check_agreement(name, drawn(dtype, (2, 0)), axis=axis)


@pytest.mark.parametrize("name", REDUCED)
def test_reductions_of_special_values(name):
    for values in (SPECIAL, SPECIAL[:-1], SPECIAL[:-2]):
        check_agreement(name, onp.asarray(values, "float64"))


def test_reductions_have_options():
    for name, dtype in itertools.product(("sum", "prod", "cumulative_sum", "cumulative_prod"), DTYPES):
        for asked in ("float64", "int64", "float32"):
            check_agreement(name, drawn(dtype, (4,)), dtype=dtype_(asked))
    for name, correction in itertools.product(("std", "var"), (1, 1.0, 0.5, 2)):
        check_agreement(name, drawn("float64", (2, 5)), axis=1, correction=correction)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_reductions(name):
    for dtype in DTYPES:
        check_agreement(name, drawn(dtype, (5,)))
    for axis, initial in itertools.product((None, 0, 1, -1, 2), (False, True)):
        check_agreement(name, drawn("float32", (2, 3)), axis=axis, include_initial=initial)
        check_agreement(name, drawn("int8", (0, 3)), axis=axis, include_initial=initial)
    assert call(xp, name, drawn("float32", ())) is None


def test_differences():
    for dtype in DTYPES:
        check_agreement("diff", drawn(dtype, (5,)))
    x = drawn("float32", (3, 4))
    for axis, n in itertools.product((0, -1), (0, 1, 2, 5)):
        check_agreement("diff", x, axis=axis, n=n)
    check_agreement("diff", x, axis=2)
    check_agreement("diff", x, prepend=x[:, :1], append=x[:, :2])


# -- searching, sorting, sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_places(dtype):
    x = drawn(dtype, (3, 4))
    for name, axis, keepdims in itertools.product(("argmax", "argmin"), (None, 0, -1, 2), (False, True)):
        check_agreement(name, x, axis=axis, keepdims=keepdims)
    check_agreement("argmax", drawn(dtype, ()))
    check_agreement("nonzero", x)
    check_agreement("nonzero", drawn(dtype, ()))
    check_agreement("where", drawn("bool", (3, 1)), x, x[:1])
    for other in DTYPES:
        check_agreement("where", drawn("bool", (2,)), drawn(dtype, (2,)), drawn(other, (2,)))
    for number in (True, 3, 1.5):
        check_agreement("where", drawn("bool", (2,)), drawn(dtype, (2,)), number)
    check_agreement("where", x, x, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_order(dtype):
    x = drawn(dtype, (3, 7))
    for name, axis, descending in itertools.product(("sort", "argsort"), (0, -1, 2), (False, True)):
        check_agreement(name, x, axis=axis, descending=descending)
    check_agreement("sort", x, stable=False)
    check_agreement("sort", drawn(dtype, (0, 2)), axis=0)
    check_agreement("sort", drawn(dtype, ()))
    ranked = onp.sort(drawn(dtype, (6,)))
    for side, other in itertools.product(("left", "right"), ((5, 1), (), (0,))):
        check_agreement("searchsorted", ranked, drawn(dtype, other, 3), side=side)
    check_agreement("searchsorted", ranked[::-1].copy(), drawn(dtype, (4,), 2), sorter=onp.arange(6)[::-1].copy())
    check_agreement("searchsorted", ranked[:0], drawn(dtype, (4,), 2))
    assert call(xp, "searchsorted", ranked, ranked, side="middle") is None


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
def test_sets(name):
    for dtype in DTYPES:
        for shape in ((), (0,), (7,), (2, 3)):
            assert check_agreement(name, drawn(dtype, shape)) is not None
    check_agreement(name, onp.asarray([math.nan, 1.0, math.nan, -0.0, 0.0], "float32"))


def test_elements_among_others():
    for dtype in DTYPES:
        for others, invert in itertools.product(((3,), (0,), (2, 2)), (False, True)):
            x, y = drawn(dtype, (2, 3)), drawn(dtype, others, 5)
            check_same(call(xp, "isin", x, y, invert=invert), onp.isin(x, y, invert=invert))
    assert call(xp, "isin", x, drawn("int8", (2,))) is None and xp.isin(3, xp.asarray([1, 3])).tolist() is True


# -- indices and operators ------------------------------------------------------------------------------------------

KEYS = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(5, 0, -2),
    ...,
    (..., 0),
    (0, ...),
    (None, 0),
    (slice(None), None, 1),
    (..., None),
    (slice(0, 0),),
    (1, slice(2, 0, -1), slice(None, None, 2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices(key):
    host = drawn("float32", (2, 3, 4))
    x = xp.asarray(host)
    check_same(x[key].asnumpy(), host[key] if isinstance(host[key], onp.ndarray) else onp.asarray(host[key]))
    x[key] = -1.0
    host[key] = -1.0
    check_same(x.asnumpy(), host)
    x[key] = xp.zeros(host[key].shape)
    host[key] = 0
    check_same(x.asnumpy(), host)


def test_indices_by_arrays():
    host = drawn("int64", (3, 4))
    x = xp.asarray(host)
    mask = host > 2
    check_same(x[xp.asarray(mask)].asnumpy(), host[mask])
    check_same(x[xp.asarray(mask[:, 0])].asnumpy(), host[mask[:, 0]])
    check_same(x[xp.asarray([2, 0]), xp.asarray([1, -1])].asnumpy(), host[[2, 0], [1, -1]])
    check_same(x[xp.asarray([2, 0]), 1].asnumpy(), host[[2, 0], 1])
    x[xp.asarray(mask)] = 0
    host[mask] = 0
    check_same(x.asnumpy(), host)
    for key in (3, (0, 4), (0, 0, 0)):
        with pytest.raises(IndexError):
            x[key]


OPERATORS = {
    "add": "add sub mul".split(),
    "divide": ["truediv"],
    "pow": ["pow"],
    "floor_divide": ["floordiv"],
    "bitwise_and": "and or xor".split(),
    "bitwise_left_shift": "lshift rshift".split(),
    "less": "lt le gt ge".split(),
    "equal": "eq ne".split(),
}


@pytest.mark.parametrize("method", [m for row in OPERATORS.values() for m in row])
def test_operators(method):
    """Where the standard defines what an operator gives, it is that; `mx.np` does more."""
    name = f"__{method}__"
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = drawn(a, (3,)), drawn(b, (3,), 1)
        _check_operator(name, x, y)
    for a in DTYPES:
        for number in (True, 2, 1.5):
            _check_operator(name, drawn(a, (3,)), number)
            if method not in ("lt", "le", "gt", "ge", "eq", "ne"):
                _check_operator(f"__r{method}__", drawn(a, (3,)), number)
                _check_operator(f"__i{method}__", drawn(a, (3,)), number)


def _check_operator(name, x, y):
    try:
        want = getattr(strict.asarray(x, copy=True), name)(strict.asarray(y) if isinstance(y, onp.ndarray) else y)
    except REFUSALS:
        return
    if want is not NotImplemented:
        got = getattr(xp.asarray(x), name)(xp.asarray(y) if isinstance(y, onp.ndarray) else y)
        check_same(got.asnumpy(), onp.asarray(want))


def test_matrices_by_operators():
    a, b = drawn("float64", (2, 3)), drawn("float64", (3, 3))
    x, y = xp.asarray(a), xp.asarray(b)
    check_same((x @ y).asnumpy(), a @ b)
    x @= y
    check_same(x.asnumpy(), a @ b)
    check_same((-y).asnumpy(), -b)
    assert (+y).tolist() == b.tolist() and abs(-y).tolist() == b.tolist()
    assert (~xp.asarray([True, False])).tolist() == [False, True]


def test_numbers_of_python():
    assert bool(xp.asarray(True)) is True and int(xp.asarray(3)) == 3 and float(xp.asarray(2.5)) == 2.5
    assert complex(xp.asarray(2.5)) == 2.5 and [10, 20][xp.asarray(1)] == 20
    with pytest.raises(TypeError):
        [1][xp.asarray(1.0)]
    with pytest.raises(TypeError):
        int(xp.ones(2))


def test_the_namespace_of_arrays():
    x = xp.ones(2)
    assert x.__array_namespace__() is xp
    for version_ in ("2021.12", "2022.12", "2023.12", "2024.12", None):
        assert x.__array_namespace__(api_version=version_) is xp
    with pytest.raises(ValueError, match="'2019.12'"):
        x.__array_namespace__(api_version="2019.12")
    assert xp is not np and not hasattr(mx.nd.ones(1), "__array_namespace__")


def test_functions_mean_numpys_shapes_whatever_the_thread_says():
    npx.reset_np()
    x = xp.zeros(())
    assert x.shape == xp.add(x, 1).shape == xp.sum(xp.ones((2, 0))).shape == xp.linalg.det(xp.eye(2)).shape == ()
    assert xp.asarray([]).shape == (0,) and not mx.util.is_np_shape()
    with pytest.raises(ValueError, match="0"):
        xp.max(xp.zeros(0))
    assert not mx.util.is_np_shape()


# -- gradients ------------------------------------------------------------------------------------------------------

DIFFERENTIABLE = {
    "add": lambda x: xp.add(x, 2),
    "remainder": lambda x: xp.remainder(x * 10, 3),
    "logaddexp": lambda x: xp.logaddexp(x, xp.flip(x)),
    "clip": lambda x: xp.clip(x, 0.3, 0.7),
    "where": lambda x: xp.where(x > 0.5, x * x, 3),
    "cumulative_prod": lambda x: xp.cumulative_prod(x, axis=1, include_initial=True),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=0),
    "sort": lambda x: xp.sort(x, descending=True),
    "take": lambda x: xp.take(x, xp.asarray([2, 0, 0]), axis=1),
    "take_along_axis": lambda x: xp.take_along_axis(x, xp.asarray([[0], [1], [0]])),
    "unique_values": lambda x: xp.unique_values(x),
    "roll": lambda x: x * xp.roll(x, 1, axis=(0)),
    "diff": lambda x: xp.diff(x, n=2),
    "std": lambda x: xp.std(x, axis=1, correction=0.5),
    "vecdot": lambda x: xp.vecdot(x, xp.flip(x)),
    "cross": lambda x: xp.linalg.cross(x, x[0, :]),
    "solve": lambda x: xp.linalg.solve(x + 2 * xp.eye(3, dtype=xp.float64), x),
    "vector_norm": lambda x: xp.linalg.vector_norm(x, axis=(0, 1), ord=3),
    "matrix_norm": lambda x: xp.linalg.matrix_norm(x),
    "trace": lambda x: xp.linalg.trace(x, offset=1),
    "cholesky": lambda x: xp.linalg.cholesky(xp.matmul(x, x.mT) + xp.eye(3, dtype=xp.float64), upper=True),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    f, host, step = DIFFERENTIABLE[name], drawn("float64", (3, 3)), 1e-6
    x, way = xp.asarray(host), onp.random.RandomState(1).randn(3, 3)
    x.attach_grad()
    with autograd.record():
        y = xp.sum(f(x) * 1.5)
    y.backward()
    ahead, behind = (float(xp.sum(f(xp.asarray(host + s * way)) * 1.5)) for s in (step, -step))
    assert abs((x.grad.asnumpy() * way).sum() - (ahead - behind) / (2 * step)) < 1e-6 * max(1, abs(ahead))


def test_places_have_no_gradient_and_do_not_refuse():
    x = xp.asarray([3.0, 1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        ranks = xp.searchsorted(xp.asarray([1.5, 2.5]), x)
        y = xp.sum(x * xp.astype(ranks, x.dtype))
    y.backward()
    assert x.grad.tolist() == ranks.tolist() == [2, 0, 1]
