"""A language model of nursery rhymes: an LSTM over lines of different lengths, trained with BucketingModule.

Each line of the text is a sentence. Sentences of similar length share a bucket; every bucket has a symbol unrolled to
its own length, and all of them share parameters and memory. The script prints the model's perplexity beside that of a
model that knows only how often each word occurs, then loads its checkpoint and goes on with the given words.

    python bucketing_lstm.py
    python bucketing_lstm.py --fused          # one RNN operator in training, single cells for generating
    python bucketing_lstm.py --layers 2 --hidden 128 --start "this is the maiden"
"""

import argparse
import logging
import os
import random
import re

import numpy as np

import mxcore as mx

PAD, END = 0, "<end>"
HERE = os.path.dirname(os.path.abspath(__file__))


def read_sentences(path):
    """The words of each line, and a sign for its end; titles, which are in capitals, are left out."""
    with open(path) as f:
        lines = [line for line in f if line.strip() and not line.isupper()]
    return [re.findall(r"[a-z]+(?:['-][a-z]+)*", line.lower()) + [END] for line in lines]


def unigram_perplexity(sentences):
    """The perplexity, for the same words, of a model that knows their frequencies only."""
    counts = np.bincount([word for s in sentences for word in s[1:]])
    p = counts[counts > 0] / counts.sum()
    return np.exp(-(p * np.log(p)).sum())


def make_cells(args):
    """The recurrent layers, as one fused cell or as a stack of single ones."""
    if args.fused:
        return mx.rnn.FusedRNNCell(args.hidden, num_layers=args.layers, mode="lstm", prefix="lstm_")
    stack = mx.rnn.SequentialRNNCell()
    for i in range(args.layers):
        stack.add(mx.rnn.LSTMCell(args.hidden, prefix=f"lstm_l{i}_"))
    return stack


def predict(outputs, args, vocab_size):
    """Scores of the next word from the outputs of the last layer."""
    flat = mx.sym.Reshape(outputs, shape=(-1, args.hidden))
    return mx.sym.FullyConnected(flat, num_hidden=vocab_size, name="pred")


def generate(words, prefix, epoch, vocab, args):
    """Go on with `words`, one word at a time, by the weights of a checkpoint."""
    names = {number: word for word, number in vocab.items()}
    cells = make_cells(args)
    if args.fused:
        cells = cells.unfuse()
    _, arg_params, _ = mx.rnn.load_rnn_checkpoint(cells, prefix, epoch)

    # One step of the network, whose states come in as arrays and go out again.
    embed = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=len(vocab), output_dim=args.embed, name="embed")
    before = cells.begin_state(func=mx.sym.Variable)
    output, after = cells(embed, before)
    step = mx.sym.Group([mx.sym.softmax(predict(output, args, len(vocab)))] + after)
    state_names = [s.name for s in before]
    exe = step.simple_bind(mx.cpu(), grad_req="null", data=(1,), **dict.fromkeys(state_names, (1, args.hidden)))
    exe.copy_params_from(arg_params)

    said = []
    for word in words:
        said.append(word)
        probs = advance(exe, state_names, vocab[word])
    while len(said) < args.words:
        probs = probs ** (1 / args.temperature)
        word = names[np.random.choice(len(probs), p=probs / probs.sum())]
        if word == END:
            break
        said.append(word)
        probs = advance(exe, state_names, vocab[word])
    return " ".join(said)


def advance(exe, state_names, number):
    """Feed one word: the states move on, the probabilities of the next word come back."""
    outputs = exe.forward(is_train=False, data=mx.nd.array([number]))
    for name, state in zip(state_names, outputs[1:]):
        exe.arg_dict[name][:] = state
    probs = outputs[0].asnumpy()[0].astype("float64")
    probs[PAD] = 0
    return probs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", default=os.path.join(HERE, "data", "rhymes.txt"))
    parser.add_argument("--buckets", type=int, nargs="+", default=[4, 6, 8, 10, 14], help="lengths, in words")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--embed", type=int, default=32)
    parser.add_argument("--fused", action="store_true", help="train with FusedRNNCell")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--prefix", default="rhymes", help="of the checkpoint's files")
    parser.add_argument("--start", default="this is the", help="words to go on with")
    parser.add_argument("--words", type=int, default=14, help="the most words in a line")
    parser.add_argument("--temperature", type=float, default=0.5, help="small: only likely words; 1: as the model says")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for seed in (random.seed, np.random.seed, mx.random.seed):
        seed(args.seed)

    sentences, vocab = mx.rnn.encode_sentences(read_sentences(args.text), invalid_label=PAD, start_label=1)
    train = mx.rnn.BucketSentenceIter(sentences, args.batch_size, buckets=args.buckets, invalid_label=PAD, layout="TN")
    cells = make_cells(args)

    def sym_gen(length):
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        embed = mx.sym.Embedding(data, input_dim=len(vocab), output_dim=args.embed, name="embed")
        cells.reset()
        outputs, _ = cells.unroll(length, inputs=embed, layout="TNC", merge_outputs=True)
        scores = predict(outputs, args, len(vocab))
        out = mx.sym.SoftmaxOutput(
            scores, mx.sym.Reshape(label, shape=(-1,)), use_ignore=True, ignore_label=PAD, name="softmax"
        )
        return out, ("data",), ("softmax_label",)

    model = mx.mod.BucketingModule(sym_gen, default_bucket_key=train.default_bucket_key, context=mx.cpu())
    metric = mx.metric.Perplexity(ignore_label=PAD)
    model.fit(
        train,
        eval_metric=metric,
        optimizer="adam",
        optimizer_params={"learning_rate": args.lr, "clip_gradient": 5.0},
        initializer=mx.init.Xavier(factor_type="in", magnitude=2.34),
        num_epoch=args.epochs,
        batch_end_callback=mx.callback.Speedometer(args.batch_size, 50),
        epoch_end_callback=mx.rnn.do_rnn_checkpoint(cells, args.prefix, period=args.epochs),
    )

    train.reset()
    print(f"perplexity of the words' frequencies: {unigram_perplexity(sentences):.1f}")
    print(f"perplexity of the LSTM: {model.score(train, metric)[0][1]:.2f}")
    for _ in range(3):
        print("> " + generate(args.start.split(), args.prefix, args.epochs, vocab, args))


if __name__ == "__main__":
    main()
