"""Wide and deep: a linear model over crossed features beside a network over embeddings, trained together.

The wide part reads csr matrices from a file in LibSVM's format and multiplies them with row_sparse weights. The deep
part looks categories up in embeddings, whose gradients hold only the rows of the batch. The records are drawn: part of
what decides is a pair of categories, which the wide part remembers, part is a smooth function of numbers, which the
deep part generalises.

python wide_and_deep.py
"""

import argparse

import numpy as np

import mxcore as mx


def parse_args():
    parser = argparse.ArgumentParser(description="Wide and deep learning with sparse weights.")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--categories", type=int, default=30, help="of each of the three fields")
    parser.add_argument("--embed", type=int, default=8, help="numbers that stand for a category")
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--path", default="wide.libsvm")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


FIELDS, NUMBERS = 3, 4


def draw(args, rng):
    """Write crossed pairs of categories and the labels to a file; the categories and numbers are returned, dense."""
    n, many = args.categories, args.categories**2
    fields = rng.integers(0, n, (args.rows, FIELDS))
    numbers = rng.normal(size=(args.rows, NUMBERS))
    crossed = np.stack([fields[:, 0] * n + fields[:, 1], many + fields[:, 1] * n + fields[:, 2]], 1)
    liked = rng.normal(size=2 * many)
    score = 1.5 * liked[crossed].sum(1) + np.tanh(2 * numbers[:, 0] * numbers[:, 1]) * 2
    with open(args.path, "w") as file:
        for pairs, good in zip(crossed, score > 0):
            print(int(good), *(f"{i}:1" for i in pairs), file=file)
    return np.hstack([fields, numbers]).astype(np.float32)


def batches(wide, deep):
    """Batches of the file with the rows of the dense part that belong to them."""
    wide.reset()
    size = wide.batch_size
    for i, batch in enumerate(wide):
        rows = mx.nd.array(deep[i * size : (i + 1) * size])
        yield mx.io.DataBatch([batch.data[0], rows], batch.label)


def symbol(args):
    wide = mx.sym.Variable("wide", stype="csr")
    weight = mx.sym.Variable("wide_weight", stype="row_sparse", shape=(2 * args.categories**2, 2))
    linear = mx.sym.broadcast_add(mx.sym.sparse.dot(wide, weight), mx.sym.Variable("wide_bias", shape=(1, 2)))

    deep = mx.sym.Variable("deep")
    parts = [mx.sym.slice_axis(deep, axis=1, begin=FIELDS, end=FIELDS + NUMBERS)]
    for i in range(FIELDS):
        table = mx.sym.Variable(f"embed{i}_weight", stype="row_sparse", shape=(args.categories, args.embed))
        field = mx.sym.reshape(mx.sym.slice_axis(deep, axis=1, begin=i, end=i + 1), shape=(-1,))
        parts.append(mx.sym.contrib.SparseEmbedding(field, table, input_dim=args.categories, output_dim=args.embed))
    x = mx.sym.concat(*parts, dim=1)
    for i in range(2):
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=args.hidden, name=f"fc{i}"), act_type="relu")
    out = linear + mx.sym.FullyConnected(x, num_hidden=2, name="deep")
    return mx.sym.SoftmaxOutput(out, mx.sym.Variable("softmax_label"), name="out")


def main():
    args = parse_args()
    rng = np.random.default_rng(args.seed)
    deep = draw(args, rng)
    wide = mx.io.LibSVMIter(data_libsvm=args.path, data_shape=(2 * args.categories**2,), batch_size=args.batch_size)

    net = symbol(args)
    mod = mx.mod.Module(net, data_names=["wide", "deep"])
    inputs = {"wide": (args.batch_size, 2 * args.categories**2), "deep": (args.batch_size, deep.shape[1])}
    mod.bind([*inputs.items()], [("softmax_label", (args.batch_size,))])
    shapes, _, _ = net.infer_shape(**inputs)
    start = {
        name: mx.nd.zeros(shape) if "bias" in name else mx.nd.array(rng.normal(0, 0.1, shape))
        for name, shape in zip(net.list_arguments(), shapes)
        if name not in ("wide", "deep", "softmax_label")
    }
    mod.init_params(arg_params=start, aux_params={})
    kv = mx.kv.create("local")
    mod.init_optimizer(kv, "adam", {"learning_rate": args.lr, "rescale_grad": 1.0 / args.batch_size})

    def rows_in_use(batch):
        fields = batch.data[1].asnumpy()[:, :FIELDS]
        rows = {f"embed{i}_weight": mx.nd.array(np.unique(fields[:, i]), dtype="int64") for i in range(FIELDS)}
        return {"wide_weight": batch.data[0].indices, **rows}

    for epoch in range(args.epochs):
        loss = right = number = 0
        for batch in batches(wide, deep):
            mod.prepare(batch, sparse_row_id_fn=rows_in_use)
            mod.forward_backward(batch)
            mod.update()
            p, y = mod.get_outputs()[0].asnumpy(), batch.label[0].asnumpy().astype(int)
            loss -= np.log(p[np.arange(len(y)), y].astype(np.float64)).sum()
            right, number = right + (p.argmax(1) == y).sum(), number + len(y)
        print(f"epoch {epoch}: loss {loss / number:.5f}, accuracy {right / number:.3f}")


if __name__ == "__main__":
    main()
