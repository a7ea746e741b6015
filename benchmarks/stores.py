"""Steps of KVStores on two contexts, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

from .peer import serve

#: Elements of all values together: 40 MB.
SIZE = 10 << 20
#: Of row-sparse values: the length of a row, and how many rows each context pushes and pulls.
WIDTH, ROWS = 64, 1 << 14
TYPES = ("local", "device")
KEYS = (1, 10, 60)


def _store(mx, kind, keys, values):
    kv = mx.kv.create(kind)
    kv.init(keys, values)
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    return kv


def dense(mx, kind, number):
    """A function that pushes gradients of so many values from both contexts, pulls the values to both, and waits."""
    keys, shape = list(range(number)), (SIZE // number,)
    kv = _store(mx, kind, keys, [mx.nd.ones(shape) for _ in keys])
    grads, outs = ([[mx.nd.ones(shape, ctx=mx.cpu(i)) for i in range(2)] for _ in keys] for _ in range(2))

    def step():
        kv.push(keys, grads)
        kv.pull(keys, out=outs)
        mx.nd.waitall()
        return outs

    return step


def row_sparse(mx, kind):
    """A function that pushes some rows of one value from both contexts, pulls them to both, and waits."""
    shape = SIZE // WIDTH, WIDTH
    kv = _store(mx, kind, "w", mx.nd.ones(shape).tostype("row_sparse"))
    grads, outs, ids = [], [], []
    for i in range(2):
        rows = mx.nd.arange(0, (i + 2) * ROWS, i + 2)  # every second or third: a part of them from both
        ids.append(rows.as_in_context(mx.cpu(i)))
        data = mx.nd.ones((ROWS, WIDTH))
        grads.append(mx.nd.sparse.row_sparse_array((data, rows), shape=shape, ctx=mx.cpu(i)))
        outs.append(mx.nd.sparse.zeros("row_sparse", shape, ctx=mx.cpu(i)))

    def step():
        kv.push("w", grads)
        kv.row_sparse_pull("w", out=outs, row_ids=ids)
        mx.nd.waitall()
        return outs

    return step


CASES = {"dense": dense, "row_sparse": row_sparse}


if __name__ == "__main__":
    import mxnet

    serve(lambda case, *arguments: CASES[case](mxnet, *arguments))
