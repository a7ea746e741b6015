"""Linear regression from scratch with mx.np: data, model, loss and descent are a few functions over arrays.

python linear_regression_numpy.py
python linear_regression_numpy.py --epochs 5 --lr 0.1
"""

import argparse

import mxcore as mx
from mxcore import autograd, np, npx

npx.set_np()


def synthetic(weight, bias, count):
    """Points whose labels follow a line, with a little noise."""
    features = np.random.normal(size=(count, len(weight)))
    labels = np.dot(features, weight) + bias
    return features, labels + np.random.normal(scale=0.01, size=labels.shape)


def batches(features, labels, size):
    """The points in a random order, `size` at a time."""
    order = np.arange(len(features), dtype="int64")
    np.random.shuffle(order)
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield features[chosen], labels[chosen]


def squared_loss(found, labels):
    """Half of the squared distance of each point."""
    return (found - labels.reshape(found.shape)) ** 2 / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    mx.random.seed(args.seed)

    true_weight, true_bias = np.array([2, -3.4]), 4.2
    features, labels = synthetic(true_weight, true_bias, args.points)
    weight, bias = np.random.normal(scale=0.01, size=(2, 1)), np.zeros(1)
    weight.attach_grad()
    bias.attach_grad()
    for epoch in range(1, args.epochs + 1):
        for x, y in batches(features, labels, args.batch_size):
            with autograd.record():
                loss = squared_loss(np.dot(x, weight) + bias, y)
            loss.backward()
            for parameter in (weight, bias):
                parameter[:] -= args.lr * parameter.grad / len(x)
        print(f"epoch {epoch}: loss {float(squared_loss(np.dot(features, weight) + bias, labels).mean()):.6f}")
    print(f"weight off by {np.abs(true_weight - weight.reshape(-1)).max().item():.4f}, ", end="")
    print(f"bias by {abs(true_bias - bias.item()):.4f}")


if __name__ == "__main__":
    main()
