"""A perceptron on handwritten digits with a Module: fit, checkpoint, score, predict, go on from the checkpoint.

python mlp_module.py
python mlp_module.py --load-epoch 10 --epochs 12     # two epochs more
"""

import argparse
import logging

import numpy as np

import mxcore as mx
from mxcore_io_rec import digits_files


def digits(split):
    """The bundled digits of a split, 'train' or 'test': images (n, 1, 28, 28) from 0 to 1, and labels (n,)."""
    it = mx.io.ImageRecordIter(**digits_files(split), data_shape=(1, 28, 28), batch_size=100, scale=1 / 255)
    batches = [
        (batch.data[0][: 100 - batch.pad].asnumpy(), batch.label[0][: 100 - batch.pad].asnumpy()) for batch in it
    ]
    images, labels = zip(*batches)
    return np.concatenate(images), np.concatenate(labels)


def mlp():
    data = mx.sym.Flatten(mx.sym.Variable("data"))
    fc1 = mx.sym.FullyConnected(data, num_hidden=128, name="fc1")
    act1 = mx.sym.Activation(fc1, act_type="relu", name="relu1")
    fc2 = mx.sym.FullyConnected(act1, num_hidden=64, name="fc2")
    act2 = mx.sym.Activation(fc2, act_type="relu", name="relu2")
    fc3 = mx.sym.FullyConnected(act2, num_hidden=10, name="fc3")
    return mx.sym.SoftmaxOutput(fc3, name="softmax")


def parse_args():
    parser = argparse.ArgumentParser(description="A perceptron on handwritten digits with a Module.")
    parser.add_argument("--epochs", type=int, default=10, help="until which epoch to train")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument(
        "--prefix", default="mlp", help="where checkpoints go: PREFIX-symbol.json, PREFIX-0001.params …"
    )
    parser.add_argument("--load-epoch", type=int, default=0, help="go on from this checkpoint")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(args.seed)
    np.random.seed(args.seed)

    train = mx.io.NDArrayIter(*digits("train"), args.batch_size, shuffle=True)
    test = mx.io.NDArrayIter(*digits("test"), args.batch_size)

    if args.load_epoch:
        mod = mx.mod.Module.load(args.prefix, args.load_epoch)
    else:
        mod = mx.mod.Module(mlp())
    mod.fit(
        train,
        eval_data=test,
        eval_metric="acc",
        begin_epoch=args.load_epoch,
        num_epoch=args.epochs,
        initializer=mx.init.Xavier(),
        optimizer="sgd",
        optimizer_params={"learning_rate": args.lr, "momentum": 0.9},
        batch_end_callback=mx.callback.Speedometer(args.batch_size, frequent=20),
        epoch_end_callback=mx.callback.do_checkpoint(args.prefix),
    )

    for name, value in mod.score(test, ["acc", "ce"]):
        print(f"test {name} {value:.4f}")
    probabilities = mod.predict(test).asnumpy()
    print("predicted", *probabilities[:10].argmax(axis=1))
    print("labels   ", *test.label[0][1][:10].asnumpy().astype(int))


if __name__ == "__main__":
    main()
