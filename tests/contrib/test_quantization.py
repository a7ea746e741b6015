"""Quantisation of symbols, modules and blocks: numbers near those in float, what stays in float, and bad input."""

import re
import threading

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon, nd
from mxcore.base import MXNetError
from mxcore.contrib import quantization as api
from mxcore.contrib.quantization.calibration import HistogramCollector, MinMaxCollector, thresholds

SIZE = (4, 1, 10, 10)


def lenet(**conv):
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv1")
    x = mx.sym.Pooling(mx.sym.Activation(x, act_type="relu"), kernel=(2, 2), stride=(2, 2), name="pool")
    x = mx.sym.Convolution(x, kernel=(3, 3), num_filter=8, name="conv2", **conv)
    x = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name="bn"), act_type="relu")
    x = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=6, name="fc1"), act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="fc2"), name="softmax")


def parameters(sym, **shapes):
    args, _, aux = sym.infer_shape(**shapes)
    rs = np.random.RandomState(0)
    known = {*shapes, "softmax_label"}
    args = {n: nd.array(rs.uniform(-0.5, 0.5, s)) for n, s in zip(sym.list_arguments(), args) if n not in known}
    return args, {n: nd.array(rs.uniform(0.5, 1, s)) for n, s in zip(sym.list_auxiliary_states(), aux)}


def batches(count=3, size=SIZE):
    data = np.random.RandomState(1).uniform(-0.3, 1, (count * size[0], *size[1:])).astype("float32")
    return mx.io.NDArrayIter(data, np.zeros(len(data)), size[0])


def run(sym, args, aux, data):
    given = {**args, "data": data}
    if "softmax_label" in sym.list_arguments():
        given["softmax_label"] = nd.zeros(len(data))
    return sym.bind(mx.cpu(), given, aux_states=aux, grad_req="null").forward()[0].asnumpy()


def near(got, want, part=0.05):
    """Nearer than a part of how far answers to different examples lie apart: what ignores the data is far."""
    spread = np.ptp(want, axis=0).max()
    assert np.abs(got - want).max() <= part * spread, f"{np.abs(got - want).max() / spread:.3f} of the spread"


@pytest.fixture(scope="module")
def model():
    sym = lenet()
    args, aux = parameters(sym, data=SIZE)
    data = next(batches()).data[0]
    return sym, args, aux, data, run(sym, args, aux, data)


@pytest.mark.filterwarnings("ignore:.*act_type is tanh")  # it stays in float
@pytest.mark.parametrize("mode", ["smart", "full"])
@pytest.mark.parametrize(
    ("dtype", "calibration"),
    [("int8", "none"), ("int8", "naive"), ("uint8", "naive"), ("auto", "naive"), ("auto", "entropy")],
)
def test_numbers_are_near_those_in_float(model, dtype, calibration, mode):
    sym, args, aux, data, want = model
    # uint8 has no place for what is negative, so layers with such outputs have to be followed by relu.
    excluded = ["fc2", "conv2", "bn", "fc1"] if dtype == "uint8" else []
    made, qargs, qaux = api.quantize_model(
        sym,
        args,
        aux,
        calib_mode=calibration,
        calib_data=None if calibration == "none" else batches(),
        quantized_dtype=dtype,
        quantize_mode=mode,
        excluded_sym_names=excluded,
    )
    assert "quantized_conv1_output" in made.get_internals().list_outputs()
    # uint8 loses what is negative in the data, entropy what is far out.
    near(run(made, qargs, qaux, data), want, 0.2 if dtype == "uint8" else 0.1 if calibration == "entropy" else 0.05)
    # The file says the same.
    again = mx.sym.load_json(made.tojson())
    np.testing.assert_array_equal(run(again, qargs, qaux, data), run(made, qargs, qaux, data))


def test_modules_run_quantised_models(model, tmp_path):
    sym, args, aux, _, want = model
    with pytest.warns(match="act_type is tanh"):
        made = api.quantize_model_mkldnn(sym, args, aux, calib_mode="naive", calib_data=batches())
    mx.model.save_checkpoint(str(tmp_path / "m"), 0, *made)
    mod = mx.mod.Module.load(str(tmp_path / "m"), 0)
    it = batches(1)
    mod.bind(it.provide_data, it.provide_label, for_training=False)
    near(mod.predict(it).asnumpy(), want)
    block = gluon.SymbolBlock.imports(
        str(tmp_path / "m-symbol.json"), ["data", "softmax_label"], str(tmp_path / "m-0000.params")
    )
    near(block(next(batches()).data[0], nd.zeros(4)).asnumpy(), want)


def test_layers_that_cannot_be_quantised_are_named():
    sym = lenet(num_group=2)
    args, aux = parameters(sym, data=SIZE)
    with pytest.warns(match=r"conv2 \(num_group is 2.*activation\d+ \(act_type is tanh"):
        made, _, _ = api.quantize_model(sym, args, aux, calib_mode="none")
    names = made.get_internals().list_outputs()
    assert "conv2_output" in names and "quantized_conv1_output" in names
    said = []

    class Logger:
        def info(self, text, *more):
            said.append(text % more)

    api.quantize_model(sym, args, aux, calib_mode="none", excluded_op_names=["FullyConnected"], logger=Logger())
    told = "\n".join(said)
    assert re.search("conv2 stays in float32: num_group is 2", told)
    assert re.search("bn stays in float32: it needs calibration", told)
    assert re.search("fc1 stays in float32: it is excluded", told)


def test_exclusions(model):
    sym, args, aux, data, _ = model
    with pytest.warns(match="excluded_sym_names has 'conv3'"):
        made, qargs, *_ = api.quantize_graph(
            sym,
            args,
            aux,
            excluded_sym_names=["conv3", "bn"],
            excluded_op_names=["Activation", "Pooling"],
            calib_mode="none",
        )
    names = made.get_internals().list_outputs()
    assert "pool_output" in names and "quantized_pool_output" not in names
    assert qargs["conv1_weight_quantize"].dtype == np.int8 and "conv1_weight" not in qargs
    made, qargs, _ = api.quantize_model(
        sym,
        args,
        aux,
        excluded_op_names=["Convolution", "FullyConnected"],
        calib_mode="naive",
        calib_data=batches(),
        logger=Silent(),
    )
    assert made.tojson() == sym.tojson() and set(qargs) == set(args)


def test_calibration_later(model):
    sym, args, aux, data, want = model
    data_names = {"data", "softmax_label"}
    for mode in ("naive", "entropy", "customize"):
        custom = Widest() if mode == "customize" else None
        with pytest.warns(match="act_type is tanh"):
            made, qargs, qaux, collector = api.quantize_graph(
                sym, args, aux, calib_mode=mode, quantize_mode="smart", LayerOutputCollector=custom
            )
        assert data_names < {*made.list_arguments()} and (custom is None or collector is custom)
        mod = mx.mod.Module(sym)
        it = batches(1)
        mod.bind(it.provide_data, it.provide_label, for_training=False)
        mod.set_params(args, aux)
        mod._exec_group.execs[0].set_monitor_callback(collector.collect, monitor_all=True)
        mod.forward(next(it))
        made, qargs, qaux = api.calib_graph(made, args, aux, collector, calib_mode=mode)
        assert "min_calib_range" in made.tojson()
        near(run(made, qargs, qaux, data), want, 0.15 if mode == "entropy" else 0.05)


class Widest:
    """A collector of a user's own."""

    def __init__(self):
        self.min_max_dict = {}

    def collect(self, name, arr):
        top = max(self.min_max_dict.get(name, (0, 0))[1], float(arr.abs().max().asscalar()))
        self.min_max_dict[name] = (-top, top)


def test_a_recurrent_layer_among_others():
    data = mx.sym.Variable("data")
    x = mx.sym.RNN(
        mx.sym.FullyConnected(data, num_hidden=4, flatten=False, name="fc1"),
        state_size=4,
        num_layers=2,
        mode="lstm",
        name="rnn",
    )
    sym = mx.sym.FullyConnected(x, num_hidden=3, flatten=False, name="fc2")
    shapes = {"data": (5, 2, 3), "rnn_state": (2, 2, 4), "rnn_state_cell": (2, 2, 4)}
    args, _ = parameters(sym, **shapes)
    args.update({n: nd.zeros(s) for n, s in shapes.items() if n != "data"})
    data = nd.random.uniform(-1, 1, shapes["data"])
    made, qargs, qaux = api.quantize_model(sym, args, {}, calib_mode="none")
    near(run(made, qargs, qaux, data), run(sym, args, {}, data), 0.15)


# -- blocks ----------------------------------------------------------------------------------------------------------


def net():
    made = gluon.nn.HybridSequential(prefix="net_")
    with made.name_scope():
        made.add(
            gluon.nn.Conv2D(4, 3, activation="relu"),
            gluon.nn.MaxPool2D(),
            gluon.nn.Conv2D(8, 3),
            gluon.nn.BatchNorm(),
            gluon.nn.Activation("relu"),
            gluon.nn.GlobalAvgPool2D(),
            gluon.nn.Flatten(),
            gluon.nn.Dense(5),
        )
    made.initialize(mx.init.Uniform(0.5))
    return made


def loader():
    data = np.random.RandomState(2).uniform(-1, 1, (12, *SIZE[1:])).astype("float32")
    return gluon.data.DataLoader(gluon.data.ArrayDataset(data, np.arange(12)), 4)


@pytest.mark.filterwarnings("ignore:.*needs calibration")
@pytest.mark.parametrize("source", ["loader", "iterator", "list", "shapes", "customize"])
def test_blocks(source, tmp_path):
    block, data = net(), next(iter(loader()))[0]
    given = {
        "loader": dict(calib_data=loader(), calib_mode="naive"),
        "iterator": dict(calib_data=batches(), calib_mode="naive", num_calib_examples=4),
        "list": dict(calib_data=[data, data], calib_mode="naive", quantized_dtype="int8"),
        "shapes": dict(data_shapes=[mx.io.DataDesc("data", SIZE)]),
        "customize": dict(calib_data=loader(), calib_mode="customize", LayerOutputCollector=Widest()),
    }[source]
    made = api.quantize_net_v2(block, exclude_layers_match=["dense"], **given)
    kinds = {p.dtype for p in made.collect_params().values()}
    assert np.dtype("int8") in kinds and all(p.grad_req == "null" for p in made.collect_params().values())
    assert any(n.endswith("dense0_weight") for n in made.collect_params())  # which was excluded
    near(made(data).asnumpy(), block(data).asnumpy(), 0.1)
    made.export(str(tmp_path / "q"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "q-symbol.json"), ["data"], str(tmp_path / "q-0000.params"))
    np.testing.assert_array_equal(again(data).asnumpy(), made(data).asnumpy())


def test_a_block_of_two_inputs():
    class Both(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.a, self.b = gluon.nn.Dense(3), gluon.nn.Dense(3)

        def hybrid_forward(self, F, x, y):
            return self.a(x) + self.b(y)

    block = Both()
    block.initialize(mx.init.Uniform(1))
    data = [[nd.random.uniform(-1, 1, (4, n)) for n in (2, 5)] for _ in range(2)]
    with pytest.warns(match="quantize_net will be deprecated"):
        made = api.quantize_net(block, calib_data=data, calib_mode="naive")
    near(made(*data[0]).asnumpy(), block(*data[0]).asnumpy())


class Sum(gluon.HybridBlock):
    """A block of two inputs that raises what a user's code may raise."""

    def __init__(self, trouble=None):
        super().__init__()
        self.trouble, self.calls = trouble, 0

    def hybrid_forward(self, F, x, y):
        self.calls += 1
        if self.trouble:
            raise TypeError(self.trouble)
        return x + y


class _Watched(gluon.nn.HybridSequential):
    """Tells when it is traced, and when it was called."""

    tracing = called = staticmethod(lambda net: None)

    def __call__(self, *args):
        found = super().__call__(*args)
        self.called(self)
        return found

    def hybrid_forward(self, F, x):
        if F is mx.sym:
            self.tracing(self)
        return super().hybrid_forward(F, x)


def _dense(kind=_Watched):
    net = kind()
    net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.Dense(2, in_units=4))
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    return net


@pytest.mark.parametrize("settings", [{}, {"active": False}, {"backend": "fused"}], ids=str)
def test_a_block_that_another_thread_hybridizes_is_quantized(settings):
    net = _dense()

    def other(net):
        thread = threading.Thread(target=net.hybridize, kwargs={"active": True, **settings})
        thread.start()
        thread.join(20)

    net.called = other
    made = api.quantize_net_v2(net, calib_data=[nd.ones((1, 3))], calib_mode="naive")
    assert "_contrib_quantized_fully_connected" in made._cached_graph[1].tojson()


@pytest.mark.parametrize(
    "read",
    [
        lambda net, path: mx.contrib.amp.convert_hybrid_block(net),
        lambda net, path: net.export(str(path / "a")),
        lambda net, path: net.save(str(path / "a")) or (path / "a-model.json").read_text().index('"symbol"'),
    ],
    ids=["amp", "export", "save"],
)
def test_who_reads_the_graph_of_a_block_that_is_being_quantized_gets_it(read, tmp_path):
    net, begun, wrong = _dense(), threading.Event(), []

    def reader():
        begun.wait(20)
        try:
            read(net, tmp_path)
        except Exception as e:
            wrong.append(e)

    def tracing(net):
        begun.set()
        thread.join(0.1)

    thread = threading.Thread(target=reader)
    thread.start()
    net.tracing = tracing
    api.quantize_net_v2(net, calib_data=[nd.ones((1, 3))], calib_mode="naive")
    thread.join(20)
    assert not wrong and begun.is_set()


def test_errors_of_blocks_are_theirs():
    """A block is called once, with as many arrays as its signature takes."""
    batch = [nd.ones((2, 3))] * 3
    for trouble in ("the user's own", None):
        block = Sum(trouble)
        outer = gluon.nn.HybridSequential()
        outer.add(block)
        for made in (block, outer):
            block.calls = 0
            if trouble:
                with pytest.raises(TypeError, match="^the user's own$"):
                    api.quantize_net_v2(made, calib_data=[batch], calib_mode="naive")
                assert block.calls == 1
            else:
                again = api.quantize_net_v2(made, calib_data=[batch], calib_mode="naive")
                assert len(again._cached_graph[0]) == 2
    # A graph takes as many as it has inputs; arguments without number, all there are.
    graph = api.quantize_net_v2(again, calib_data=[batch], calib_mode="naive")
    assert graph(*batch[:2]).round().asnumpy().tolist() == [[2] * 3] * 2
    counts = gluon.nn.HybridLambda(lambda F, *args: F.add_n(*args))
    assert api.quantize_net_v2(counts, data_shapes=[(2, 3)] * 3)(*batch).asnumpy().tolist() == [[3] * 3] * 2


# -- calibration -----------------------------------------------------------------------------------------------------


def test_a_histogram_grows_with_its_layer():
    seen, rs = HistogramCollector(["x"]), np.random.RandomState(3)
    for scale in (0, 1e-6, 1, 1.5, 100):  # from nothing to far beyond
        seen.collect("x", nd.array(rs.uniform(-scale, scale, 1000)))
        seen.collect("other", nd.ones(3))
    [(counts, edges, low, high, top)] = seen.hist_dict.values()
    assert counts.sum() == 5000 and len(counts) % 2 and len(counts) < 10**6 and len(edges) == len(counts) + 1
    assert -100 < low < -90 and 90 < high <= top
    # What is small lies in the middle.
    middle = len(counts) // 2
    assert counts[middle - 300 : middle + 301].sum() > 3900


def test_thresholds_leave_outliers_out():
    rs = np.random.RandomState(4)
    values = np.append(rs.standard_normal(20000), [60, -50])
    for dtype, v, low in (("int8", values, -1), ("auto", np.abs(values), 0), ("int8", np.abs(values), -1)):
        seen = HistogramCollector()
        seen.collect("x", nd.array(v))
        [(a, b)] = thresholds(seen.hist_dict, dtype).values()
        assert 3 < b < 20 and a == low * b


@pytest.mark.parametrize("kind", [MinMaxCollector, HistogramCollector])
def test_values_must_be_finite(kind):
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="calibration: fc_output has values from"):
            kind().collect("fc_output", nd.array([1, bad]))


# -- bad input -------------------------------------------------------------------------------------------------------


def _empty():
    it = batches()
    for _ in it:
        pass
    return it


BAD = [
    (dict(calib_mode="naive"), "calib_data must be provided when calib_mode='naive'"),
    (dict(calib_mode="entropy", calib_data=[nd.ones(SIZE)]), "calib_data must be a DataIter, got list"),
    (dict(calib_mode="naive", calib_data=_empty), "calib_data gave no batch"),
    (dict(calib_mode="naive", calib_data=batches, num_calib_examples=0), "num_calib_examples must be a whole number"),
    (dict(calib_mode="best"), "unknown calib_mode 'best', expected 'none', 'naive', 'entropy'"),
    (dict(calib_mode="customize"), "unknown calib_mode 'customize'"),
    (dict(quantized_dtype="int4"), "unknown quantized_dtype 'int4', expected 'int8', 'uint8', 'auto'"),
    (dict(quantize_mode="some"), "unknown quantize_mode 'some', expected 'full', 'smart'"),
    (dict(quantize_granularity="row"), "unknown quantize_granularity 'row', expected 'tensor-wise', 'channel-wise'"),
    (dict(excluded_sym_names="conv1"), "excluded_sym_names must be a list of names"),
    (dict(excluded_op_names=[3]), "excluded_op_names must be a list of names"),
    (dict(ctx=[mx.cpu()]), "ctx must be one Context"),
    (dict(sym=3), "sym must be a Symbol or the path of one, got int"),
]


@pytest.mark.filterwarnings("ignore:.*act_type is tanh")
@pytest.mark.parametrize(("options", "text"), BAD)
def test_bad_arguments(model, options, text):
    sym, args, aux, *_ = model
    options = {"calib_mode": "none", "sym": sym, **options}
    if callable(options.get("calib_data")):
        options["calib_data"] = options["calib_data"]()
    with pytest.raises(ValueError, match=f"^quantize_model: {text}") as e:
        api.quantize_model(arg_params=args, aux_params=aux, **options)
    assert isinstance(e.value, MXNetError)


@pytest.mark.filterwarnings("ignore:.*act_type is tanh")
def test_bad_parameters(model):
    sym, args, aux, *_ = model
    half = {**args, "fc1_weight": args["fc1_weight"].astype("float16")}
    with pytest.raises(TypeError, match="fc1_weight is float16; only float32 is quantised.*excluded_sym_names"):
        api.quantize_model(sym, half, aux, calib_mode="none")
    nan = {**args, "fc1_bias": args["fc1_bias"] * np.nan}
    with pytest.raises(ValueError, match="fc1_bias has values that are no numbers"):
        api.quantize_model(sym, nan, aux, calib_mode="none")


def test_bad_collectors(model):
    sym, args, aux, *_ = model
    with pytest.raises(ValueError, match="needs a LayerOutputCollector with a method collect"):
        api.quantize_graph(sym, args, aux, calib_mode="customize", logger=Silent())
    made, _, _, collector = api.quantize_graph(sym, args, aux, calib_mode="naive", logger=Silent())
    with pytest.raises(ValueError, match="calib_graph: the collector has seen no layer"):
        api.calib_graph(made, args, aux, collector, calib_mode="naive")
    with pytest.raises(ValueError, match="needs a collector with hist_dict"):
        api.calib_graph(made, args, aux, collector, calib_mode="entropy")
    with pytest.raises(ValueError, match="unknown calib_mode 'none', expected 'naive'"):
        api.calib_graph(made, args, aux, collector, calib_mode="none")
    with pytest.raises(ValueError, match="ctx must be a CPU, got gpu"):
        api.quantize_model_mkldnn(sym, args, aux, ctx=mx.gpu())


class Silent:
    """A logger that says nothing."""

    def info(self, *text):
        """Nothing."""


def test_bad_blocks():
    block = net()
    for options, text in (
        (dict(network=3), "network must be a HybridBlock, got int"),
        (dict(), "data_shapes is required where there is no calib_data"),
        (dict(calib_mode="naive", data_shapes=[SIZE]), "calib_data must be provided when calib_mode='naive'"),
        (dict(calib_mode="naive", calib_data=[]), "calib_data gives no batch"),
        (dict(calib_mode="best", calib_data=loader()), "unknown calib_mode 'best'"),
    ):
        with pytest.raises(ValueError, match=f"quantize_net_v2: {text}"):
            api.quantize_net_v2(**{"network": block, **options})
    with pytest.raises(TypeError, match="calib_data must be a DataIter or iterable, got int"):
        api.quantize_net_v2(block, calib_data=3)


def test_what_cannot_be_calibrated_says_so():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(2, in_units=3))
    net.initialize()
    wide, narrow = (nd.array([[v, -v, v]]) for v in (3e38, 1e-45))
    assert api.quantize_net_v2(net, calib_data=[wide], calib_mode="entropy", ctx=mx.cpu())(wide).shape == (1, 2)
    for kwargs, kind, word in (
        ({"calib_data": [narrow], "calib_mode": "entropy"}, ValueError, "cannot be counted in"),
        ({"calib_data": ["a"]}, TypeError, "calib_data must give arrays"),
        ({"calib_data": [wide], "exclude_layers": 5}, TypeError, "exclude_layers must be a list of names, got 5"),
    ):
        with pytest.raises(MXNetError, match=word) as e:
            api.quantize_net_v2(net, ctx=mx.cpu(), **kwargs)
        assert isinstance(e.value, kind)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("first", ["convolution", "dense", "nested"])
def test_labels_beside_a_first_layer_without_bias(first, bias):
    nn = mx.gluon.nn
    layer = nn.Dense(4, use_bias=bias) if first == "dense" else nn.Conv2D(4, 1, use_bias=bias)
    if first == "nested":
        inner, layer = layer, nn.HybridSequential()
        layer.add(inner)
    net = nn.HybridSequential()
    net.add(layer, nn.Dense(3))
    net.initialize()
    x = nd.random.uniform(shape=(2, 8, 4, 4))
    net(x)
    made = api.quantize_net_v2(net, calib_data=[[x, nd.zeros(2)]], calib_mode="naive")
    assert made(x).shape == (2, 3)
