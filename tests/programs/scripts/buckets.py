"""mx.rnn: BucketSentenceIter and BucketingModule with stacked old cells, checkpoint with packed weights."""

import mxnet as mx, numpy as np, random, os

random.seed(0)
np.random.seed(0)
sents = [["the", "cat", "sat"], ["a", "dog"], ["the", "dog", "ran", "far", "away"], ["a", "cat", "ran"]] * 6
enc, vocab = mx.rnn.encode_sentences(sents, vocab=None, invalid_label=0, start_label=1, invalid_key="\n")
print(sorted(vocab.items(), key=lambda t: t[1]))
it = mx.rnn.BucketSentenceIter(enc, 3, buckets=[3, 5], invalid_label=0, layout="TN")
print(it.buckets, it.default_bucket_key, it.provide_data, it.provide_label, it.major_axis)
stack = mx.rnn.SequentialRNNCell()
for i in range(2):
    stack.add(mx.rnn.GRUCell(num_hidden=5, prefix="gru_l%d_" % i))
    if i == 0:
        stack.add(mx.rnn.DropoutCell(0.0, prefix="d_"))
stack.add(mx.rnn.ResidualCell(mx.rnn.RNNCell(5, prefix="res_")))


def sym_gen(seq_len):
    data = mx.sym.Variable("data")
    label = mx.sym.Variable("softmax_label")
    embed = mx.sym.Embedding(data=data, input_dim=len(vocab) + 1, output_dim=5, name="embed")
    stack.reset()
    outputs, states = stack.unroll(seq_len, inputs=embed, merge_outputs=True, layout="TNC")
    pred = mx.sym.Reshape(outputs, shape=(-1, 5))
    pred = mx.sym.FullyConnected(data=pred, num_hidden=len(vocab) + 1, name="pred")
    label = mx.sym.Reshape(label, shape=(-1,))
    pred = mx.sym.SoftmaxOutput(data=pred, label=label, name="softmax")
    return pred, ("data",), ("softmax_label",)


model = mx.mod.BucketingModule(sym_gen=sym_gen, default_bucket_key=it.default_bucket_key, context=mx.cpu())


class Init(mx.init.Initializer):
    def _init_weight(self, name, arr):
        arr[:] = np.sin(np.arange(arr.size) * 0.9).reshape(arr.shape) * 0.5


class Fixed(mx.io.DataIter):
    """What the iterator gives, in an order without chance."""

    def __init__(self, it):
        super().__init__(it.batch_size)
        self.it = it
        self.provide_data, self.provide_label = it.provide_data, it.provide_label
        self.default_bucket_key = it.default_bucket_key
        bs = list(it)
        self.bs = sorted(bs, key=lambda b: (b.bucket_key, b.data[0].asnumpy().tolist()))
        print([(b.bucket_key, b.data[0].shape, b.provide_data) for b in self.bs][:2], len(self.bs))
        rows = sorted(tuple(r) for b in self.bs for r in b.data[0].asnumpy().T.astype(int).tolist())
        print(rows[:3], len(rows))
        for i, b in enumerate(self.bs):
            rs = np.random.RandomState(i)
            d = rs.randint(1, len(vocab), b.data[0].shape)
            self.bs[i] = mx.io.DataBatch(
                [mx.nd.array(d)],
                [mx.nd.array(np.roll(d, -1, 0))],
                pad=0,
                bucket_key=b.bucket_key,
                provide_data=b.provide_data,
                provide_label=b.provide_label,
            )
        self.reset()

    def reset(self):
        self.i = iter(self.bs)

    def next(self):
        return next(self.i)


f = Fixed(it)
res = []
model.fit(
    train_data=f,
    eval_metric=mx.metric.Perplexity(0),
    kvstore="local",
    optimizer="adam",
    optimizer_params={"learning_rate": 0.01, "wd": 1e-5},
    initializer=Init(),
    num_epoch=2,
    batch_end_callback=lambda p: res.append(round(p.eval_metric.get()[1], 3)),
    epoch_end_callback=mx.rnn.do_rnn_checkpoint(stack, "rnn", 1),
)
print(res)
print(sorted(os.listdir(".")))
s, a, x = mx.rnn.load_rnn_checkpoint(stack, "rnn", 2)
print([(k, v.shape) for k, v in sorted(a.items())])
raw = mx.nd.load("rnn-0002.params")
print(sorted(raw))
print(model.score(f, mx.metric.Perplexity(None)))
model2 = mx.mod.BucketingModule(sym_gen, it.default_bucket_key)
model2.bind(data_shapes=f.provide_data, label_shapes=f.provide_label, for_training=False)
model2.set_params(a, x)
print(model2.score(f, mx.metric.Perplexity(0)))
print(model2.symbol.list_outputs(), model2.data_names, sorted(model2._buckets))
