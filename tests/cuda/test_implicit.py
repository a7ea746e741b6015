"""Convolutions by tiles that are gathered where they are multiplied: which are, what they give, and what is noticed."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.testing.ways import reference_bodies
from mxcore_cuda import launching, sources
from mxcore_cuda.bindings import implicit
from mxcore_cuda.bindings.geometry import Geometry
from mxcore_cuda.emulation import compiler

from .test_kernels import exact

TOLERANCE = {"float16": 2e-3, "bfloat16": 8e-3, "float32": 5e-6}
#: Dtypes whose copies and arithmetic go ways of their own.
WAYS = ("float16", "float32")
#: Images, channels, size, filters, and what else there is: planes of multiples of 8, of 4, and of none.
CASES = {
    "eight": (2, 16, (4, 8), 16, {"kernel": (3, 3), "pad": (1, 1)}),
    "four": (3, 40, (10, 2), 70, {"kernel": (3, 2), "pad": (1, 0), "dilate": (1, 1)}),
    "odd": (2, 33, (5, 7), 17, {"kernel": (2, 3), "pad": (1, 2), "dilate": (2, 1)}),
    "strides": (1, 64, (9, 8), 132, {"kernel": (3, 3), "stride": (2, 3), "pad": (1, 1), "num_group": 2}),
    "gaps": (2, 18, (7, 9), 20, {"kernel": (1, 1), "stride": (2, 3)}),
    "one axis": (3, 20, (41,), 24, {"kernel": (5,), "stride": (2,), "pad": (3,), "dilate": (3,)}),
    "many": (7, 16, (12, 12), 130, {"kernel": (2, 2)}),
}


def computed(case, ctx, dtype, change=None):
    """Outputs, and gradients of images, filters and biases."""
    n, channels, size, filters, more = case
    rs, shapes = np.random.RandomState(0), [(n, channels, *size)]
    per = channels // more.get("num_group", 1)
    shapes += [(filters, per, *more["kernel"]), (filters,)]
    values = [exact(rs.uniform(-1, 1, shape)) for shape in shapes]
    if change is not None:
        change(values)
    arrays = [mx.nd.array(v, ctx=ctx, dtype=dtype) for v in values]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Convolution(*arrays, num_filter=filters, cudnn_off=True, **more)
    y.backward(mx.nd.array(exact(rs.uniform(-1, 1, y.shape)), ctx=ctx, dtype=dtype))
    return [a.asnumpy().astype("float64") for a in (y, *[a.grad for a in arrays])]


_expected = {}


def expected(name):
    if name not in _expected:
        with reference_bodies():
            _expected[name] = computed(CASES[name], mx.cpu(), "float64")
    return _expected[name]


def compare(name, dtype):
    for a, b in zip(computed(CASES[name], mx.gpu(0), dtype), expected(name), strict=True):
        tolerance = TOLERANCE[dtype] * max(np.abs(b).max(), 1)
        np.testing.assert_allclose(a, b, rtol=TOLERANCE[dtype], atol=tolerance)


@pytest.fixture
def tiled(gpus, monkeypatch):
    """All that can be is computed by tiles; tells of which height those of the outputs are."""
    heights = set()
    monkeypatch.setattr(implicit, "_pays", lambda g, piece: True)
    monkeypatch.setattr(implicit, "_SHARE", 64)  # several parts also of small ones
    launch = launching.Kernel.launch
    monkeypatch.setattr(
        launching.Kernel, "launch", lambda self, *args: (heights.add(self.signature.name), launch(self, *args))[1]
    )
    for cached in (implicit._taken, implicit._gathering, implicit._weighing):
        cached.cache_clear()
    yield heights
    for cached in (implicit._taken, implicit._gathering, implicit._weighing):
        cached.cache_clear()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tall", [64, 128])
@pytest.mark.parametrize("name", CASES)
def test_tiles_give_what_numpy_gives(tiled, monkeypatch, name, tall, dtype):
    monkeypatch.setattr(implicit.Tiles, "tall", lambda self, size: tall)
    compare(name, dtype)
    assert {f"gather_{tall}", "to_last", "add_parts"} < tiled and {"weigh_64", "weigh_128"} & tiled
    assert not {"to_columns", "from_columns"} & tiled


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_the_same_in_every_order_of_threads(tiled, name, dtype):
    found = []
    try:
        for order in range(3):
            compiler.set_order(order)
            found.append(computed(CASES[name], mx.gpu(0), dtype))
    finally:
        compiler.set_order(compiler.FORWARD)
    for one, *others in zip(*found):
        assert all(np.array_equal(one, other) for other in others)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_transposed_convolutions(tiled, dtype):
    rs, found = np.random.RandomState(1), []
    x, w = (exact(rs.uniform(-1, 1, s)) for s in [(2, 18, 5, 4), (18, 20, 3, 2)])
    for ctx, of in ((mx.gpu(0), dtype), (mx.cpu(), "float64")):
        a, b = (mx.nd.array(v, ctx=ctx, dtype=of) for v in (x, w))
        a.attach_grad()
        b.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Deconvolution(a, b, num_filter=20, kernel=(3, 2), stride=(2, 1), pad=(1, 0))
        y.backward(y)
        found.append([v.asnumpy().astype("float64") for v in (y, a.grad, b.grad)])
    assert {"gather_64", "gather_128"} & tiled
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(b).max())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_what_is_not_finite_reaches_only_what_it_belongs_to(tiled, dtype):
    """Beside the image, behind the channels and the filters, nothing is multiplied by 0."""

    def change(values):
        values[0][0, 3, 2, 4], values[0][1, 0, 0, 0] = np.nan, np.inf

    found, wanted = (
        computed(CASES["eight"], ctx, of, change=change) for ctx, of in ((mx.gpu(0), dtype), (mx.cpu(), "float64"))
    )
    for a, b in zip(found, wanted, strict=True):
        assert np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(np.isinf(a), np.isinf(b))
    assert np.isnan(wanted[0]).any() and not np.isnan(wanted[0]).all()


def geometry(images, channels, size, filters, kernel=3, stride=1, groups=1, axes=2):
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    each = ((v,) * axes for v in (size, out, kernel, stride, pad, 1))
    return Geometry(images, channels, filters, groups, *each)


@pytest.mark.parametrize(
    "g, half, single",
    [
        (geometry(32, 64, 56, 64), "fdw", "fdw"),
        (geometry(32, 128, 28, 128), "fdw", "fdw"),
        (geometry(32, 256, 14, 256), "fdw", "w"),  # too few tiles for all of a GPU
        (geometry(128, 256, 14, 512, stride=2), "fdw", "dw"),  # many filters: cuBLAS makes up for the columns
        (geometry(32, 20, 28, 24), "fdw", ""),  # most of a tile would be empty
        (geometry(2, 512, 7, 512, groups=32), "fdw", "fdw"),  # columns go group by group
        (geometry(32, 64, 56, 64, kernel=1), "", ""),  # an image is its own columns
        (geometry(32, 256, 56, 128, kernel=1, stride=2), "fdw", "fd"),
        (geometry(32, 3, 224, 64, kernel=7, stride=2), "", ""),  # few channels
        (geometry(32, 64, 56, 64, groups=64), "", ""),
        (geometry(2, 32, 12, 32, axes=3), "", ""),
        (geometry(1 << 12, 64, 112, 64), "", ""),  # too many numbers for 32 bits
    ],
)
def test_which_convolutions_are_taken(gpus, g, half, single):
    pieces = ("forward", "data", "weight")
    for dtype, wanted in (("float16", half), ("bfloat16", half), ("float32", single), ("float64", "")):
        assert "".join(p[0] for p in pieces if implicit.takes(g, np.dtype(dtype), 0, p)) == wanted


def test_older_gpus_have_columns(gpus, monkeypatch):
    monkeypatch.setattr(type(gpus[0].device.driver), "capability", lambda self, index: 75)
    implicit._taken.cache_clear()
    try:
        assert not implicit.takes(geometry(32, 64, 56, 64), np.dtype("float16"), 0, "forward")
    finally:
        implicit._taken.cache_clear()


def test_where_float32_may_be_rounded_cublas_multiplies_it(gpus, monkeypatch):
    monkeypatch.setenv("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "1")
    g = geometry(32, 64, 56, 64)
    assert not implicit.takes(g, np.dtype("float32"), 0, "forward")
    assert implicit.takes(g, np.dtype("float16"), 0, "forward")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", WAYS)
@pytest.mark.parametrize("number", [0, 1])
def test_a_copy_that_is_not_waited_for_is_found_out(tiled, monkeypatch, tmp_path, number, dtype):
    """By what was in shared memory before: NaN, or an earlier step's numbers."""
    for path in sources.FOLDER.iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    parts = (tmp_path / "implicit.cu").read_text().split("copy_wait<stages - 2>();")
    assert len(parts) == 3
    parts[number : number + 2] = ["".join(parts[number : number + 2])]
    (tmp_path / "implicit.cu").write_text("copy_wait<stages - 2>();".join(parts))
    monkeypatch.setattr(sources, "FOLDER", tmp_path)
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)
    monkeypatch.setattr(compiler, "_loaded", {})
    for cached in (sources.source, launching.kernel):
        cached.cache_clear()
    try:
        with pytest.raises(AssertionError):
            compare("gaps", dtype)  # so few that the emulation keeps them all
    finally:
        for cached in (sources.source, launching.kernel):
            cached.cache_clear()
