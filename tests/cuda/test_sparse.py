"""Sparse arrays on a device that is not the active one."""

import pickle

import numpy as np
import pytest

import mxcore as mx

X = np.array([[0, 0, 0], [1, 0, 2], [0, 0, 0], [3, 4, 0]], "float32")


@pytest.fixture(params=["csr", "row_sparse"])
def sparse(request, gpus):
    """An array of device 1, while device 0 is active."""
    x = mx.nd.array(X, ctx=gpus[1]).tostype(request.param)
    x.wait_to_read()
    gpus[0].activate()
    return x


USES = {
    "asnumpy": lambda x: x,
    "copy": lambda x: x.copy(),
    "astype": lambda x: x.astype("float64"),
    "tostype": lambda x: x.tostype("default"),
    "another device": lambda x: x.as_in_context(mx.gpu(0)),
    "the CPU": lambda x: x.as_in_context(mx.cpu()),
    "copyto": lambda x: x.copyto(mx.nd.zeros(X.shape, ctx=mx.gpu(0)).tostype(x.stype)),
    "an operator": lambda x: x + x * 0,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "x[:]": lambda x: x[:],
}


@pytest.mark.parametrize("use", USES)
def test_what_is_done_with_them(gpus, sparse, use):
    found = USES[use](sparse)
    gpus[0].activate()
    np.testing.assert_array_equal(found.asnumpy(), X)


def test_their_parts(gpus, sparse):
    parts = ("indices", "data", *(["indptr"] if sparse.stype == "csr" else []))
    for name in parts:
        gpus[0].activate()
        assert getattr(sparse, name).asnumpy().size
    gpus[0].activate()
    sparse.check_format()


@pytest.mark.parametrize("kind", ["local", "device"])
def test_stores_add_up_and_hand_out_rows_between_devices(gpus, kind):
    kv = mx.kv.create(kind)
    kv.init("w", mx.nd.array(X, ctx=gpus[1]).tostype("row_sparse"))
    outs = [mx.nd.zeros(X.shape, ctx=ctx).tostype("row_sparse") for ctx in gpus]
    for ctx in gpus:
        ctx.activate()
        kv.row_sparse_pull("w", out=outs, row_ids=[mx.nd.array([1, 3, 3], ctx=c) for c in gpus])
        assert [o.context for o in outs] == [*gpus]
        for o in outs:
            np.testing.assert_array_equal(o.asnumpy(), X)
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, wd=0.0))
    grads = [mx.nd.array(X * (i + 1), ctx=c).tostype("row_sparse") for i, c in enumerate(gpus)]
    gpus[0].activate()
    kv.push("w", grads)
    kv.row_sparse_pull("w", out=outs[1], row_ids=mx.nd.arange(4, ctx=gpus[0]))
    np.testing.assert_array_equal(outs[1].asnumpy(), -2 * X)


@pytest.mark.parametrize("row", [3, -1, 2**32 + 1])
def test_rows_to_retain_that_there_are_not_are_refused(gpus, row):
    """The kernels count in 32 bits, in which 2**32 + 1 is a row that there is."""
    kept = mx.nd.array([row], ctx=gpus[0], dtype="int64")
    with pytest.raises(IndexError):
        mx.nd.sparse.retain(mx.nd.ones((3, 2), ctx=gpus[0]), kept).asnumpy()
