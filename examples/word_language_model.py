"""A word-level language model in Gluon: an LSTM that reads a text as one long stream, cut into steps for training.

The stream is laid out in columns, one for each sample of a batch. Training goes down the columns a few words at a time:
the states of the LSTM go on from one piece to the next, but gradients end at its beginning (truncated backpropagation
through time), so the states are detached. The weights of the embedding may also be those of the last layer (--tied).

    python word_language_model.py
    python word_language_model.py --tied --embed 64 --layers 2 --dropout 0.2
    python word_language_model.py --text my.txt --valid-text my-other.txt --save model.params
    python word_language_model.py --load model.params --epochs 0 --start "there was an old man"
"""

import argparse
import math
import os
import re
import time

import numpy as np

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.gluon import nn, rnn

END = "<eos>"
HERE = os.path.dirname(os.path.abspath(__file__))


def read_lines(path):
    """The words of each line, and a sign for its end; titles, which are in capitals, are left out."""
    with open(path) as f:
        lines = [line for line in f if line.strip() and not line.isupper()]
    return [re.findall(r"[a-z]+(?:['-][a-z]+)*", line.lower()) + [END] for line in lines]


def columns(numbers, batch_size, ctx):
    """A stream as an array (steps, batch_size), whose columns follow each other; what is left over is dropped."""
    steps = len(numbers) // batch_size
    return nd.array(np.reshape(numbers[: steps * batch_size], (batch_size, steps)).T, ctx=ctx)


def pieces(source, length):
    """Words and the words after them, `length` steps at a time."""
    for start in range(0, len(source) - 1, length):
        stop = min(start + length, len(source) - 1)
        yield source[start:stop], source[start + 1 : stop + 1]


class LanguageModel(gluon.Block):
    """Embedding, LSTM and a layer of scores for the next word."""

    def __init__(self, vocab_size, embed, hidden, layers, dropout, tied, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.drop = nn.Dropout(dropout)
            self.embedding = nn.Embedding(vocab_size, embed, weight_initializer=mx.init.Uniform(0.1))
            self.lstm = rnn.LSTM(hidden, layers, dropout=dropout, input_size=embed)
            shared = {"params": self.embedding.params} if tied else {}
            self.scores = nn.Dense(vocab_size, in_units=hidden, flatten=False, **shared)

    def forward(self, words, states):
        found, states = self.lstm(self.drop(self.embedding(words)), states)
        return self.scores(self.drop(found)), states

    def begin(self, batch_size, ctx):
        """The states before the first word."""
        return self.lstm.begin_state(batch_size=batch_size, ctx=ctx)


def evaluate(model, source, args, ctx):
    """Perplexity of a stream."""
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    states, total, count = model.begin(source.shape[1], ctx), 0.0, 0
    for words, targets in pieces(source, args.bptt):
        scores, states = model(words, states)
        total += loss(scores.reshape((-3, -1)), targets.reshape((-1,))).sum().asscalar()
        count += targets.size
    return math.exp(total / count)


def train_epoch(model, trainer, source, args, ctx):
    """Go down the columns once; return the perplexity on the way."""
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    states, total, count = model.begin(source.shape[1], ctx), 0.0, 0
    for words, targets in pieces(source, args.bptt):
        states = [state.detach() for state in states]
        with autograd.record():
            scores, states = model(words, states)
            lost = loss(scores.reshape((-3, -1)), targets.reshape((-1,))).sum()
        lost.backward()
        # The loss is a sum over the words, so its gradients are as many times larger than those of a mean.
        gradients = [p.grad(ctx) for p in model.collect_params().values()]
        gluon.utils.clip_global_norm(gradients, args.clip * targets.size)
        trainer.step(targets.size)
        total += lost.asscalar()
        count += targets.size
    return math.exp(total / count)


def generate(model, words, vocab, args, ctx):
    """Go on with `words` to the end of the line, one word at a time."""
    numbers = {word: number for number, word in enumerate(vocab)}
    said, states = list(words), model.begin(1, ctx)
    feed = [numbers[word] for word in said]
    while True:
        scores, states = model(nd.array(feed, ctx=ctx).reshape((-1, 1)), states)
        probs = nd.softmax(scores[-1, 0] / args.temperature).asnumpy().astype("float64")
        feed = [np.random.choice(len(vocab), p=probs / probs.sum())]
        if vocab[feed[0]] == END or len(said) >= args.words:
            return " ".join(said)
        said.append(vocab[feed[0]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=os.path.join(HERE, "data", "rhymes.txt"))
    parser.add_argument("--valid-text", help="without it, every tenth line of the text is kept for validation")
    parser.add_argument("--embed", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument(
        "--tied",
        action="store_true",
        help="one matrix for the embedding and the scores; needs equal --embed and --hidden",
    )
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--bptt", type=int, default=16, help="steps that gradients go back")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument(
        "--clip", type=float, default=0.25, help="the largest norm of the gradients of a mean over words"
    )
    parser.add_argument("--load", help="begin with the weights of this file")
    parser.add_argument("--save", help="write the weights to this file, those with the best validation perplexity")
    parser.add_argument("--start", default="this is the", help="words to go on with")
    parser.add_argument("--words", type=int, default=14, help="the most words in a line")
    parser.add_argument("--temperature", type=float, default=0.5, help="small: only likely words; 1: as the model says")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.tied and args.embed != args.hidden:
        parser.error("--tied needs equal --embed and --hidden")
    np.random.seed(args.seed)
    mx.random.seed(args.seed)
    ctx = mx.gpu() if args.gpu else mx.cpu()

    lines = read_lines(args.text)
    if args.valid_text:
        train, valid = lines, read_lines(args.valid_text)
    else:
        train, valid = [line for i, line in enumerate(lines) if i % 10 != 9], lines[9::10]
    vocab = sorted({word for line in train + valid for word in line})
    numbers = {word: number for number, word in enumerate(vocab)}
    unknown = [word for word in args.start.split() if word not in numbers]
    if unknown or not args.start.strip():
        parser.error(f"--start needs words of the text, got {' '.join(unknown) or 'none'}")
    train, valid = (
        columns([numbers[word] for line in part for word in line], args.batch_size, ctx) for part in (train, valid)
    )
    print(f"{len(vocab)} words; {train.size} to train, {valid.size} to validate")

    model = LanguageModel(len(vocab), args.embed, args.hidden, args.layers, args.dropout, args.tied)
    model.initialize(mx.init.Xavier(), ctx=ctx)
    if args.load:
        model.load_parameters(args.load, ctx=ctx)
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": args.lr})
    best = evaluate(model, valid, args, ctx)
    print(f"epoch 0: validation perplexity {best:.2f}")
    if args.save:
        model.save_parameters(args.save)
    for epoch in range(1, args.epochs + 1):
        began = time.time()
        perplexity = train_epoch(model, trainer, train, args, ctx)
        speed = train.size / (time.time() - began)
        reached = evaluate(model, valid, args, ctx)
        print(f"epoch {epoch}: perplexity {perplexity:.2f}, validation perplexity {reached:.2f}, {speed:.0f} words/s")
        if reached < best:
            best = reached
            if args.save:
                model.save_parameters(args.save)
    for _ in range(3):
        print("> " + generate(model, args.start.split(), vocab, args, ctx))


if __name__ == "__main__":
    main()
