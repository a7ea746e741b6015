"""Attention with masks, several heads, positions, and a block of a transformer."""

import math

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()


def sequence_mask(X, valid_len, value=0):
    return npx.sequence_mask(X, valid_len, True, value=value, axis=1)


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return npx.softmax(X)
    shape = X.shape
    valid_lens = valid_lens.repeat(shape[1]) if valid_lens.ndim == 1 else valid_lens.reshape(-1)
    X = npx.sequence_mask(X.reshape(-1, shape[-1]), valid_lens, True, value=-1e6, axis=1)
    return npx.softmax(X).reshape(shape)


print(masked_softmax(np.arange(16.0).reshape(2, 2, 4) / 10, np.array([2, 3])))
print(masked_softmax(np.arange(16.0).reshape(2, 2, 4) / 10, np.array([[1, 3], [2, 4]])))
print(sequence_mask(np.array([[1, 2, 3], [4, 5, 6]]), np.array([1, 2])))


class DotProductAttention(nn.Block):
    def __init__(self, dropout, **kwargs):
        super().__init__(**kwargs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        d = queries.shape[-1]
        scores = npx.batch_dot(queries, keys, transpose_b=True) / math.sqrt(d)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return npx.batch_dot(self.dropout(self.attention_weights), values)


def transpose_qkv(X, num_heads):
    X = X.reshape(X.shape[0], X.shape[1], num_heads, -1)
    X = X.transpose(0, 2, 1, 3)
    return X.reshape(-1, X.shape[2], X.shape[3])


def transpose_output(X, num_heads):
    X = X.reshape(-1, num_heads, X.shape[1], X.shape[2])
    X = X.transpose(0, 2, 1, 3)
    return X.reshape(X.shape[0], X.shape[1], -1)


class MultiHeadAttention(nn.Block):
    def __init__(self, num_hiddens, num_heads, dropout, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.attention = DotProductAttention(dropout)
        self.W_q = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_k = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_v = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_o = nn.Dense(num_hiddens, use_bias=False, flatten=False)

    def forward(self, queries, keys, values, valid_lens):
        queries = transpose_qkv(self.W_q(queries), self.num_heads)
        keys = transpose_qkv(self.W_k(keys), self.num_heads)
        values = transpose_qkv(self.W_v(values), self.num_heads)
        if valid_lens is not None:
            valid_lens = valid_lens.repeat(self.num_heads, axis=0)
        output = self.attention(queries, keys, values, valid_lens)
        return self.W_o(transpose_output(output, self.num_heads))


class PositionalEncoding(nn.Block):
    def __init__(self, num_hiddens, max_len=50):
        super().__init__()
        self.P = np.zeros((1, max_len, num_hiddens))
        X = np.arange(max_len).reshape(-1, 1) / np.power(10000, np.arange(0, num_hiddens, 2) / num_hiddens)
        self.P[:, :, 0::2] = np.sin(X)
        self.P[:, :, 1::2] = np.cos(X)

    def forward(self, X):
        return X + self.P[:, : X.shape[1], :].as_in_ctx(X.ctx)


class EncoderBlock(nn.Block):
    def __init__(self, num_hiddens, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.attention = MultiHeadAttention(num_hiddens, num_heads, 0.0)
        self.ln1, self.ln2 = nn.LayerNorm(), nn.LayerNorm()
        self.ffn = nn.Sequential()
        self.ffn.add(nn.Dense(2 * num_hiddens, flatten=False, activation="relu"), nn.Dense(num_hiddens, flatten=False))

    def forward(self, X, valid_lens):
        Y = self.ln1(X + self.attention(X, X, X, valid_lens))
        return self.ln2(Y + self.ffn(Y))


@init.register
class Ripples(init.Initializer):
    def _init_weight(self, name, arr):
        arr[:] = np.cos(np.arange(arr.size).reshape(arr.shape) * 0.37) * 0.4


class Reader(nn.Block):
    def __init__(self, vocab, num_hiddens, **kwargs):
        super().__init__(**kwargs)
        self.embedding = nn.Embedding(vocab, num_hiddens)
        self.positions = PositionalEncoding(num_hiddens)
        self.block = EncoderBlock(num_hiddens, 2)
        self.out = nn.Dense(2)

    def forward(self, tokens, valid_lens):
        X = self.positions(self.embedding(tokens) * math.sqrt(8))
        return self.out(self.block(X, valid_lens).mean(axis=1))


net = Reader(7, 8)
net.initialize(Ripples())
rng = onp.random.RandomState(3)
tokens = np.array(rng.randint(0, 7, (24, 6)))
lens = np.array(rng.randint(3, 7, 24))
labels = np.array((tokens.asnumpy()[:, 0] > 3).astype("int32"))
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
loss = gluon.loss.SoftmaxCrossEntropyLoss()
for epoch in range(12):
    with autograd.record():
        l = loss(net(tokens, lens), labels)
    l.backward()
    trainer.step(24)
    if epoch % 3 == 2:
        print(epoch, float(l.mean()))
print(net.block.attention.attention.attention_weights.shape, net.block.attention.attention.attention_weights[0, 0])
