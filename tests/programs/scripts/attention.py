"""A sequence-to-sequence network with attention."""

from mxnet import autograd, gluon, init, nd
from mxnet.contrib import text
from mxnet.gluon import data as gdata, loss as gloss, nn, rnn
import collections, io, math, numpy as np, mxnet as mx

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"
pairs = [("ils regardent .", "they are watching ."), ("elle dort .", "she sleeps ."), ("il est vieux .", "he is old .")]


def proc(seq, all_t, all_s, L):
    t = seq.split(" ")
    all_t.extend(t)
    t += [EOS] + [PAD] * (L - len(t) - 1)
    all_s.append(t)


def build(all_t, all_s):
    v = text.vocab.Vocabulary(collections.Counter(all_t), reserved_tokens=[PAD, BOS, EOS])
    return v, nd.array([v.to_indices(s) for s in all_s])


it, is_, ot, os_ = [], [], [], []
for a, b in pairs:
    proc(a, it, is_, 7)
    proc(b, ot, os_, 7)
iv, idata = build(it, is_)
ov, odata = build(ot, os_)
print(len(iv), len(ov), idata[0])


class Enc(nn.Block):
    def __init__(s, v, e, h, l, **k):
        super().__init__(**k)
        s.embedding = nn.Embedding(v, e)
        s.rnn = rnn.GRU(h, l)

    def forward(s, x, state):
        return s.rnn(s.embedding(x).swapaxes(0, 1), state)

    def begin_state(s, *a, **k):
        return s.rnn.begin_state(*a, **k)


def att(model, es, ds):
    d = nd.broadcast_axis(ds.expand_dims(0), axis=0, size=es.shape[0])
    e = model(nd.concat(es, d, dim=2))
    return (nd.softmax(e, axis=0) * es).sum(axis=0)


class Dec(nn.Block):
    def __init__(s, v, e, h, l, a, **k):
        super().__init__(**k)
        s.embedding = nn.Embedding(v, e)
        s.attention = nn.Sequential()
        s.attention.add(
            nn.Dense(a, activation="tanh", use_bias=False, flatten=False), nn.Dense(1, use_bias=False, flatten=False)
        )
        s.rnn = rnn.GRU(h, l)
        s.out = nn.Dense(v, flatten=False)

    def forward(s, x, st, es):
        c = att(s.attention, es, st[0][-1])
        y = nd.concat(s.embedding(x), c, dim=1)
        o, st = s.rnn(y.expand_dims(0), st)
        return s.out(o).squeeze(axis=0), st

    def begin_state(s, e):
        return e


enc, dec = Enc(len(iv), 4, 5, 2), Dec(len(ov), 4, 5, 2, 3)


class C(mx.init.Initializer):
    def _init_weight(s, n, a):
        a[:] = np.cos(np.arange(a.size)).reshape(a.shape) * 0.3


for m in (enc, dec):
    m.initialize(C(), force_reinit=True)
te, td = [gluon.Trainer(m.collect_params(), "adam", {"learning_rate": 0.05}) for m in (enc, dec)]
L = gloss.SoftmaxCrossEntropyLoss()
for ep in range(4):
    with autograd.record():
        B = 3
        st = enc.begin_state(batch_size=B)
        eo, est = enc(idata, st)
        ds = dec.begin_state(est)
        di = nd.array([ov.token_to_idx[BOS]] * B)
        mask, n = nd.ones((B,)), 0
        l = nd.array([0])
        for y in odata.T:
            o, ds = dec(di, ds, eo)
            l = l + (mask * L(o, y)).sum()
            di = y
            n += mask.sum().asscalar()
            mask = mask * (y != ov.token_to_idx[EOS])
        l = l / n
    l.backward()
    te.step(1)
    td.step(1)
    print("%.5f" % l.asscalar(), n)
