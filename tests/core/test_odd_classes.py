"""Classes of plugins that are none, or whose methods return nonsense: whoever meets it is told whose it is."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon

#: Hook -> a use of what it brings as 'test_odd', and an object where a class is needed.
KINDS = {
    "mxcore_optimizers": (lambda: mx.optimizer.create("test_odd"), mx.optimizer.SGD),
    "mxcore_metrics": (lambda: mx.metric.create("test_odd"), mx.metric.Accuracy),
    "mxcore_iterators": (lambda: mx.io.test_odd(), lambda: mx.io.NDArrayIter(np.zeros(3))),
    "mxcore_kvstores": (lambda: mx.kv.create("test_odd"), lambda: mx.kv.create("local")),
    "mxcore_initializers": (lambda: mx.init.create("test_odd"), mx.init.One),
    "mxcore_lr_schedulers": (lambda: mx.lr_scheduler.create("test_odd"), lambda: mx.lr_scheduler.FactorScheduler(3)),
}


@pytest.mark.parametrize("hook", KINDS)
@pytest.mark.parametrize(
    "value, text",
    [
        (None, "returned None: a dict is needed, name -> class"),
        ([dict], "returned .*: a dict is needed, name -> class"),
        ("x", "returned 'x': a dict is needed"),
        ({3: dict}, "3: <class 'dict'> is not a name with a class"),
        ({"test_odd": None}, "'test_odd': None stands in the place of what it names"),
        ({"test_odd": (dict,)}, "is not a name with a class"),
        ("object", "'test_odd': .* (is an object; its class is needed|is not a name with a class)"),
    ],
)
def test_what_is_no_dict_of_classes_is_refused(plug, hook, value, text):
    with pytest.raises(mx.MXNetError, match=f"hook {hook} of plugin 'throwaway' .*{text}"):
        plug(**{hook: {"test_odd": KINDS[hook][1]()} if value == "object" else value})


@pytest.mark.parametrize("hook", KINDS)
def test_a_class_of_another_kind_is_refused_where_it_is_asked_for(plug, hook):
    plug(**{hook: {"test_odd": dict}})
    with pytest.raises(
        mx.MXNetError, match="'test_odd' of plugin 'throwaway' is <class 'dict'>, (no subclass of|which has no method)"
    ):
        KINDS[hook][0]()


def _of(base, name, signature):
    return type("Odd", (base,), {name: eval(f"lambda {signature}: None"), "__module__": __name__})


@pytest.mark.parametrize(
    "hook, base, name, signature, told",
    [
        ("mxcore_optimizers", mx.optimizer.Optimizer, "update", "self, index, weight", "index, weight, grad, state"),
        ("mxcore_optimizers", mx.optimizer.Optimizer, "create_state", "self, index", "index, weight"),
        ("mxcore_optimizers", mx.optimizer.SGD, "update_multi_precision", "self", "index, weight, grad, state"),
        ("mxcore_metrics", mx.metric.EvalMetric, "update", "self, labels", "labels, preds"),
        ("mxcore_metrics", mx.metric.EvalMetric, "get", "self, which", ""),
        (
            "mxcore_kvstores",
            mx.kvstore.KVStoreBase,
            "pushpull",
            "self, key, value",
            "key, value, out=..., priority=...",
        ),
        ("mxcore_kvstores", mx.kvstore.KVStoreBase, "broadcast", "self, key", "key, value, out=..., priority=..."),
        ("mxcore_initializers", mx.init.Initializer, "__call__", "self, name", "desc, arr"),
        ("mxcore_lr_schedulers", mx.lr_scheduler.LRScheduler, "__call__", "self", "num_update"),
    ],
)
def test_methods_that_cannot_be_called_as_they_are_called_are_refused(plug, hook, base, name, signature, told):
    plug(**{hook: {"test_odd": _of(base, name, signature)}})
    with pytest.raises(mx.MXNetError) as e:
        KINDS[hook][0]()
    assert isinstance(e.value, TypeError) and str(e.value).endswith(
        f"'test_odd' of plugin 'throwaway' is <class '{__name__}.Odd'>, whose {name}({signature}) cannot be called as "
        f"{name}({told})"
    )


@pytest.mark.parametrize(
    "hook, base, signature, text",
    [
        (
            "mxcore_optimizers",
            mx.optimizer.Optimizer,
            "self, rate",
            r"does not take \(\): .*'rate'; an optimizer is made",
        ),
        ("mxcore_metrics", mx.metric.EvalMetric, "self, name", r"does not take \(\): .*'name'; a metric is made with"),
        ("mxcore_kvstores", mx.kvstore.KVStoreBase, "self", r"does not take \('test_odd'\): .*; a store is made with"),
        ("mxcore_initializers", mx.init.Initializer, "self, x", r"does not take \(\): .*'x'; it is made with"),
        ("mxcore_lr_schedulers", mx.lr_scheduler.LRScheduler, "self, x", r"does not take \(\): .*'x'; it is made with"),
    ],
)
def test_constructors_that_do_not_take_what_they_get_are_named(plug, hook, base, signature, text):
    plug(**{hook: {"test_odd": _of(base, "__init__", signature)}})
    with pytest.raises(TypeError, match=f"'test_odd' of plugin 'throwaway' is <class '.*Odd'>, which {text}") as e:
        KINDS[hook][0]()
    assert isinstance(e.value, mx.MXNetError)


def test_what_a_constructor_itself_raises_stays_its_own(plug):
    def failing(**kwargs):
        return len(3)

    plug(mxcore_optimizers={"test_odd": failing})
    with pytest.raises(TypeError, match="has no len") as e:
        mx.optimizer.create("test_odd")
    assert type(e.value) is TypeError


@pytest.mark.parametrize("make", [lambda: mx.optimizer.create("sgd", rate=1), lambda: mx.metric.create("acc", wrong=1)])
def test_wrong_arguments_of_stock_classes_are_the_callers(make):
    with pytest.raises(TypeError, match=r"has no parameter '(rate|wrong)'; it takes ") as e:
        make()
    assert "plugin" not in str(e.value)


@pytest.mark.parametrize("hook", sorted(KINDS.keys() - {"mxcore_iterators"}))
def test_a_function_in_the_place_of_a_class_makes_objects(plug, hook):
    made = [None, KINDS[hook][1]()]
    plug(**{hook: {"test_odd": lambda *args, **kwargs: made.pop()}})
    assert KINDS[hook][0]() is not None
    with pytest.raises(mx.MXNetError, match="'test_odd' of plugin 'throwaway' is a function, which returned None; "):
        KINDS[hook][0]()


@pytest.mark.parametrize("hook", ["mxcore_ops", "mxcore_devices", "mxcore_graph_passes", "mxcore_kernels"])
@pytest.mark.parametrize("value", [None, 5, "x"])
def test_lists_are_lists(plug, hook, value):
    with pytest.raises(mx.MXNetError, match=f"hook {hook} of plugin .* returned {value!r}: a (list|dict) is needed"):
        plug(**{hook: value})


def trained(optimizer, init=None):
    """The weight of a layer, and the trainer, after a step."""
    net = gluon.nn.Dense(1, in_units=2, prefix="odd_")
    net.initialize(init or mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), optimizer)
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 2))).sum()
    loss.backward()
    trainer.step(1)
    return net.weight.data().asnumpy(), trainer


@pytest.mark.parametrize("name", ["sgd", "adam", "nadam"])
@pytest.mark.parametrize("value", [None, "x", "0.1", [1], mx.nd.ones(2)])
def test_a_scheduler_gives_a_number(name, value):
    class Odd(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update):
            return value

    with pytest.raises(
        mx.MXNetError, match=rf"(?s)lr_scheduler Odd of {__name__} returned .* for update 1; a number is needed"
    ):
        trained(mx.optimizer.create(name, lr_scheduler=Odd()))


@pytest.mark.parametrize("value", [1, np.float32(1), np.array(1.0), mx.nd.ones(1)])
def test_what_stands_for_a_number_is_one(value):
    class Fine(mx.lr_scheduler.LRScheduler):
        def __call__(self, num_update):
            return value

    weight, trainer = trained(mx.optimizer.SGD(lr_scheduler=Fine()))
    assert weight.tolist() == [[0, 0]] and float(trainer.learning_rate) == 1


@pytest.mark.parametrize("value", [None, 5, "ab", ("a",), ("a", 1, 2)])
@pytest.mark.parametrize("method", ["get", "get_global"])
def test_a_metric_gives_names_and_values(method, value):
    Odd = type("Odd", (mx.metric.EvalMetric,), {method: lambda self: value, "__module__": __name__})
    odd = Odd("odd")
    whole = mx.metric.CompositeEvalMetric([odd, mx.metric.Accuracy()])
    for ask in (getattr(odd, f"{method}_name_value"), getattr(whole, method)):
        with pytest.raises(
            mx.MXNetError, match=rf"metric Odd of {__name__}: {method}\(\) returned .*\(name, value\) is"
        ):
            ask()


def batches(batch):
    """An iterator of two such batches."""

    class Odd(mx.io.DataIter):
        provide_data, provide_label = [mx.io.DataDesc("data", (4, 2))], [mx.io.DataDesc("softmax_label", (4,))]
        n = 0

        def reset(self):
            self.n = 0

        def next(self):
            self.n += 1
            if self.n > 2:
                raise StopIteration
            return batch

    return Odd(4)


def fit(it):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1)
    mx.mod.Module(mx.sym.LinearRegressionOutput(net, mx.sym.Variable("softmax_label"))).fit(it, num_epoch=1)


@pytest.mark.parametrize(
    "use", [fit, list, lambda it: list(mx.io.PrefetchingIter(it)), lambda it: list(mx.io.ResizeIter(it, 3))]
)
def test_an_iterator_gives_batches(use):
    with pytest.raises(mx.MXNetError, match=rf"next\(\) of Odd of {__name__} must return a DataBatch, .*returned None"):
        use(batches(None))


@pytest.mark.parametrize(
    "use, batch, text",
    [
        (fit, mx.io.DataBatch([None], None), "forward: the batch has None in its data; arrays are needed"),
        (fit, mx.io.DataBatch([mx.nd.ones((4, 2))], ["x"]), "forward: the batch has 'x' in its label"),
        (fit, mx.io.DataBatch([], []), "forward: the batch has 0 data arrays, the module takes 1"),
        (lambda it: list(mx.io.PrefetchingIter(it)), mx.io.DataBatch(None), "of Odd of .* whose data is None; a list"),
    ],
)
def test_a_batch_has_arrays(use, batch, text):
    with pytest.raises(mx.MXNetError, match=text):
        use(batches(batch))


def module_of(init):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="odd")
    module = mx.mod.Module(net, label_names=[])
    module.bind([("data", (1, 2))])
    module.init_params(init)


@pytest.mark.parametrize("use", [lambda init: trained("sgd", init), module_of])
@pytest.mark.parametrize(
    "write, kind, text",
    [
        (mx.nd.ones((5, 5)), ValueError, "cannot write an array of shape"),
        ("x", TypeError, "cannot write a str into an array of"),
        (None, TypeError, "cannot write a NoneType"),
        (KeyError("a wire"), KeyError, "KeyError: 'a wire'"),
        (ZeroDivisionError("a wire"), ZeroDivisionError, "ZeroDivisionError: a wire"),
        (AssertionError("a wire"), AssertionError, "AssertionError: a wire"),
    ],
)
def test_an_initializer_that_fails_is_named_with_the_parameter(use, write, kind, text):
    class Odd(mx.init.Initializer):
        def _init_weight(self, name, arr):
            if isinstance(write, Exception):
                raise write
            arr[:] = write

    with pytest.raises(
        kind, match=rf"parameter 'odd_weight' \(1, 2\): initializer Odd of {__name__} failed: {text}"
    ) as e:
        use(Odd())
    assert isinstance(e.value, mx.MXNetError)


@pytest.mark.parametrize("base, given", [(mx.optimizer.SGD, {"momentum": 0.9}), (mx.optimizer.Adam, {})])
@pytest.mark.parametrize("value", ["x", 5, [1], np.ones((1, 2)), {}])
def test_a_state_that_no_step_takes_is_named(base, given, value):
    class Odd(base):
        def create_state(self, index, weight):
            return value

    with pytest.raises(
        mx.MXNetError,
        match=rf"optimizer Odd of {__name__}: create_state\(\) returned .* for parameter 0; what its step",
    ):
        trained(Odd(**given))


def test_who_makes_a_step_of_its_own_has_any_state():
    class Own(mx.optimizer.Adam):
        def create_state(self, index, weight):
            return "x"

        def update(self, index, weight, grad, state):
            assert state == "x"
            weight[:] = 7

    assert trained(Own())[0].tolist() == [[7, 7]]


def test_an_initializer_may_raise_what_only_its_author_knows():
    class Mine(Exception):
        pass

    class Odd(mx.init.Initializer):
        def _init_weight(self, name, arr):
            raise Mine("a wire")

    with pytest.raises(Mine, match="^a wire$"):
        trained("sgd", Odd())


def test_names_and_values_of_a_metric_are_paired_as_far_as_they_go():
    Short = type("Short", (mx.metric.EvalMetric,), {"get": lambda self: (["a", "b"], [1])})
    assert Short("short").get_name_value() == [("a", 1)]


def test_a_store_may_begin_by_itself():
    class Mine(mx.kvstore.KVStore):
        def __init__(self):
            self.values = {}

        def _init(self, values):
            self.values.update((k, a.copy()) for k, a in values)

        def _push(self, groups, priority):
            seen.extend(groups)

        def _pull(self, groups, priority, ignore_sparse):
            for key, arrays in groups.items():
                for a in arrays:
                    a[:] = self.values[key]

    seen, kv, out = [], Mine(), [mx.nd.zeros(1), mx.nd.zeros(1)]
    kv.init(["b", "a"], [mx.nd.ones(1), mx.nd.ones(1) * 2])
    kv.push(["a", "b"], [mx.nd.ones(1)] * 2)
    kv.pull(["a", "b"], out=out)
    assert seen == ["b", "a"] and [float(x.asscalar()) for x in out] == [2, 1]


def test_no_command_stands_for_none(plug):
    with pytest.raises(mx.MXNetError, match="hook mxcore_cli of plugin 'throwaway' .*'test_odd': None stands in the"):
        plug(mxcore_cli={"test_odd": None})
