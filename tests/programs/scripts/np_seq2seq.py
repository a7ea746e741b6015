"""Sequence to sequence: an encoder, a decoder with additive attention, a masked loss; embeddings learnt by pairs."""

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn, rnn

npx.set_np()
rng = onp.random.RandomState(7)
V, E, H = 9, 6, 8


def fill(net, *shapes):
    """Weights that do not depend on random numbers of the library."""
    for i, (name, p) in enumerate(sorted(net.collect_params().items(), key=lambda kv: kv[0].split("_", 1)[1])):
        values = onp.cos(onp.arange(int(onp.prod(p.shape)), dtype="float32") * (i + 1) * 0.7) * 0.3
        p.set_data(np.array(values.reshape(p.shape)))


class Encoder(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = nn.Embedding(V, E)
        self.rnn = rnn.GRU(H, 1)

    def forward(self, X):
        Y = self.embedding(X).swapaxes(0, 1)
        state = self.rnn.begin_state(batch_size=Y.shape[1], ctx=Y.ctx)
        return self.rnn(Y, state)


class AdditiveAttention(nn.Block):
    def __init__(self, n, **kwargs):
        super().__init__(**kwargs)
        self.W_k = nn.Dense(n, use_bias=False, flatten=False)
        self.W_q = nn.Dense(n, use_bias=False, flatten=False)
        self.w_v = nn.Dense(1, use_bias=False, flatten=False)

    def forward(self, query, keys, values, valid):
        features = np.tanh(np.expand_dims(self.W_q(query), axis=2) + np.expand_dims(self.W_k(keys), axis=1))
        scores = np.squeeze(self.w_v(features), axis=-1)
        mask = npx.sequence_mask(np.ones_like(scores).swapaxes(1, 2), valid, True, axis=1).swapaxes(1, 2)
        weights = npx.softmax(np.where(mask > 0, scores, -1e6))
        return npx.batch_dot(weights, values), weights


class Decoder(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention = AdditiveAttention(5)
        self.embedding = nn.Embedding(V, E)
        self.rnn = rnn.GRU(H, 1)
        self.dense = nn.Dense(V, flatten=False)

    def forward(self, X, memory, state, valid):
        memory = memory.swapaxes(0, 1)
        outputs, seen = [], []
        for x in self.embedding(X).swapaxes(0, 1):
            query = np.expand_dims(state[0][-1], axis=1)
            context, w = self.attention(query, memory, memory, valid)
            x = np.concatenate((context, np.expand_dims(x, axis=1)), axis=-1)
            out, state = self.rnn(x.swapaxes(0, 1), state)
            outputs.append(out)
            seen.append(w)
        return self.dense(np.concatenate(outputs, axis=0)).swapaxes(0, 1), state, np.concatenate(seen, axis=1)


class MaskedLoss(gluon.loss.SoftmaxCELoss):
    def forward(self, pred, label, valid):
        weights = np.expand_dims(np.ones_like(label).astype("float32"), axis=-1)
        weights = npx.sequence_mask(weights, valid, True, axis=1)
        return super().forward(pred, label, weights)


encoder, decoder, loss = Encoder(), Decoder(), MaskedLoss()
X = np.array(rng.randint(1, V, (4, 5)).astype("float32"))
Y = np.array(X.asnumpy()[:, ::-1].copy())
valid_x, valid_y = np.array([5, 4, 3, 5]), np.array([5, 3, 4, 2])
for net in (encoder, decoder):
    net.initialize(init.Xavier())
memory, state = encoder(X)
print(memory.shape, len(state), state[0].shape, decoder(Y, memory, state, valid_x)[2].shape)
fill(encoder)
fill(decoder)

trainers = [gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02}) for net in (encoder, decoder)]
start = np.zeros((4, 1))
for step in range(8):
    with autograd.record():
        memory, state = encoder(X)
        y_hat, _, weights = decoder(np.concatenate([start, Y[:, :-1]], axis=1), memory, state, valid_x)
        l = loss(y_hat, Y, valid_y)
    l.backward()
    for trainer in trainers:
        trainer.step(int(valid_y.sum()))
    if step % 2:
        print("loss %.4f" % (float(l.sum()) / float(valid_y.sum())), weights.sum(axis=-1).mean().item())
memory, state = encoder(X[:1])
token, out = start[:1], []
for _ in range(5):
    y, state, w = decoder(token, memory, state, valid_x[:1])
    token = y.argmax(axis=2)
    out.append(int(token.squeeze().astype("int32").item()))
print(out, w.shape, y.dtype)

# Words by their neighbours, negatives drawn beforehand.
corpus = [int(v) for v in rng.randint(0, 12, 80)]
centers = onp.array(corpus[2:-2])
contexts = onp.array([[corpus[i + j] for j in (-2, -1, 1, 2)] for i in range(2, len(corpus) - 2)])
negatives = rng.randint(0, 12, (len(centers), 8))
joined, labels = onp.concatenate([contexts, negatives], 1), onp.concatenate([contexts * 0 + 1, negatives * 0], 1)
masks = (joined != centers[:, None]).astype("float32")
data = gluon.data.DataLoader(
    gluon.data.ArrayDataset(centers[:, None], joined, masks, labels.astype("float32")), batch_size=16
)
net = nn.Sequential()
net.add(nn.Embedding(12, 4), nn.Embedding(12, 4))
net.initialize()
fill(net)
bce = gluon.loss.SigmoidBCELoss()
trainer = gluon.Trainer(net.collect_params(), "adagrad", {"learning_rate": 0.3})
for epoch in range(3):
    total, count = 0.0, 0
    for center, context, mask, label in data:
        with autograd.record():
            v, u = net[0](center), net[1](context)
            pred = npx.batch_dot(v, u.swapaxes(1, 2))
            l = bce(pred.reshape(label.shape), label, mask) / mask.sum(axis=1) * mask.shape[1]
        l.backward()
        trainer.step(center.shape[0])
        total, count = total + float(l.sum()), count + l.size
    print("epoch %d loss %.4f" % (epoch, total / count))
W = net[0].weight.data()
x = W[3]
cos = np.dot(W, x) / np.sqrt(np.sum(W * W, axis=1) * np.sum(x * x) + 1e-9)
top = npx.topk(cos, k=4, ret_typ="indices").asnumpy().astype("int32")
print(top[0], [round(float(cos[int(i)]), 3) for i in top[1:]])
