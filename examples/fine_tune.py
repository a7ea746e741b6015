"""Fine-tuning: keep the convolutions of a trained network, put a new head on them, learn a new task from few images.

    python fine_tune.py

LeNet learns the digits 0 to 4 and goes into a checkpoint. A new head on its convolutions, which stay as they are, then
learns 5 to 9 from a few images of each; so does a whole new LeNet, for comparison.
"""

import argparse
import logging

import numpy as np
from lenet_module import lenet
from mlp_module import digits

import mxcore as mx


def choose(images, labels, first, per_class=None):
    """The images of `first` and the four digits after it, the first `per_class` of each; labels are 0 to 4."""
    keep = np.concatenate([np.flatnonzero(labels == d)[:per_class] for d in range(first, first + 5)])
    return images[keep], labels[keep] - first


def with_new_head(symbol, arg_params, layer, num_classes):
    """Cut a network behind a layer and put a new head there; the parameters that are still of use."""
    body = symbol.get_internals()[f"{layer}_output"]
    net = mx.sym.FullyConnected(body, num_hidden=num_classes, name="new_fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    return net, {name: value for name, value in arg_params.items() if name in body.list_arguments()}


def fit(symbol, train, epochs, lr, fixed_param_names=None, **kwargs):
    """Train a Module; `kwargs` go to `Module.fit`."""
    mod = mx.mod.Module(symbol, fixed_param_names=fixed_param_names)
    mod.fit(
        train,
        num_epoch=epochs,
        initializer=mx.init.Mixed(["new_fc", ".*"], [mx.init.Zero(), mx.init.Xavier()]),
        optimizer="sgd",
        optimizer_params={"learning_rate": lr, "momentum": 0.9},
        **kwargs,
    )
    return mod


def parse_args():
    parser = argparse.ArgumentParser(description="Fine-tuning from a checkpoint.")
    parser.add_argument("--epochs", type=int, default=5, help="of the first training")
    parser.add_argument("--tune-epochs", type=int, default=3, help="of fine-tuning, and of the comparison")
    parser.add_argument("--per-class", type=int, default=10, help="how many images of each digit to fine-tune with")
    parser.add_argument("--batch-size", type=int, default=25)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--prefix", default="digits-0-4", help="where the checkpoint goes")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    train, test = digits("train"), digits("test")

    def images(split, first, per_class=None, shuffle=True):
        return mx.io.NDArrayIter(*choose(*split, first, per_class), args.batch_size, shuffle=shuffle)

    fit(
        lenet(num_classes=5),
        images(train, 0),
        args.epochs,
        args.lr,
        epoch_end_callback=mx.callback.do_checkpoint(args.prefix),
    )

    symbol, arg_params, aux_params = mx.model.load_checkpoint(args.prefix, args.epochs)
    net, body_params = with_new_head(symbol, arg_params, "flatten", num_classes=5)
    few = images(train, 5, args.per_class)
    tuned = fit(
        net,
        few,
        args.tune_epochs,
        args.lr,
        fixed_param_names=list(body_params),
        arg_params=body_params,
        aux_params=aux_params,
        allow_missing=True,
    )
    fresh = fit(lenet(num_classes=5), few, args.tune_epochs, args.lr)

    after = tuned.get_params()[0]
    kept = [name for name, value in body_params.items() if (after[name].asnumpy() == value.asnumpy()).all()]
    unseen = images(test, 5, shuffle=False)
    print("kept", *sorted(kept))
    print("learned", *sorted(set(after) - set(kept)))
    print(f"fine-tuned accuracy {dict(tuned.score(unseen, 'acc'))['accuracy']:.3f}")
    print(f"from scratch accuracy {dict(fresh.score(unseen, 'acc'))['accuracy']:.3f}")


if __name__ == "__main__":
    main()
