"""Products with csr matrices and lazy updates, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

import numpy as np

from .peer import serve

#: Rows, columns, values of a row, columns of the dense matrix. MXNet's wheel takes no matrix of 2**31 places or more: a
#: batch with all columns, and all rows with fewer columns, which do the same work together.
PRODUCTS = {"batch": (2_000, 10**6, 100, 64), "rows": (10**5, 20_000, 100, 64)}
#: What MXNet cannot hold.
WHOLE = (10**5, 10**6, 100, 64)
#: Rows and columns of the weight, and the share of its rows that have a gradient.
WEIGHT, SHARE = (10**6, 64), 100


def matrix(mx, rows, columns, each):
    """A csr matrix with so many values in each row, one in each of as many stretches of columns."""
    rng = np.random.default_rng(0)
    step = columns // each
    places = np.arange(each) * step + rng.integers(0, step, (rows, each))
    values = rng.random(rows * each, np.float32)
    parts = values, places.reshape(-1), np.arange(rows + 1) * each
    return mx.nd.sparse.csr_matrix(parts, shape=(rows, columns))


def product(mx, shape, backward):
    """A function that multiplies, and computes the row_sparse gradient of the dense matrix if that is asked for."""
    rows, columns, each, width = PRODUCTS.get(shape, WHOLE)
    a = matrix(mx, rows, columns, each)
    b = mx.nd.ones((columns, width))
    b.attach_grad(stype="row_sparse")

    def forward():
        y = mx.nd.dot(a, b)
        mx.nd.waitall()
        return y

    def both():
        with mx.autograd.record():
            y = mx.nd.dot(a, b)
        y.backward()
        mx.nd.waitall()
        return b.grad

    return both if backward else forward


def adam(mx, stype):
    """A function that moves the rows of a weight that have a gradient."""
    rows = np.arange(0, WEIGHT[0], SHARE)
    values = mx.nd.ones((len(rows), WEIGHT[1]))
    grad = mx.nd.sparse.row_sparse_array((values, mx.nd.array(rows, dtype="int64")), shape=WEIGHT)
    weight = mx.nd.ones(WEIGHT).tostype(stype)
    rule = mx.optimizer.Adam(learning_rate=0.01, lazy_update=True)
    state = rule.create_state(0, weight)

    def step():
        rule.update(0, weight, grad, state)
        mx.nd.waitall()
        return weight

    return step


CASES = {"product": product, "adam": adam}


if __name__ == "__main__":
    import mxnet

    serve(lambda case, *arguments: CASES[case](mxnet, *arguments))
