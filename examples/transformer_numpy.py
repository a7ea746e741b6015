"""A small transformer that writes rhymes, with mx.np: its blocks say in ``forward`` what they compute.

Each character is guessed from those before it: attention looks at earlier places only. Eagerly the blocks run operator
by operator; with --hybridize each runs once on arrays, and from then on as one graph.

    python transformer_numpy.py
    python transformer_numpy.py --hybridize --epochs 20
    python transformer_numpy.py --text my.txt --layers 4 --units 128 --heads 8 --save model.params
"""

import argparse
import math
import os
import time

import numpy as onp

import mxcore as mx
from mxcore import autograd, gluon, np, npx
from mxcore.gluon import nn

HERE = os.path.dirname(os.path.abspath(__file__))

npx.set_np()


class Attention(gluon.HybridBlock):
    """Several heads of attention over earlier places."""

    def __init__(self, units, heads, dropout):
        super().__init__()
        self.heads = heads
        self.keys = nn.Dense(3 * units, flatten=False, use_bias=False)  # with queries and values
        self.out = nn.Dense(units, flatten=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, steps, units = x.shape
        found = self.keys(x).reshape(batch, steps, 3, self.heads, units // self.heads).transpose(2, 0, 3, 1, 4)
        queries, keys, values = (part.reshape(-1, steps, units // self.heads) for part in found)
        scores = npx.batch_dot(queries, keys, transpose_b=True) / math.sqrt(units // self.heads)
        later = np.arange(steps) > np.arange(steps).reshape(-1, 1)
        weights = self.dropout(npx.softmax(np.where(later, -1e9, scores)))
        heads = np.matmul(weights, values).reshape(batch, self.heads, steps, -1)
        return self.out(heads.transpose(0, 2, 1, 3).reshape(batch, steps, units))


class Layer(gluon.HybridBlock):
    """Attention and a perceptron for each place, both added to what they see."""

    def __init__(self, units, heads, dropout):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(), Attention(units, heads, dropout)
        self.mlp = nn.HybridSequential()
        self.mlp.add(
            nn.LayerNorm(),
            nn.Dense(4 * units, flatten=False, activation="relu"),
            nn.Dense(units, flatten=False),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class Writer(gluon.HybridBlock):
    """Characters and their places, layers, and scores for the next character."""

    def __init__(self, vocab, units, heads, layers, steps, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocab, units)
        self.places = self.params.get("places", shape=(steps, units), init=mx.init.Normal(0.1))
        self.layers = nn.HybridSequential()
        for _ in range(layers):
            self.layers.add(Layer(units, heads, dropout))
        self.norm, self.scores = nn.LayerNorm(), nn.Dense(vocab, flatten=False)

    def forward(self, characters):
        x = self.embedding(characters) + self.places.data()[: characters.shape[1]]
        return self.scores(self.norm(self.layers(x)))


def pieces(stream, steps, batch_size, rng):
    """Random pieces of the text, and the characters after them."""
    starts = rng.integers(0, len(stream) - steps - 1, size=(batch_size, 1))
    found = stream[starts + onp.arange(steps + 1)]
    return np.array(found[:, :-1]), np.array(found[:, 1:])


def write(model, alphabet, start, length, steps, temperature, rng):
    """Go on with `start`, one character at a time."""
    said = [alphabet.index(c) for c in start]
    for _ in range(length):
        scores = model(np.array([said[-steps:]]))[0, -1]
        chances = npx.softmax(scores / temperature).asnumpy().astype("float64")
        said.append(int(rng.choice(len(alphabet), p=chances / chances.sum())))
    return "".join(alphabet[i] for i in said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=os.path.join(HERE, "data", "rhymes.txt"))
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=48, help="characters that a guess may look back to")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=8, help="of 25 batches each")
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--hybridize", action="store_true", help="run the model as one graph")
    parser.add_argument("--save", help="write the weights to this file")
    parser.add_argument("--start", default="this is the ", help="characters to go on with")
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.units % args.heads:
        parser.error("--units must be a multiple of --heads")
    mx.random.seed(args.seed)
    onp.random.seed(args.seed)
    rng = onp.random.default_rng(args.seed)

    with open(args.text) as f:
        text = f.read().lower()
    alphabet = sorted({*text, *args.start})
    stream = onp.array([alphabet.index(c) for c in text])
    print(f"{len(stream)} characters, {len(alphabet)} different ones")

    model = Writer(len(alphabet), args.units, args.heads, args.layers, args.steps, args.dropout)
    model.initialize(mx.init.Xavier())
    if args.hybridize:
        model.hybridize()
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": args.lr})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(1, args.epochs + 1):
        began, total = time.time(), 0.0
        for _ in range(25):
            x, y = pieces(stream, args.steps, args.batch_size, rng)
            with autograd.record():
                lost = loss(model(x), y).mean()
            lost.backward()
            trainer.step(1)
            total += lost.item()
        speed = 25 * args.batch_size * args.steps / (time.time() - began)
        print(f"epoch {epoch}: {total / 25 / math.log(2):.3f} bits a character, {speed:.0f} characters/s")
    if args.save:
        model.save_parameters(args.save)
    print("> " + write(model, alphabet, args.start, args.length, args.steps, args.temperature, rng))


if __name__ == "__main__":
    main()
