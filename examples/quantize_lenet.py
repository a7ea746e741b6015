"""LeNet on handwritten digits over eight bits: trained in float32, quantised, and compared.

python quantize_lenet.py
python quantize_lenet.py --calib-mode entropy --dtype auto
"""

import argparse
import os
import time

import numpy as np
from mlp_module import digits

import mxcore as mx
from mxcore.contrib.quantization import quantize_model


def lenet(num_classes=10):
    body = mx.sym.Variable("data")
    for number, filters in (1, 20), (2, 50):
        body = mx.sym.Convolution(body, kernel=(5, 5), num_filter=filters, name=f"conv{number}")
        body = mx.sym.Activation(body, act_type="relu", name=f"relu{number}")
        body = mx.sym.Pooling(body, pool_type="max", kernel=(2, 2), stride=(2, 2), name=f"pool{number}")
    body = mx.sym.Flatten(body, name="flatten")
    body = mx.sym.FullyConnected(body, num_hidden=500, name="fc1")
    body = mx.sym.Activation(body, act_type="relu", name="relu3")
    body = mx.sym.FullyConnected(body, num_hidden=num_classes, name="fc2")
    return mx.sym.SoftmaxOutput(body, name="softmax")


def parse_args():
    parser = argparse.ArgumentParser(description="LeNet on handwritten digits over eight bits.")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--calib-mode", choices=["none", "naive", "entropy"], default="naive")
    parser.add_argument("--dtype", choices=["int8", "uint8", "auto"], default="int8")
    parser.add_argument("--mode", choices=["smart", "full"], default="smart")
    parser.add_argument("--exclude", nargs="*", default=[], help="layers that stay in float32")
    parser.add_argument("--prefix", default="lenet", help="where the models go: PREFIX-symbol.json, PREFIX-int8-…")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def scored(prefix, data):
    """A saved model's accuracy, its seconds for the data, and the bytes of its parameters."""
    mod = mx.mod.Module.load(prefix, 0)
    mod.bind(data.provide_data, data.provide_label, for_training=False)
    mod.score(data, "acc")
    start = time.perf_counter()
    accuracy = dict(mod.score(data, "acc"))["accuracy"]
    return accuracy, time.perf_counter() - start, os.path.getsize(f"{prefix}-0000.params")


def main():
    args = parse_args()
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    train = mx.io.NDArrayIter(*digits("train"), args.batch_size, shuffle=True)
    test = mx.io.NDArrayIter(*digits("test"), args.batch_size)

    mod = mx.mod.Module(lenet())
    mod.fit(
        train,
        num_epoch=args.epochs,
        initializer=mx.init.Xavier(magnitude=2),
        optimizer="sgd",
        optimizer_params={"learning_rate": args.lr, "momentum": 0.9, "wd": 1e-4},
    )
    sym, params = mod.symbol, mod.get_params()
    mx.model.save_checkpoint(args.prefix, 0, sym, *params)

    # Calibration sees some of the training data: what layers put out decides their ranges.
    train.reset()
    quantised = quantize_model(
        sym,
        *params,
        calib_mode=args.calib_mode,
        calib_data=None if args.calib_mode == "none" else train,
        num_calib_examples=512,
        quantized_dtype=args.dtype,
        quantize_mode=args.mode,
        excluded_sym_names=args.exclude,
    )
    mx.model.save_checkpoint(f"{args.prefix}-int8", 0, *quantised)

    for name, prefix in ("float32", args.prefix), (args.dtype, f"{args.prefix}-int8"):
        accuracy, seconds, size = scored(prefix, test)
        print(f"{name:8}test accuracy {accuracy:.4f}, {seconds * 1000:.0f} ms, {size} bytes of parameters")


if __name__ == "__main__":
    main()
