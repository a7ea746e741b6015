"""Facts about ``test_utils`` that both libraries can be asked for."""

import contextlib
import inspect
import io
import itertools
import re

import numpy as np

DTYPES = ("float16", "float32", "float64", "bool", "int8", "uint8", "int32", "int64")
PAIRS = ("float16", "float32", "float64", "int32")

#: (actual, desired, keywords): what compares unequal, and by how much.
COMPARED = {
    "diagonal": (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4) + 0.01 * np.eye(3, 4), {}),
    "float32": (np.arange(12, dtype="f4"), np.arange(12, dtype="f4") + 1, {"names": ("x", "y")}),
    "mixed": (np.ones(3, "f2"), np.array([1, 1.2, 1.3]), {}),
    "integers": (np.array([1, 2, 9]), np.array([1, 3, 4]), {}),
    "nan": (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), {}),
    "nan equal": (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), {"equal_nan": True}),
    "one nan": (np.array([np.nan, 1.0]), np.array([0.0, 1.0]), {"equal_nan": True}),
    "infinite": (np.array([np.inf, 1.0]), np.array([np.inf, 1.0]), {}),
    "one infinite": (np.array([np.inf, 1.0]), np.array([3.0, 1.0]), {}),
    "tolerance": (np.array([1.0, 2.0]), np.array([1.1, 2.5]), {"rtol": 0.2, "atol": 0.0}),
    "by dtype": (np.zeros(2, "f4"), np.array([0.1, 0.3], "f4"), {"atol": {np.dtype("f4"): 0.2}}),
    "broadcast": (np.zeros((3, 4)), np.zeros((1, 4)), {}),
    "no broadcast": (np.zeros((3, 4)), np.zeros((1, 4)), {"use_broadcast": False}),
    "empty": (np.zeros((0, 3)), np.zeros((0, 3)), {}),
}

POWERLAW = [((5, 16), 0.5), ((5, 4), 0.8), ((8, 40), 0.1), ((4, 8), 0.7), ((8, 4), 0.1), ((8, 40), 0.9)]


def tables(mx):
    """The default tolerances and steps."""
    t = mx.test_utils
    found = {
        f.__name__: {k.name: float(v) for k, v in f().items()}
        for f in (t.default_rtols, t.default_atols, t.default_numeric_eps)
    }
    found["by dtype"] = [[t.get_rtol(None, np.dtype(d)), t.get_atol(None, np.dtype(d))] for d in DTYPES]
    found["pairs"] = [
        t.get_tols(np.zeros(1, a), np.zeros(1, b), None, None) for a, b in itertools.product(PAIRS, PAIRS)
    ]
    found["given"] = [
        t.get_rtol(0.5),
        t.get_atol(0.5),
        t.get_etol(),
        t.get_etol(0.5),
        t.get_rtol(),
        t.get_atol(),
        t.get_tolerance(np.zeros(1, "f4"), {np.dtype("f8"): 9}, t.default_rtols()),
    ]
    return found


def comparison(mx, case):
    """None, or of the failure: error, tolerances, and the text about the place."""
    a, b, keywords = COMPARED[case]
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(invalid="ignore"):
        try:
            mx.test_utils.assert_almost_equal(a, b, **keywords)
        except AssertionError as e:
            text = str(e)
        else:
            return None
    numbers = re.search(r"Error (\S+) exceeds tolerance rtol=(\S+), atol=(\S+?)(?:\.\s| )", text)
    place = re.search(r"Location of maximum error: .*", text)
    return [numbers and [float(x) for x in numbers.groups()], place and place.group()]


def shapes(mx):
    """Every shape that the random ones can have, drawn often enough."""
    t = mx.test_utils
    np.random.seed(0)
    draws = {
        "2d": lambda: t.rand_shape_2d(3, 2),
        "2d zero": lambda: t.rand_shape_2d(3, 2, True),
        "3d": lambda: t.rand_shape_3d(3, 2, 1),
        "3d zero": lambda: t.rand_shape_3d(3, 2, 1, True),
        "nd": lambda: t.rand_shape_nd(2, 2),
        "nd zero": lambda: t.rand_shape_nd(2, 2, True),
        "none": lambda: t.rand_shape_nd(0),
        "coord": lambda: t.rand_coord_2d(0, 3, 5, 7),
    }
    return {n: sorted({tuple(int(i) for i in draw()) for _ in range(400)}) for n, draw in draws.items()}


def powerlaw(mx):
    """How many elements each row has, or None for a density that does not fit."""
    found = []
    for shape, density in POWERLAW:
        try:
            a, _ = mx.test_utils.rand_sparse_ndarray(shape, "csr", density=density, distribution="powerlaw")
            found.append(np.diff(a.indptr.asnumpy()).tolist())
        except ValueError:
            found.append(None)
    return found


def helpers(mx):
    """Results of small functions."""
    t, x = mx.test_utils, np.arange(24.0).reshape(2, 3, 4)
    reduced = [
        t.np_reduce(x, axis, keep, np.max).tolist() for axis in (None, 1, (0, 2), (-1,)) for keep in (False, True)
    ]
    summed = [np.asarray(t.collapse_sum_like(x, s)).tolist() for s in ((2, 3, 4), (3, 1), (1,), ())]
    arrays = [t.create_2d_tensor(3, 2), t.create_vector(3), t.get_identity_mat(2), t.get_identity_mat_batch(2)]
    return {
        "np_reduce": reduced,
        "collapse_sum_like": summed,
        "arrays": [[a.asnumpy().tolist(), np.dtype(a.dtype).name] for a in arrays],
        "buckets": t.gen_buckets_probs_with_ppf(lambda p: 2 * p, 4),
        "assign": [
            t.assign_each(np.arange(4.0), lambda v: v * 2).tolist(),
            t.assign_each2(np.arange(3.0), np.ones(3), lambda v, w: v - w).tolist(),
        ],
        "location": t.locationError(np.zeros(3), np.ones(3), (1,), ("x", "y")),
    }


def structure(mx):
    """Which pairs of graphs have the same structure."""
    s, a, b = mx.sym, mx.sym.Variable("a"), mx.sym.Variable("b")
    pairs = [
        (a + b, a + b),
        (a + b, a * b),
        (a + b, b + a),
        (s.exp(a), s.exp(a + b)),
        (a, b),
        (s.sum(a, axis=0), s.sum(a, axis=1)),
        (s.exp(a) + s.sin(b), s.exp(a) - s.sin(b)),
    ]
    return [bool(mx.test_utils.same_symbol_structure(x, y)) for x, y in pairs]


def chi_squares(mx):
    """p and frequencies of fixed samples (needs SciPy in MXNet)."""
    found = []
    for counts in ([985, 1018, 997], [10, 20], [1, 2, 3, 4, 5, 9], [500, 500], [300, 300, 400, 500, 200, 300, 100]):
        samples = np.repeat(np.arange(len(counts)), counts)
        k = len(counts)
        p, seen, expected = mx.test_utils.chi_square_check(
            lambda n, s=samples: s, list(range(k)), [1 / k] * k, nsamples=len(samples)
        )
        found.append([float(p), [int(i) for i in seen], [int(i) for i in expected]])
    return found


def signatures(mx):
    """Parameters and their defaults, function by function."""
    found = {}
    for name in sorted(vars(mx.test_utils)):
        f = getattr(mx.test_utils, name)
        if inspect.isfunction(f) and f.__module__.split(".")[1:2] == ["test_utils"] and not name.startswith("_"):
            found[name] = [
                [p.name, None if p.default is p.empty else repr(p.default)]
                for p in inspect.signature(f).parameters.values()
            ]
    return found


FACTS = {f.__name__: f for f in (signatures, tables, shapes, powerlaw, helpers, structure)}
