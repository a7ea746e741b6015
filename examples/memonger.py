"""Training a deep network in sublinear memory: results of the forward pass are computed again in backward, not kept.

A network of n layers keeps n results for its backward pass. If only every √n-th is kept and those between are computed
again from it, about 2·√n suffice, for the price of a second forward pass (Chen et al., "Training deep nets with
sublinear memory cost", 2016). A symbol asks for it by the attribute `force_mirroring`; `MXNET_BACKWARD_DO_MIRROR=1`
does it for the cheap operators of any network (activations, products by element; no matrix products). The script prints
the memory that each way plans, compares the gradients, and trains the network each way.

    python memonger.py
    python memonger.py --layers 144 --hidden 128
"""

import argparse
import math
import os
import re
import time

import numpy as np

import mxcore as mx


def deep_network(args, sublinear=False):
    """Stages of √n layers, x · sigmoid(x) after each, and a short cut past each; `sublinear` keeps their joints."""
    stage = round(math.sqrt(args.layers))
    hidden = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=args.hidden, name="first")
    for i in range(0, args.layers, stage):
        x = hidden
        with mx.AttrScope(force_mirroring="True") if sublinear else mx.AttrScope():
            for j in range(i, min(i + stage, args.layers)):
                x = mx.sym.FullyConnected(x, num_hidden=args.hidden, name=f"layer{j}")
                x = x * mx.sym.sigmoid(x, name=f"gate{j}")
        hidden = hidden + x
    scores = mx.sym.FullyConnected(hidden, num_hidden=args.classes, name="scores")
    return mx.sym.SoftmaxOutput(scores, normalization="batch", name="softmax")


def bind(net, args, cheap_again):
    """An executor; the environment variable counts when it is made."""
    os.environ["MXNET_BACKWARD_DO_MIRROR"] = "1" if cheap_again else "0"
    return net.simple_bind(mx.cpu(), data=(args.batch_size, args.features), softmax_label=(args.batch_size,))


def planned_megabytes(exe):
    """What an executor plans for the results of its operators, parameters and their gradients aside."""
    return int(re.search(r"Total (\d+) MB allocated", exe.debug_str()).group(1))


def clusters(args):
    """Points around one centre for each class."""
    centres = np.random.normal(size=(args.classes, args.features))
    y = np.random.randint(0, args.classes, args.examples)
    return centres[y] + 0.7 * np.random.normal(size=(args.examples, args.features)), y


def train(exe, values, x, y, args):
    """Gradients of the first batch, and the loss of each epoch, by plain gradient descent."""
    for name, value in values.items():
        exe.arg_dict[name][:] = value
    first, losses = None, []
    for _ in range(args.epochs):
        loss = []
        for i in range(0, len(x) - args.batch_size + 1, args.batch_size):
            labels = y[i : i + args.batch_size]
            exe.forward(is_train=True, data=mx.nd.array(x[i : i + args.batch_size]), softmax_label=mx.nd.array(labels))
            exe.backward()
            first = first or {name: exe.grad_dict[name].asnumpy() for name in values}
            for name in values:
                exe.arg_dict[name][:] -= args.lr * exe.grad_dict[name]
            probs = exe.outputs[0].asnumpy()
            loss.append(-np.log(probs[np.arange(len(labels)), labels] + 1e-12).mean())
        losses.append(np.mean(loss))
    return first, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--examples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    np.random.seed(args.seed)
    mx.random.seed(args.seed)

    ways = {
        "everything kept": (deep_network(args), False),
        "cheap operators again": (deep_network(args), True),
        "sublinear": (deep_network(args, sublinear=True), False),
    }
    x, y = clusters(args)
    values, expected = None, None
    for way, (net, cheap_again) in ways.items():
        exe = bind(net, args, cheap_again)
        if values is None:
            init = mx.init.Xavier(magnitude=4)
            for name, array in exe.arg_dict.items():
                if name not in ("data", "softmax_label"):
                    init(mx.init.InitDesc(name), array)
            values = {name: a.asnumpy() for name, a in exe.arg_dict.items() if name not in ("data", "softmax_label")}
        start = time.time()
        grads, losses = train(exe, values, x, y, args)
        expected = expected or grads
        difference = max(np.abs(grads[name] - expected[name]).max() / np.abs(expected[name]).max() for name in grads)
        print(
            f"{way + ':':22} {planned_megabytes(exe):4} MB planned, {time.time() - start:4.1f} s, "
            f"loss {losses[0]:.3f} to {losses[-1]:.3f}, gradients differ by {difference:g}"
        )


if __name__ == "__main__":
    main()
