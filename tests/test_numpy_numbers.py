"""NumPy's numbers as arguments: whatever takes Python's takes them; what is computed, shown, written is the same."""

import json
import operator

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon
from mxcore.gluon import contrib, nn
from mxcore.gluon.data.vision import transforms

KINDS = (np.int64, np.int32, np.int8, np.uint8, np.uint16, np.uint32, np.uint64)
IMAGE = mx.nd.arange(20 * 30 * 3).reshape((20, 30, 3)).astype("uint8")
PICTURES = mx.nd.arange(2 * 4 * 8 * 8).reshape((2, 4, 8, 8)) / 100
STEPS = mx.nd.arange(5 * 2 * 4).reshape((5, 2, 4)) / 10


def ran(layer, x):
    layer.initialize(mx.init.One())
    return [
        layer(x).asnumpy().tolist(),
        *(p.shape for p in layer.collect_params().values()),
        repr(layer).split("(", 1)[1],
    ]


def batches(iterator):
    found = [(b.data[0].asnumpy().tolist(), b.pad) for b in iterator]
    iterator.reset()
    return found + [(b.data[0].asnumpy().tolist(), b.pad) for b in iterator] + [iterator.provide_data[0].shape]


def topped(k):
    metric = mx.metric.TopKAccuracy(top_k=k)
    metric.update([mx.nd.array([1, 2])], [mx.nd.array([[0.1, 0.5, 0.4], [0.5, 0.4, 0.1]])])
    return metric.get(), json.dumps(metric.get_config())


def stepped(begin):
    optimizer, weight = mx.optimizer.Adam(begin_num_update=begin), mx.nd.ones((2,))
    state = optimizer.create_state(0, weight)
    for _ in range(150):
        optimizer.update(0, weight, mx.nd.ones((2,)), state)
    return weight.asnumpy().tolist()


def rates(schedule):
    return [schedule(n) for n in (0, 1, 5, 110, 250, 300)]


USES = {
    "Conv2D": lambda n: ran(nn.Conv2D(n(4), n(3), n(2), n(1), n(1), n(2)), PICTURES),
    "Conv2D, each": lambda n: ran(nn.Conv2D(n(4), (n(3), n(1)), padding=[n(1), n(0)], in_channels=n(4)), PICTURES),
    "Conv2DTranspose": lambda n: ran(nn.Conv2DTranspose(n(4), n(3), n(2), n(1), n(1)), PICTURES),
    "MaxPool2D": lambda n: ran(nn.MaxPool2D(n(3), n(2), n(1)), PICTURES),
    "ReflectionPad2D": lambda n: nn.ReflectionPad2D(n(2))(PICTURES).asnumpy().tolist(),
    "PixelShuffle2D": lambda n: contrib.nn.PixelShuffle2D(n(2))(PICTURES).asnumpy().tolist(),
    "DeformableConvolution": lambda n: ran(contrib.cnn.DeformableConvolution(n(2), n(3), in_channels=n(4)), PICTURES),
    "Dense": lambda n: ran(nn.Dense(n(100), in_units=n(0)), PICTURES),
    "LSTM": lambda n: ran(gluon.rnn.LSTM(n(100), n(2)), STEPS),
    "GRUCell": lambda n: [p.shape for p in gluon.rnn.GRUCell(n(100)).collect_params().values()],
    "LSTMPCell": lambda n: [p.shape for p in contrib.rnn.LSTMPCell(n(100), n(60)).collect_params().values()],
    "Conv2DLSTMCell": lambda n: [
        p.shape
        for p in contrib.rnn.Conv2DLSTMCell((n(4), n(8), n(8)), n(100), n(3), n(3), n(1)).collect_params().values()
    ],
    "rnn.LSTMCell": lambda n: (
        mx.rnn.LSTMCell(n(100), prefix="l").unroll(n(2), mx.sym.var("d"))[0][1].infer_shape(d=(1, 2, 3))[0]
    ),
    "rnn.ConvLSTMCell": lambda n: (
        mx.rnn.ConvLSTMCell((1, 3, 8, 8), n(100), prefix="l")
        .unroll(1, mx.sym.var("d"))[0][0]
        .infer_shape(d=(1, 1, 3, 8, 8))[0]
    ),
    "rnn.FusedRNNCell": lambda n: (
        mx.rnn.FusedRNNCell(n(100), n(2), prefix="l")
        .unroll(2, mx.sym.var("d"), layout="TNC")[0]
        .infer_shape(d=(2, 1, 3))[0]
    ),
    "Parameter": lambda n: [gluon.Parameter("p", shape=s).shape for s in (n(3), (n(3), 2))],
    "RandomResizedCrop": lambda n: transforms.RandomResizedCrop(n(4))(IMAGE).shape,
    "CenterCrop": lambda n: transforms.CenterCrop(n(100))(IMAGE).asnumpy().tolist(),
    "resize_short": lambda n: mx.image.resize_short(IMAGE, n(100)).shape,
    "scale_down": lambda n: mx.image.scale_down((n(100), n(50)), (n(120), n(120))),
    "NDArrayIter": lambda n: batches(mx.io.NDArrayIter(np.arange(300).reshape(150, 2), batch_size=n(100))),
    "NDArrayIter, roll_over": lambda n: batches(
        mx.io.NDArrayIter(np.arange(14).reshape(7, 2), batch_size=n(3), last_batch_handle="roll_over")
    ),
    "DataLoader": lambda n: (lambda d: [len(d), [x.shape for x in d]])(
        gluon.data.DataLoader(np.zeros((250, 1)), n(100))
    ),
    "BucketSentenceIter": lambda n: len(list(mx.rnn.BucketSentenceIter([[1, 2]] * 5, n(2), invalid_label=n(0)))),
    "DataDesc": lambda n: repr(mx.io.DataDesc("data", (n(2), n(3)))),
    "TopKAccuracy": lambda n: topped(n(2)),
    "FactorScheduler": lambda n: rates(mx.lr_scheduler.FactorScheduler(n(100), 0.5, base_lr=1, warmup_steps=n(2))),
    "MultiFactorScheduler": lambda n: rates(mx.lr_scheduler.MultiFactorScheduler([n(100), n(120)], 0.5, base_lr=1)),
    "PolyScheduler": lambda n: rates(mx.lr_scheduler.PolyScheduler(n(120), base_lr=1, warmup_steps=n(2))),
    "begin_num_update": lambda n: stepped(n(120)),
    "csr_matrix": lambda n: mx.nd.sparse.csr_matrix((n(2), n(3))).asnumpy().tolist(),
    "csr_matrix, coordinates": lambda n: repr(mx.nd.sparse.csr_matrix(([1.0], ([0], [1])), shape=(n(2), n(3))).shape),
    "row_sparse_array": lambda n: mx.nd.sparse.row_sparse_array((n(2), n(3))).asnumpy().tolist(),
    "Variable": lambda n: mx.sym.Variable("x", shape=(n(2), n(3))).attr_dict(),
    "begin_state": lambda n: [
        s.attr_dict() for s in gluon.rnn.LSTMCell(3, prefix="l_").begin_state(n(2), func=mx.sym.var)
    ],
    "initializer": lambda n: [
        i.dumps() for i in (mx.init.Uniform(n(1)), mx.init.Xavier(magnitude=n(3)), mx.init.LSTMBias(n(1)))
    ],
}


@pytest.mark.parametrize("use", USES)
def test_numbers_are_the_same(use):
    expected = USES[use](int)
    for kind in KINDS:
        assert repr(USES[use](kind)) == repr(expected), kind


NUMBERS = (np.float64(1.5), np.float32(1.5), np.int64(3), np.bool_(True), np.array(1.5))
OPERATIONS = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.mod,
    operator.lt,
    operator.ge,
    operator.eq,
    operator.ne,
)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_with_values_of_graphs(operation):
    x = mx.nd.array([1.5, 2.0])
    for number in NUMBERS:
        for swapped in (False, True):
            net = nn.HybridLambda(lambda F, x, n=number, s=swapped: operation(n, x) if s else operation(x, n))
            eager = net(x).asnumpy()
            np.testing.assert_allclose(
                eager, operation(number, x.asnumpy()) if swapped else operation(x.asnumpy(), number), rtol=1e-6
            )
            net.hybridize()
            assert net(x).asnumpy().tolist() == eager.tolist(), number


@pytest.mark.parametrize("operation", OPERATIONS)
def test_arrays_and_values_of_graphs_do_not_mix(operation):
    x = mx.sym.Variable("x")
    for array in (np.ones(2), np.ones((1, 1)), np.ones(0)):
        for pair in ((x, array), (array, x)):
            with pytest.raises(TypeError, match="a symbol cannot be combined with an array of NumPy"):
                operation(*pair)
    with pytest.raises(TypeError, match="Symbol"):
        np.sqrt(x)


def test_a_picture_iterator(tmp_path):
    import cv2

    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((9, 9, 3), "u1"))
    it = mx.image.ImageIter(
        np.int64(2), (np.int64(3), np.int64(8), np.int64(8)), path_root=str(tmp_path), imglist=[[np.int64(4), "a.png"]]
    )
    assert it.next().label[0].asnumpy().tolist() == [4, 4] and repr(it.provide_data[0][1]) == "(2, 3, 8, 8)"


def test_exported_graphs_are_read_again(tmp_path):
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(np.int64(2), (np.int64(3), np.int64(3)), in_channels=np.int64(4)),
        nn.Dense(np.int64(5)),
        gluon.nn.Embedding(np.int64(9), np.int64(2)),
    )
    net.initialize(mx.init.Constant(0.1))
    net.hybridize()
    y = net(PICTURES)
    net.export(str(tmp_path / "net"))
    assert "np." not in (tmp_path / "net-symbol.json").read_text()
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    assert (again(PICTURES) == y).asnumpy().all()


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": np.float32(0.25)},
        {"learning_rate": np.array(0.25)},
        {"learning_rate": np.array([0.25])},
        {"learning_rate": mx.nd.array([0.25])},
        {"begin_num_update": np.int64(3)},
        {"multi_precision": np.bool_(True)},
        {"wd": np.float16(0.5), "momentum": np.float32(0.5), "clip_gradient": np.int8(1)},
        {"lr_scheduler": mx.lr_scheduler.FactorScheduler(np.int64(10), np.float32(0.5))},
        {"lr_scheduler": mx.lr_scheduler.MultiFactorScheduler([np.int64(1), np.int64(2)])},
        {"lr_scheduler": mx.lr_scheduler.PolyScheduler(np.int32(10), np.float64(0.1))},
    ],
)
def test_saved_states_are_read_again(options, tmp_path):
    net = nn.Dense(2, in_units=2)
    net.initialize()

    def step(trainer):
        with mx.autograd.record():
            loss = net(mx.nd.ones((1, 2))).sum()
        loss.backward()
        trainer.step(np.int64(1))

    trainer = gluon.Trainer(net.collect_params(), "sgd", options)
    step(trainer)
    trainer.save_states(tmp_path / "t.states")
    again = gluon.Trainer(net.collect_params(), "sgd")
    again.load_states(tmp_path / "t.states")
    assert again.learning_rate == trainer.learning_rate
    step(again)
    assert again._updaters[0].optimizer._index_update_count is again._updaters[0].optimizer._all_index_update_counts[0]


def test_states_whose_scheduler_holds_numbers_of_numpy(tmp_path):
    """As MXNet writes them, which keeps what it was given."""
    scheduler = mx.lr_scheduler.FactorScheduler(5)
    scheduler.step, scheduler.count, scheduler.base_lr = np.int64(5), np.int32(0), np.float32(0.5)
    store = mx.kv.create("local")
    store.set_optimizer(mx.optimizer.SGD(lr_scheduler=scheduler))
    store.save_optimizer_states(tmp_path / "s", dump_optimizer=True)
    store.load_optimizer_states(tmp_path / "s")
    again = store._updater.optimizer.lr_scheduler
    assert (again.step, again.count, again.base_lr) == (5, 0, 0.5) and type(again.step) is int


def test_counters_of_a_profile(tmp_path):
    mx.profiler.set_config(filename=str(tmp_path / "p.json"))
    mx.profiler.set_state("run")
    try:
        counter = mx.profiler.Counter(mx.profiler.Domain("d"), "c", np.uint8(250))
        counter += np.uint8(200)
        counter.decrement(np.uint8(1))
        counter.set_value(np.float32(0.5))
    finally:
        mx.profiler.set_state("stop")
    mx.profiler.dump()
    values = [
        e["args"]["c"]
        for e in json.loads((tmp_path / "p.json").read_text())["traceEvents"]
        if e.get("ph") == "C" and e["name"] == "c"
    ]
    assert values == [250, 450, 449, 0.5]
