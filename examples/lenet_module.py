"""LeNet on handwritten digits with a Module, from a record file: images are shifted at random while they are read.

python lenet_module.py
python lenet_module.py --gpus 0,1 --epochs 20
"""

import argparse
import logging

import numpy as np
from mlp_module import digits

import mxcore as mx
from mxcore_io_rec import digits_files


def lenet(num_classes=10):
    body = mx.sym.Variable("data")
    for number, filters in (1, 20), (2, 50):
        body = mx.sym.Convolution(body, kernel=(5, 5), num_filter=filters, name=f"conv{number}")
        body = mx.sym.Activation(body, act_type="tanh", name=f"tanh{number}")
        body = mx.sym.Pooling(body, pool_type="max", kernel=(2, 2), stride=(2, 2), name=f"pool{number}")
    body = mx.sym.Flatten(body, name="flatten")
    body = mx.sym.FullyConnected(body, num_hidden=500, name="fc1")
    body = mx.sym.Activation(body, act_type="tanh", name="tanh3")
    body = mx.sym.FullyConnected(body, num_hidden=num_classes, name="fc2")
    return mx.sym.SoftmaxOutput(body, name="softmax")


def parse_args():
    parser = argparse.ArgumentParser(description="LeNet on handwritten digits with a Module.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--lr-factor", type=float, default=0.8, help="the learning rate shrinks by this every epoch")
    parser.add_argument("--gpus", default="", help="numbers of GPUs, such as 0,1; the CPU unless told")
    parser.add_argument(
        "--prefix", default="lenet", help="where checkpoints go: PREFIX-symbol.json, PREFIX-0001.params …"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(args.seed)
    np.random.seed(args.seed)

    train = mx.io.ImageRecordIter(
        **digits_files("train"),
        data_shape=(1, 28, 28),
        batch_size=args.batch_size,
        scale=1 / 255,
        shuffle=True,
        seed=args.seed,
        pad=2,
        rand_crop=True,
    )
    test = mx.io.NDArrayIter(*digits("test"), args.batch_size)

    ctx = [mx.gpu(int(i)) for i in args.gpus.split(",")] if args.gpus else mx.cpu()
    mod = mx.mod.Module(lenet(), context=ctx)
    steps = 1438 // args.batch_size  # in an epoch
    mod.fit(
        train,
        eval_data=test,
        eval_metric=["acc", "ce"],
        num_epoch=args.epochs,
        kvstore="device",
        initializer=mx.init.Xavier(magnitude=2),
        optimizer="sgd",
        optimizer_params={
            "momentum": 0.9,
            "wd": 1e-4,
            "lr_scheduler": mx.lr_scheduler.FactorScheduler(steps, args.lr_factor, base_lr=args.lr),
        },
        batch_end_callback=mx.callback.Speedometer(args.batch_size, frequent=10),
        epoch_end_callback=mx.callback.do_checkpoint(args.prefix),
    )
    print(f"test accuracy {dict(mod.score(test, 'acc'))['accuracy']:.4f}")

    # The checkpoint alone is enough to classify.
    symbol, arg_params, aux_params = mx.model.load_checkpoint(args.prefix, args.epochs)
    loaded = mx.mod.Module(symbol, context=ctx)
    loaded.bind(test.provide_data, test.provide_label, for_training=False)
    loaded.set_params(arg_params, aux_params)
    print(f"the same from {args.prefix}-{args.epochs:04d}.params {dict(loaded.score(test, 'acc'))['accuracy']:.4f}")


if __name__ == "__main__":
    main()
