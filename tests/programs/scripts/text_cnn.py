"""A network on text, with embeddings from a file."""

import mxnet as mx, numpy as np, collections, os, tempfile, warnings
from mxnet import nd, gluon, autograd
from mxnet.contrib import text
from mxnet.gluon import nn

d = tempfile.mkdtemp()
p = os.path.join(d, "e.txt")
open(p, "w").write(
    "\n".join(
        "%s %s" % (w, " ".join("%.2f" % (np.cos(i * k)) for k in range(1, 5)))
        for i, w in enumerate("good bad film actor the a".split())
    )
    + "\n"
)
e = text.embedding.CustomEmbedding(p, init_unknown_vec=nd.zeros)
print(len(e), e.vec_len, e.get_vecs_by_tokens(["good", "nope"]), e.to_indices(["bad", "x"]), e.to_tokens([1, 2]))
c = text.utils.count_tokens_from_str("the good film . a bad film", to_lower=True)
v = text.vocab.Vocabulary(c, min_freq=1, reserved_tokens=["<pad>"])
print(v.idx_to_token, v.token_to_idx["film"], sorted(c.items()))
ce = text.embedding.CompositeEmbedding(v, [e, e])
print(ce.idx_to_vec.shape, ce.get_vecs_by_tokens("film"))
e.update_token_vectors("good", nd.array([1, 2, 3, 4]))
print(e.get_vecs_by_tokens("good"))


class TextCNN(nn.Block):
    def __init__(s, n, k, ks, ch, **kw):
        super().__init__(**kw)
        s.embedding = nn.Embedding(n, k)
        s.ce = nn.Embedding(n, k)
        s.dropout = nn.Dropout(0.0)
        s.decoder = nn.Dense(2)
        s.pool = nn.GlobalMaxPool1D()
        s.convs = nn.Sequential()
        for a, b in zip(ch, ks):
            s.convs.add(nn.Conv1D(a, b, activation="relu"))

    def forward(s, x):
        y = nd.concat(s.embedding(x), s.ce(x), dim=2).transpose((0, 2, 1))
        return s.decoder(s.dropout(nd.concat(*[nd.flatten(s.pool(c(y))) for c in s.convs], dim=1)))


net = TextCNN(len(v), 4, [2, 3], [3, 3])


class C(mx.init.Initializer):
    def _init_weight(s, n, a):
        a[:] = np.sin(np.arange(a.size) + 1).reshape(a.shape) * 0.3


net.initialize(C())
net.ce.weight.set_data(nd.array(np.random.RandomState(0).rand(len(v), 4)))
net.ce.collect_params().setattr("grad_req", "null")
x = nd.array([v.to_indices("the good film .".split()), v.to_indices("a bad film .".split())])
y = nd.array([1, 0])
tr = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
for i in range(3):
    with autograd.record():
        l = gluon.loss.SoftmaxCELoss()(net(x), y)
    l.backward()
    tr.step(2)
    print(l)
