"""NumPy's meaning over libraries of the array API standard, with NumPy as the oracle."""

import inspect
import random
import re

import numpy as np
import pytest

from mxcore.array_api import _functions as functions
from mxcore.array_api import elementwise
from mxcore.array_api.contract import ATTRIBUTES, CONSTANTS, METHODS, entries, page
from mxcore.array_api.namespace import ASKED
from mxcore.plugin import ArrayAPINamespace

from .libraries import LIBRARIES, host, namespace

ROOT = __import__("pathlib").Path(__file__).resolve().parents[2]
DATA = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
IDS = np.array([[2, 0, 1], [0, 0, 2]])


@pytest.fixture(params=LIBRARIES)
def xp(request):
    return namespace(request.param)


def signature_of(fn):
    """As the contract writes it: without the namespace, without annotations."""
    fn, given = (fn.func, len(fn.args)) if hasattr(fn, "func") else (fn, 0)
    parameters = list(inspect.signature(fn).parameters.values())[given:]
    return [(p.name, p.default, p.kind) for p in parameters if p.name not in ("self", "xp")]


# ---- the contract ------------------------------------------------------------------------------------------------
def test_the_page_is_fresh():
    assert (ROOT / "docs" / "arrays.md").read_text(encoding="utf-8") == page(), "run tools/make_arrays.py"


def test_the_namespace_has_what_the_contract_lists_and_no_more():
    xp = ArrayAPINamespace(np)
    listed, methods = entries()
    assert methods.keys() == METHODS and {"sum", "reshape", "item"} < METHODS
    for name in listed:
        at = xp
        for part in name.split("."):
            at = getattr(at, part)
        assert callable(at)
    for name in CONSTANTS:
        assert getattr(xp, name) is getattr(np, name)
    for name in METHODS | ATTRIBUTES:
        assert hasattr(xp.Array, name)
    assert {n for n in functions.FUNCTIONS if n != "add.at"} <= listed.keys()
    for name in ("median", "einsum", "ndarray"):
        with pytest.raises(AttributeError, match=f"xp has no '{name}'"):
            getattr(xp, name)


def test_signatures_are_those_of_the_contract():
    xp, wrong = ArrayAPINamespace(np), []
    for name, entry in entries()[0].items():
        at = xp
        for part in name.split("."):
            at = getattr(at, part)
        want = [(p.name, getattr(p.default, "name", p.default)) for p in entry.signature.parameters.values()]
        got = [
            (n, getattr(d, "__name__", d) if isinstance(d, type) and d is not inspect.Parameter.empty else d)
            for n, d, _ in signature_of(at)
        ]
        if [n for n, _ in want] != [n for n, _ in got] or [d for _, d in want] != [d for _, d in got]:
            wrong.append((name, want, got))
    assert not wrong


# ---- indexing ----------------------------------------------------------------------------------------------------
def draw_key(rs, shape):
    """A key of NumPy's for a shape."""
    key, whole, n = [], False, rs.choice([1, 2, 3])
    for length in shape[: rs.randint(0, len(shape))]:
        if rs.random() < 0.15:
            key.append(None)
        if rs.random() < 0.15 and not whole:
            key.append(...)
            whole = True
        length = min(shape) if whole else length
        kind = rs.random()
        if kind < 0.25:
            key.append(rs.randrange(-length, length))
        elif kind < 0.6:
            key.append(
                slice(rs.choice([None, 0, 1, -2, 9]), rs.choice([None, 1, 3, -1, 9]), rs.choice([None, 1, 2, -1, -2]))
            )
        else:
            key.append(np.array([rs.randrange(-length, length) for _ in range(n)]))
    return (np.array([rs.random() < 0.5 for _ in range(shape[0])]),) if rs.random() < 0.1 else tuple(key)


def test_keys(xp):
    rs = random.Random(1)
    for _ in range(400):
        shape = tuple(rs.randint(2, 4) for _ in range(rs.randint(1, 4)))
        a, key = np.arange(float(np.prod(shape)), dtype="f4").reshape(shape), draw_key(rs, shape)
        own = tuple(xp.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
        want = a[key]
        got = host(xp.asarray(a)[own])
        assert got.shape == want.shape and np.array_equal(got, want), (shape, key)
        values = np.arange(float(want.size), dtype="f4").reshape(want.shape) + 1
        once = len(set(np.arange(a.size).reshape(shape)[key].ravel().tolist())) == want.size
        for v in (7, *([values] if once else [])):
            b, c = a.copy(), xp.asarray(a)
            b[key] = v
            c[own] = xp.asarray(v) if isinstance(v, np.ndarray) else v
            assert np.array_equal(host(c), b), (shape, key)
        b, c = a.copy(), xp.asarray(a)
        np.add.at(b, key, values)
        xp.add.at(c, own, xp.asarray(values))
        assert np.array_equal(host(c), b), (shape, key)
        b, c = a.copy(), xp.asarray(a)
        if once:
            b[key] += 2
            c[own] += 2
            assert np.array_equal(host(c), b), (shape, key)


def test_slices_are_views(xp):
    a = xp.zeros((4, 3), np.float32)
    v = a[1:3]
    v[...] = 2
    a.reshape(12)[0] = 5
    v += 1
    assert host(a).tolist() == [[5, 0, 0], [3, 3, 3], [3, 3, 3], [0, 0, 0]]


def test_arrays_do_not_become_the_hosts(xp):
    a = xp.ones((2,))
    for use in (bool, float, len, list, np.asarray):
        with pytest.raises(TypeError, match="hide a copy to the host"):
            use(a)
    for use in (
        lambda: a + np.ones(2),
        lambda: np.ones(2) * a,
        lambda: xp.add(a, np.ones(2)),
        lambda: a[np.array([0])],
    ):
        with pytest.raises(TypeError, match="a NumPy array"):
            use()
    assert (np.float64(2) * a).shape == (2,) and a[0].item() == 1.0


# ---- numbers -----------------------------------------------------------------------------------------------------
BINARY = (
    "add subtract multiply divide floor_divide mod power maximum minimum fmax fmin fmod hypot arctan2 equal less "
    "logical_and logical_xor"
).split()


@pytest.mark.parametrize("name", BINARY)
def test_promotion_is_numpys(xp, name):
    dtypes = [
        t
        for t in ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
        if np.dtype(t) in xp.dtypes
    ]
    for one in dtypes:
        a = np.array([0, 1, 1]).astype(one)
        others = [np.array([1, 1, 1]).astype(t) for t in dtypes]
        for b in (*others, 2, 1.5, np.float32(1), np.int64(1)):
            try:
                want = getattr(np, name)(a, b)
            except TypeError:
                continue
            if want.dtype not in xp.dtypes:
                continue
            got = getattr(xp, name)(xp.asarray(a), xp.asarray(b) if isinstance(b, np.ndarray) else b)
            assert got.dtype == want.dtype, (one, getattr(b, "dtype", b))
            np.testing.assert_allclose(
                host(got), want, rtol=1e-3 if "float16" in (one, str(getattr(b, "dtype", ""))) else 1e-6
            )


UNARY = """abs arccosh arcsin arctan cbrt ceil cos degrees exp exp2 expm1 floor isfinite isinf isnan log log10 log1p
    log2 logical_not negative radians reciprocal rint sign sinh sqrt square tan tanh trunc""".split()


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unary(xp, name):
    for a in (DATA, DATA.astype("f4"), np.array([0.0, 1.0 if name == "sign" else np.nan, np.inf, -np.inf, 2.5, 3.5])):
        want, got = getattr(np, name)(a), getattr(xp, name)(xp.asarray(a))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(host(got), want, rtol=1e-5)


CALLS = {
    "sum": [(DATA, 0), (DATA,), (DATA > 0, (0, 1)), (IDS.astype("i4"), None, np.float32), (DATA, ())],
    "prod": [(DATA, (0, 1)), (DATA, -1)],
    "mean": [(IDS, 1), (DATA,)],
    "max": [(DATA, 1), (DATA > 0,)],
    "amin": [(DATA, (0, 1))],
    "var": [(DATA, 0), (IDS,)],
    "std": [(DATA, 1)],
    "nansum": [(np.array([1, np.nan]),)],
    "nanprod": [(np.array([2, np.nan]),)],
    "any": [(DATA > 2, 0)],
    "all": [(DATA > -9,)],
    "argmax": [(DATA, 1), (DATA,), (DATA > 0, 0)],
    "argmin": [(DATA, 0)],
    "count_nonzero": [(IDS, 0)],
    "cumsum": [(DATA, 1), (IDS.astype("i4"),)],
    "cumprod": [(DATA, 0)],
    "argsort": [(DATA, 0), (IDS, -1, "stable")],
    "sort": [(DATA,), (DATA > 0, 0)],
    "searchsorted": [(np.arange(5.0), DATA, "right")],
    "unique": [(IDS, True, True, True), (np.array([np.nan, 1, np.nan]),)],
    "bincount": [(IDS[0], None, 5), (IDS[1], DATA[0])],
    "histogram": [(DATA, np.array([-1.0, 0, 1, 3]))],
    "nonzero": [(IDS,)],
    "flatnonzero": [(IDS,)],
    "moveaxis": [(np.zeros((2, 3, 4)), (0, 1), (2, 0))],
    "swapaxes": [(DATA, 0, 1)],
    "expand_dims": [(DATA, (0, -1))],
    "squeeze": [(DATA[None],), (DATA[:, None], 1)],
    "tile": [(DATA, (2, 1, 2)), (DATA, 2)],
    "repeat": [(DATA, 2, 1), (DATA, 3), (IDS, IDS[0], 1)],
    "flip": [(DATA,), (DATA, 1)],
    "roll": [(DATA, 1), (DATA, (1, -1), (0, 1))],
    "pad": [
        (DATA, ((1, 0), (2, 1)), "constant"),
        (DATA, 1, "reflect"),
        (DATA, 1, "edge"),
        (DATA, 1, "symmetric"),
        (DATA, 1, "wrap"),
    ],
    "diag": [(DATA[0], 1), (DATA[0], -1), (DATA[0],), (DATA, 1)],
    "diagonal": [(DATA, 1), (np.zeros((2, 3, 4)), -1, 1, 2)],
    "tril": [(DATA, -1)],
    "triu": [(DATA, 1)],
    "diff": [(DATA, 1, 0), (DATA > 0,)],
    "take": [(DATA, IDS, 1), (DATA, IDS), (DATA, -1, 0)],
    "take_along_axis": [(DATA, IDS, 1), (DATA, IDS[:1] - 3, 1)],
    "dot": [(DATA, DATA.T), (DATA, DATA[0]), (DATA[0], DATA[1]), (np.ones((2, 3, 4)), np.ones((5, 4, 2)))],
    "matmul": [(np.ones((2, 2, 3)), DATA.T), (IDS, IDS.T)],
    "tensordot": [(DATA, DATA, 2), (DATA, DATA.T, 1), (DATA, DATA, ((0,), (0,)))],
    "outer": [(DATA, DATA[0])],
    "unravel_index": [(IDS, (2, 3))],
    "ravel_multi_index": [((IDS[0], IDS[1]), (3, 3))],
    "clip": [(DATA, -1, None), (DATA, 0, 1)],
    "isclose": [(DATA, DATA + 1e-9), (np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))],
    "nan_to_num": [(np.array([np.nan, np.inf, -np.inf, 1]),)],
    "where": [(DATA > 0, DATA, 0), (IDS, 1.5, IDS)],
    "split": [(DATA, 3, 1), (DATA, [1], 1)],
    "array_split": [(DATA, 2, 1)],
    "broadcast_to": [(DATA[0], (4, 3))],
    "broadcast_arrays": [(DATA, DATA[0])],
    "atleast_1d": [(np.array(1.5),)],
    "meshgrid": [(DATA[0], DATA[1])],
    "concatenate": [([DATA, IDS], 1)],
    "stack": [([DATA, DATA], -1)],
    "partition": [(np.array([3, 1, 2]), 1)],
    "linspace": [(0, 1, 5), (0, 1, 5, False), (0, 1, 1)],
    "arange": [(5,), (1, 2, 0.25), (5, 0, -2), (-1, 0, -1), (3, 1)],
    "eye": [(3,), (2, 3, 1, np.int64)],
    "tri": [(3, 2, -1)],
    "indices": [((2, 3),)],
    "full": [((2,), 3), (2, 1.5, np.float32)],
    "linalg.inv": [(DATA[:, :2],)],
    "linalg.det": [(DATA[:, :2],)],
    "linalg.slogdet": [(DATA[:, :2],)],
    "linalg.norm": [(DATA,)],
    "linalg.solve": [(DATA[:, :2], DATA)],
    "linalg.cholesky": [(np.array([[2.0, 1], [1, 2]]),)],
    "linalg.eigvalsh": [(np.array([[2.0, 1], [1, 2]]),)],
    "fft.fft": [(DATA,)],
}


def as_own(xp, v):
    if isinstance(v, np.ndarray):
        return xp.asarray(v)
    return type(v)(as_own(xp, x) for x in v) if isinstance(v, (list, tuple)) else v


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions(xp, name):
    oracle, own = np, xp
    for part in name.split("."):
        oracle, own = getattr(oracle, part), getattr(own, part)
    for args in CALLS[name]:
        want, got = oracle(*args), own(*as_own(xp, args))
        many = isinstance(want, (tuple, list))
        for g, w in zip(got, want, strict=True) if many else [(got, want)]:
            w = np.asarray(w)
            assert g.shape == w.shape and g.dtype == w.dtype, (args, g.dtype, w.dtype)
            np.testing.assert_allclose(host(g), w, rtol=1e-9, atol=1e-12)


def test_methods(xp):
    a = xp.asarray(DATA)
    assert a.reshape(3, -1).shape == a.reshape((3, 2)).shape == (
        3,
        2,
    ) and a.T.shape == a.transpose().shape == a.transpose(1, 0).shape == (3, 2)
    assert (
        a.astype(np.int32).dtype == np.int32 and a.astype(np.float64, copy=False) is a and a.astype(np.float64) is not a
    )
    assert host(a.astype(np.int64)).tolist() == DATA.astype(np.int64).tolist()
    assert (
        (a.size, a.ndim, a.itemsize, a.nbytes) == (6, 2, 8, 48)
        and a.max().item() == 3.0
        and a.ravel().shape == a.flatten().shape == (6,)
    )
    assert (
        host(a.round(1)).tolist() == DATA.round(1).tolist()
        and host(a.sum(axis=0, keepdims=True)).tolist() == DATA.sum(0, keepdims=True).tolist()
    )
    z = a.astype(np.float32)[:, :2].copy().view(np.complex64)
    assert host(z.conj().view(np.float32)).tolist() == [[0.5, 1.5], [3.0, -0.25]]
    b = a.copy()
    b.fill(3)
    assert host(b).min() == 3 and host(a).min() == -1.5
    with pytest.raises(ValueError, match="one element"):
        a.item()
    with pytest.raises(TypeError, match="not in the contract"):
        a.view(np.int16)


def test_in_place_keeps_the_dtype(xp):
    a = xp.ones((2,), np.float32)
    b = a
    b *= xp.asarray([1.5, 2.5])
    assert b is a and host(a).tolist() == [1.5, 2.5] and a.dtype == np.float32
    n = xp.ones((2,), np.int32)
    with pytest.raises(TypeError, match="cannot be written"):
        n += 0.5
    assert xp.exp(a, out=a) is a


def test_errors(xp):
    with pytest.raises(ValueError, match="no elements"):
        xp.zeros((0,)).max()
    with pytest.raises(ValueError, match="not of length 1"):
        xp.squeeze(xp.zeros((2,)), 0)
    with pytest.raises(TypeError, match="has no "):
        xp.zeros((2,), "datetime64[s]")
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        xp.sum(xp.zeros((2,)), 2)
    with pytest.raises(TypeError, match="float16"):
        xp.linalg.inv(
            xp.zeros((2, 2), np.float16)
            if np.dtype(np.float16) in xp.dtypes
            else xp.zeros((2, 2), np.float32).astype(np.float16)
        )


def test_dtypes_that_a_library_lacks_give_way_in_promotion():
    xp = ArrayAPINamespace(np, {"dtypes": "bool uint8 int8 int64 float32"})
    assert xp.sqrt(xp.asarray(np.array([4], "i1"))).dtype == np.float32
    assert xp.asarray(np.array([4], "u1")).sum().dtype == np.int64
    with pytest.raises(TypeError, match="numpy has no float64; it has bool, float32, int64, int8, uint8"):
        xp.zeros((2,))


def test_what_is_asked_of_a_library_is_listed():
    """The list is what the sources ask for by name, and NumPy, which has all of the standard, has all of it."""
    source = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "core" / "mxcore" / "array_api").glob("*.py"))
    asked = {*re.findall(r'(?:standard|made|\br)\("(\w+)"', source)} | {*elementwise.STANDARD.values()}
    assert asked - {"contiguous"} <= ASKED and ArrayAPINamespace(np).lacking() == []


@pytest.mark.parametrize("name, near", [("maxx", "'max'"), ("linalg.invv", "'linalg.inv'"), ("dtype", "'dtypes'")])
def test_a_misspelt_override_is_refused(name, near):
    with pytest.raises(ValueError, match=rf"nothing asks for an override '{name}', did you mean .*{near}"):
        ArrayAPINamespace(np, {name: np.max})
