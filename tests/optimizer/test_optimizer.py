"""What optimizers share: rates, decays, counts, states, master copies, names."""

import copy
import gc
import logging
import pickle
import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

opt = mx.optimizer
NAMES = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "ccsgd",
    "dcasgd",
    "ftml",
    "ftrl",
    "groupadagrad",
    "lamb",
    "lars",
    "lbsgd",
    "nadam",
    "nag",
    "rmsprop",
    "sgd",
    "sgld",
    "signum",
    "test",
]


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    rule = opt.create(name.upper(), wd=0.25)
    assert type(rule).__name__.lower() == name and rule.wd == 0.25
    assert opt.Optimizer.opt_registry[name] is type(rule) and name in opt.Optimizer.opt_registry
    assert opt.create(rule) is rule


def test_unknown_names_suggest_near_ones():
    with pytest.raises(ValueError, match="'adam'"):
        opt.Optimizer.create_optimizer("adm")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("with_optimizer", [False, True])
def test_states_travel(name, with_optimizer):
    def fresh():
        mx.random.seed(0)
        return opt.get_updater(opt.create(name, learning_rate=0.05))

    def step(update, weight):
        update(7, mx.nd.array([[0.5, -1], [2, 1]]), weight)
        return weight.asnumpy()

    update, weight = fresh(), mx.nd.array([[1, 2], [3, 4]])
    step(update, weight)
    other, copied = fresh(), weight.copy()
    other.set_states(update.get_states(with_optimizer))
    if not with_optimizer:
        other.optimizer = copy.deepcopy(update.optimizer)
    mx.random.seed(1)
    expected = step(update, weight)
    mx.random.seed(1)
    np.testing.assert_array_equal(step(other, copied), expected)


def evil():
    class Evil:
        def __reduce__(self):
            return print, ("pickled code ran",)

    return pickle.dumps({0: Evil()})


@pytest.mark.parametrize(
    "data, word",
    [
        (evil(), "builtins.print"),
        (b"cos\nsystem\n(S'true'\ntR.", "os.system"),
        (pickle.dumps({0: __import__("subprocess").Popen}), "subprocess.Popen"),
        (b"cmxcore.optimizer.sgd\nmove_one\n.", "move_one"),
        (pickle.dumps([1, 2]), "list"),
        (pickle.dumps(({}, 3)), "an optimizer must stand beside the states, not a int"),
        (b"", "0 bytes"),
        (b"garbage", "no optimizer states"),
    ],
)
def test_states_that_are_none_are_refused(data, word, capsys):
    update = opt.get_updater(opt.SGD())
    with pytest.raises(MXNetError, match=word):
        update.set_states(data)
    assert update.states == {} and "ran" not in capsys.readouterr().out


def test_every_cut_of_states_is_found():
    update = opt.get_updater(opt.Adam())
    update(0, mx.nd.ones(2), mx.nd.ones(2))
    data = update.get_states(True)
    for n in range(0, len(data), 7):
        with pytest.raises(MXNetError):
            update.set_states(data[:n])


def test_plain_pickles_are_read():
    update = opt.get_updater(opt.SGD())
    update.set_states(pickle.dumps({0: (np.float32(3), np.ones(2), None, [1, {"a": b"x"}])}, protocol=2))
    assert update.states[0][1].tolist() == [1, 1] and update.states[0][3] == [1, {"a": b"x"}]


def test_rates_and_decays_of_single_parameters():
    class Parameter:
        lr_mult, wd_mult = 3.0, 5.0

    names = {0: "a_weight", 1: "b_bias", 2: "c_gamma", 3: "d"}
    rule = opt.SGD(learning_rate=0.1, wd=0.01, param_idx2name=names, param_dict={3: Parameter})
    assert [rule._get_wd(i) for i in range(5)] == pytest.approx([0.01, 0, 0.01, 0.05, 0.01])
    rule.set_lr_mult({"a_weight": 0.5, 1: 0.25})
    rule.set_wd_mult({"d": 2.0, 2: 0.1})
    assert [rule._get_lr(i) for i in range(5)] == pytest.approx([0.05, 0.025, 0.1, 0.3, 0.1])
    assert [rule._get_wd(i) for i in range(5)] == pytest.approx([0.01, 0, 0.001, 0.05, 0.01])
    assert opt.LARS(param_idx2name=names).wd_mult == {"b_bias": 0, "c_gamma": 0, "d": 0}


def test_rates_of_the_symbol():
    weight = mx.sym.Variable("a_weight", lr_mult=2, wd_mult=3)
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), weight, num_hidden=2, name="fc")
    rule = opt.SGD(param_idx2name={0: "a_weight", 1: "fc_bias"}, sym=net)
    assert rule.lr_mult == {"a_weight": 2.0} and rule.wd_mult == {"fc_bias": 0.0, "a_weight": 3.0}


def test_each_device_counts_its_own_updates():
    rule = opt.SGD(begin_num_update=7)
    rule._update_count([0, 1])
    rule._set_current_context(1)
    rule._update_count(0)
    rule._update_count(0)
    assert rule.num_update == 9 and rule._all_index_update_counts == {0: {0: 8, 1: 8}, 1: {0: 9}}
    for other in (copy.deepcopy(rule), pickle.loads(pickle.dumps(rule))):
        assert other.num_update == 9 and other._index_update_count is other._all_index_update_counts[1]
        assert other.param_dict == {}


@pytest.mark.parametrize("rate", ["0.5", None, [1], mx.nd.ones((2,)), 1j], ids=repr)
def test_what_is_no_learning_rate_is_refused(rate):
    rule = opt.SGD(learning_rate=0.25)
    store = mx.kv.create("local")
    store.set_optimizer(rule)
    for use in (
        rule.set_learning_rate,
        store.set_learning_rate,
        *[lambda r: opt.SGD(learning_rate=r)] * (rate is not None),
    ):
        with pytest.raises(mx.MXNetError, match="a learning rate is a number, not ") as e:
            use(rate)
        assert isinstance(e.value, TypeError) and rule.lr == 0.25


def test_learning_rate(caplog):
    rule = opt.Adam()
    assert rule.learning_rate == 0.001 == rule.lr
    rule.set_learning_rate(0.5)
    assert rule.learning_rate == 0.5
    schedule = mx.lr_scheduler.FactorScheduler(3, base_lr=0.5)
    scheduled = opt.SGD(learning_rate=0.2, lr_scheduler=schedule)
    assert schedule.base_lr == 0.2 == scheduled.learning_rate and "0.2" in caplog.text
    with pytest.raises(UserWarning, match="scheduler"):
        scheduled.set_learning_rate(1)
    with pytest.raises(DeprecationWarning, match="set_lr_mult"):
        rule.set_lr_scale({})
    assert logging.getLogger().name == "root"


@pytest.mark.parametrize("name", ["sgd", "nag", "adam", "rmsprop"])
def test_master_copies(name):
    """Steps too small for float16 add up in the float32 copy."""
    config = {"learning_rate": 1e-4, "rescale_grad": 1.0}
    update = opt.get_updater(opt.create(name, multi_precision=True, **config))
    weight = mx.nd.ones(4, dtype="float16")
    full = opt.get_updater(opt.create(name, **config))
    reference = mx.nd.ones(4)
    for _ in range(30):
        update(0, mx.nd.ones(4, dtype="float16") * 0.5, weight)
        full(0, mx.nd.ones(4) * 0.5, reference)
    assert weight.dtype == np.float16 and (weight.asnumpy() < 1).all()
    np.testing.assert_allclose(weight.asnumpy(), reference.asnumpy(), rtol=1e-3)


def test_float16_without_a_master_warns():
    update = opt.get_updater(opt.SGD())
    with pytest.warns(UserWarning, match="multi_precision"):
        update(0, mx.nd.ones(2, dtype="float16"), mx.nd.ones(2, dtype="float16"))


def test_weights_of_several_dtypes_at_once():
    update = opt.get_updater(opt.SGD(learning_rate=0.5, momentum=0.5))
    single, double = "float32", "float64"
    weights = [mx.nd.ones(2, dtype=d) for d in (single, double, single, single, double, single)]
    for _ in range(2):
        update(list("abcdef"), [mx.nd.ones(2, dtype=w.dtype) for w in weights], weights)
    assert all(w.asnumpy().tolist() == [-0.25, -0.25] for w in weights)
    assert sorted(update.states) == list("abcdef")


def test_dcasgd_with_momentum():
    """By its formula: MXNet's fails here."""
    rng = np.random.default_rng(0)
    rule = opt.DCASGD(momentum=0.9, lamda=0.3, learning_rate=0.1, wd=0.2)
    update, weight = opt.get_updater(rule), mx.nd.array(rng.normal(size=5))
    w, mom = weight.asnumpy().astype("float64"), 0
    previous = w
    for _ in range(5):
        g = rng.normal(size=5)
        mom = 0.9 * mom - 0.1 * (g + 0.2 * w + 0.3 * g * g * (w - previous))
        previous, w = w, w + mom
        update(0, mx.nd.array(g), weight)
        np.testing.assert_allclose(weight.asnumpy(), w, rtol=1e-5, atol=1e-6)


def test_sgld_draws_from_its_posterior():
    mx.random.seed(3)
    update, weight = opt.get_updater(opt.SGLD(learning_rate=0.01)), mx.nd.zeros(20000)
    update(0, mx.nd.ones(20000), weight)
    values = weight.asnumpy()
    assert values.mean() == pytest.approx(-0.005, abs=0.003) and values.std() == pytest.approx(0.1, rel=0.03)


def test_lbsgd_adds_up_copies():
    """The gradient array may be overwritten between calls, as training does."""
    update = opt.get_updater(opt.LBSGD(batch_scale=3, learning_rate=0.1, warmup_epochs=0))
    weight, grad = mx.nd.zeros(1), mx.nd.zeros(1)
    for g in (1, 2, 6):
        grad[:] = g
        update(0, grad, weight)
    assert weight.asnumpy()[0] == pytest.approx(-0.1 * 3 * 3)


def test_adamax_leaves_elements_without_gradient():
    update, weight = opt.get_updater(opt.Adamax(learning_rate=0.1)), mx.nd.array([1, 1])
    update(0, mx.nd.array([0, 2]), weight)
    assert weight.asnumpy() == pytest.approx([1, 0.9])


def test_own_optimizers():
    @opt.register
    class Half(opt.Optimizer):
        """Halves the weight, whatever the gradient."""

        def create_state(self, index, weight):
            return mx.nd.zeros(1)

        def update(self, index, weight, grad, state):
            self._update_count(index)
            weight *= 0.5
            state += 1

    update, weight = opt.get_updater(opt.create("half")), mx.nd.ones(2)
    update("w", weight, weight)
    assert weight.asnumpy().tolist() == [0.5, 0.5] and update.states["w"].asscalar() == 1
    assert update.optimizer.num_update == 1


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: opt.SGD(param_idx2name=["a"]), "param_idx2name"),
        (lambda: opt.LBSGD(warmup_strategy="fast"), "power2"),
        (lambda: opt.Optimizer().update(0, None, None, None), "update"),
        (lambda: opt.register(dict), "Optimizer"),
        (lambda: opt.contrib.GroupAdaGrad().create_state(0, mx.nd.ones(3)), "matrices"),
        (lambda: opt.contrib.GroupAdaGrad(wd=1.0).update(0, None, None, None), "wd is 1"),
    ],
)
def test_errors_name_the_trouble(call, word):
    with pytest.raises(MXNetError, match=word):
        call()


def test_a_bound_update_follows_what_changes():
    """The same arrays with other numbers, other arrays in their place, another weight with the old one's id."""
    rule = mx.optimizer.SGD(learning_rate=0.5, momentum=0.5)
    weight, grad = mx.nd.ones((3,)), mx.nd.ones((3,))
    state = rule.create_state(0, weight)
    expected, moment = 1.0, 0.0
    for lr in (0.5, 0.25, 0.125):
        rule.set_learning_rate(lr)
        rule.update(0, weight, grad, state)
        moment = 0.5 * moment - lr
        expected += moment
        np.testing.assert_allclose(weight.asnumpy(), expected, rtol=1e-6)
    rule.update(0, weight, mx.nd.ones((3,)) * 2, state)
    moment = 0.5 * moment - 0.25
    np.testing.assert_allclose(weight.asnumpy(), expected + moment, rtol=1e-6)
    rule.clip_gradient = 0.5
    rule.update(0, weight, grad, rule.create_state(0, weight))
    np.testing.assert_allclose(weight.asnumpy(), expected + moment - 0.125 * 0.5, rtol=1e-6)
    with pytest.raises(mx.base.MXNetError), mx.autograd.record():
        x = mx.nd.ones((3,))
        x.attach_grad()
        rule.update(0, x, grad, rule.create_state(0, x))


@pytest.mark.parametrize("rule", ["sgd", "adam", "ftrl"])
@pytest.mark.parametrize("lazy", [True, False])
def test_a_bound_update_takes_gradients_of_any_rows(rule, lazy):
    """Row-sparse ones of other rows at each step, none, and dense ones between; each as if it were the first."""
    more = {} if rule == "ftrl" else {"lazy_update": lazy}
    one = mx.optimizer.create(rule, learning_rate=0.5, wd=0.25, **({"momentum": 0.5} if rule == "sgd" else {}), **more)
    weight = mx.nd.array(np.arange(1.0, 13).reshape(6, 2))
    state = one.create_state(0, weight)
    rng = np.random.default_rng(0)
    for step, rows in enumerate([[1, 4], [0, 1, 5], None, [], [2], None, [0, 1, 2, 3, 4, 5]]):
        if rows is None:
            grad = mx.nd.array(rng.standard_normal((6, 2)))
        else:
            values = rng.standard_normal((len(rows), 2)).astype("f4")
            grad = mx.nd.sparse.row_sparse_array((values, np.array(rows, int)), shape=(6, 2))
        states = [] if state is None else [*state] if isinstance(state, tuple) else [state]
        apart = [a.copy() for a in (weight, *states)]
        other = pickle.loads(pickle.dumps(one))
        other.update(0, apart[0], grad, apart[1] if rule == "sgd" else tuple(apart[1:]))
        one.update(0, weight, grad, state)
        np.testing.assert_array_equal(weight.asnumpy(), apart[0].asnumpy(), f"{step}: {rows}")
        for a, b in zip(states, apart[1:]):
            np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_a_bound_update_holds_no_gradient():
    one, weight = mx.optimizer.SGD(learning_rate=1.0), mx.nd.ones((4, 2))
    gone = []
    for rows in ([0, 1], [1, 3], [2, 3]):
        grad = mx.nd.sparse.row_sparse_array((np.ones((2, 2), "f4"), rows), shape=(4, 2))
        one.update(0, weight, grad, None)
        gone.append(weakref.ref(grad._data))
        del grad
        assert gone[-1]() is None


def test_a_bound_update_tells_of_rows_out_of_range():
    one, weight = mx.optimizer.SGD(learning_rate=1.0), mx.nd.ones((4, 2))
    for rows in ([0, 1], [1, 3]):
        one.update(0, weight, mx.nd.sparse.row_sparse_array((np.ones((2, 2), "f4"), rows), shape=(4, 2)), None)
    before = weight.asnumpy()
    wrong = mx.nd.sparse.row_sparse_array((np.ones((2, 2), "f4"), [1, 2]), shape=(4, 2))
    wrong._data.parts = np.array([1, 4]), wrong._data.values
    with pytest.raises(IndexError, match=r"operator sgd_update.*rows must rise and lie in \[0, 4\)"):
        one.update(0, weight, wrong, None)
    np.testing.assert_array_equal(weight.asnumpy(), before)


def test_bound_updates_hold_no_weights():
    from mxcore.optimizer import _bound

    gc.collect()
    before = len(_bound._bound)
    rule = mx.optimizer.Adam()
    for _ in range(20):
        weight = mx.nd.ones((3,))
        rule.update(0, weight, mx.nd.ones((3,)), rule.create_state(0, weight))
    del weight
    assert len(_bound._bound) <= before


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_states_and_gradients_go_with_who_made_them(stype):
    """Training is over, the weight stays: the memory of the rest comes back."""
    weight, grad = mx.nd.ones((3, 2)), mx.nd.ones((3, 2)).tostype(stype)
    update = mx.optimizer.get_updater(mx.optimizer.Adam())
    for _ in range(3):
        update(0, grad, weight)
    memory = [(grad if stype == "default" else grad.data)._data, *(a._data for a in update.states[0])]
    held = [weakref.ref(a) for a in memory]
    del grad, update, memory
    gc.collect()
    assert not any(r() is not None for r in held)


def test_a_wrong_size_of_aggregation_says_so(monkeypatch):
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "many")
    with pytest.raises(
        ValueError, match="MXNET_OPTIMIZER_AGGREGATION_SIZE must be a whole number above -1, got 'many'"
    ):
        mx.optimizer.SGD()
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "0")
    assert mx.optimizer.SGD().aggregate_num == 0


def test_updaters_of_one_weight_in_threads(in_threads):
    """What is bound to a weight is one for all who move it: a step has its own gradient and rate."""
    w, done = mx.nd.zeros(64), []

    def move(rate, size):
        updater, g = mx.optimizer.Updater(mx.optimizer.SGD(learning_rate=rate, wd=0)), mx.nd.full(64, size)
        for _ in range(200):
            updater(0, g, w)
        done.append(200 * rate * size)

    in_threads(move, [(1, 1), (2, 100), (1, 1)])
    assert w.asnumpy().tolist() == [-sum(done)] * 64 and sum(done) == 40400


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lbsgd_scales_layers_by_norms_in_float32(dtype):
    weight, grad = (mx.nd.full((5000,), x).astype(dtype) for x in (30.0, 10.0))
    assert opt.LBSGD._layer_scale(weight, grad, 0.0) == pytest.approx(3.0, rel=1e-5)
