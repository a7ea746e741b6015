"""A factorisation machine on sparse rows: LibSVMIter, csr products, and weights of which only the rows in use move.

It draws rows of a few features out of many, whose labels depend on pairs of features, writes them in LibSVM's format,
and learns which: a linear model cannot.

python factorization_machine.py
"""

import argparse
import logging

import numpy as np

import mxcore as mx


def parse_args():
    parser = argparse.ArgumentParser(description="A factorisation machine with sparse weights.")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=1000, help="features that there are")
    parser.add_argument("--active", type=int, default=12, help="features of a row")
    parser.add_argument("--factors", type=int, default=8, help="numbers that stand for a feature")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--optimizer", default="adam", choices=["adam", "sgd", "adagrad"])
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--path", default="pairs.libsvm")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def draw(args, rng):
    """Write rows whose labels are the signs of sums over pairs of hidden vectors."""
    hidden = rng.normal(size=(args.columns, 2))
    with open(args.path, "w") as file:
        for _ in range(args.rows):
            # Some features are in many rows.
            at = np.unique((args.columns * rng.random(args.active) ** 3).astype(int))
            total = hidden[at].sum(0)
            pairs = ((total**2).sum() - (hidden[at] ** 2).sum()) / 2
            print(int(pairs > 0), *(f"{i}:1" for i in at), file=file)


def symbol(columns, factors):
    """``sigmoid(b + w.x + sum over pairs of (v_i . v_j) x_i x_j)``, its pairs by ``((x.v)^2 - x^2.v^2) / 2``."""
    x = mx.sym.Variable("data", stype="csr")
    w = mx.sym.Variable("w", stype="row_sparse", shape=(columns, 1))
    v = mx.sym.Variable("v", stype="row_sparse", shape=(columns, factors))
    b = mx.sym.Variable("b", shape=(1, 1))
    linear = mx.sym.broadcast_add(mx.sym.sparse.dot(x, w), b)
    squares = mx.sym.sparse.dot(mx.sym.square(x), mx.sym._internal._square_sum(v, axis=1, keepdims=True))
    pairs = mx.sym.sum(mx.sym.square(mx.sym.sparse.dot(x, v)), axis=1, keepdims=True) - squares
    return mx.sym.LogisticRegressionOutput(linear + 0.5 * pairs, mx.sym.Variable("softmax_label"), name="out")


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    rng = np.random.default_rng(args.seed)
    draw(args, rng)
    data = mx.io.LibSVMIter(data_libsvm=args.path, data_shape=(args.columns,), batch_size=args.batch_size)

    mod = mx.mod.Module(symbol(args.columns, args.factors))
    mod.bind(data.provide_data, data.provide_label)
    start = {n: rng.normal(0, 0.1, (args.columns, width)) for n, width in (("w", 1), ("v", args.factors))}
    mod.init_params(arg_params={n: mx.nd.array(a) for n, a in {**start, "b": [[0.0]]}.items()}, aux_params={})
    kv = mx.kv.create("local")
    mod.init_optimizer(kv, args.optimizer, {"learning_rate": args.lr, "rescale_grad": 1.0 / args.batch_size})

    def rows_in_use(batch):
        return {"w": batch.data[0].indices, "v": batch.data[0].indices}

    for epoch in range(args.epochs):
        data.reset()
        loss = right = number = 0
        for batch in data:
            mod.prepare(batch, sparse_row_id_fn=rows_in_use)
            mod.forward_backward(batch)
            mod.update()
            p = mod.get_outputs()[0].asnumpy().ravel().astype(np.float64)
            y = batch.label[0].asnumpy()
            loss -= (y * np.log(p) + (1 - y) * np.log(1 - p)).sum()
            right, number = right + ((p > 0.5) == y).sum(), number + len(y)
        print(f"epoch {epoch}: loss {loss / number:.5f}, accuracy {right / number:.3f}")
    print("storage of the weights:", *(mod._exec_group.execs[0].arg_dict[n].stype for n in ("w", "v")))


if __name__ == "__main__":
    main()
