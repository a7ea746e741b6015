"""Files of optimizer states: MXNet's of every kind are read, damaged and hostile ones are refused."""

import collections
import fractions
import json
import pathlib
import pickle
import struct

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.optimizer import _states, config
from mxcore.optimizer._states import dumps

with np.load(pathlib.Path(__file__).parents[1] / "golden" / "data" / "states.npz") as _file:
    GOLDEN = dict(_file)
CASES = [key for key in GOLDEN if not key.endswith("leaves")]


def leaves(state):
    if isinstance(state, (list, tuple)):
        return [leaf for part in state for leaf in leaves(part)]
    return [state] if isinstance(state, mx.nd.NDArray) else []


@pytest.mark.parametrize("key", CASES)
def test_states_of_mxnet_are_read(key):
    name, _, whole = key.split("/")
    update = mx.optimizer.get_updater(mx.optimizer.create("test"))
    update.set_states(GOLDEN[key].tobytes())
    found = [a.asnumpy().ravel().tolist() for i in sorted(update.states) for a in leaves(update.states[i])]
    assert found == json.loads(str(GOLDEN[f"{name}/leaves"]))
    if whole == "1":
        rule = update.optimizer
        assert (
            type(rule) is mx.optimizer.Optimizer.opt_registry[name]
            and rule.wd == (0 if name == "groupadagrad" else 0.125)
            and rule.idx2name[1] == "fc_bias"
        )
        weight = mx.nd.ones((3, 1), dtype="float16" if rule.multi_precision else "float32")
        update(0, mx.nd.ones_like(weight), weight)
        assert np.isfinite(weight.asnumpy()).all()


# -- files that nobody meant
# ---------------------------------------------------------------------------------------------
def update():
    return mx.optimizer.get_updater(mx.optimizer.SGD())


def refused(data, match):
    rule = update()
    with pytest.raises(MXNetError, match=match) as caught:
        rule.set_states(data)
    assert rule.states == {} and f"{len(data)} bytes" in str(caught.value)


def words(*parts):
    """A pickle of instructions, with texts, names, (bytes,) and ints as such."""
    out = b"\x80\x04"
    for p in parts:
        if isinstance(p, str):
            out += b"X" + struct.pack("<I", len(p)) + p.encode()
        elif isinstance(p, int):
            out += (
                b"\x8a"
                + bytes([(p.bit_length() // 8) + 1])
                + p.to_bytes((p.bit_length() // 8) + 1, "little", signed=True)
            )
        elif isinstance(p, tuple):
            out += b"B" + struct.pack("<I", len(p[0])) + p[0]
        else:
            out += p
    return out + b"."


def named(module, name):
    return f"c{module}\n{name}\n".encode()


DTYPE = named("numpy", "dtype")
OBJECTS = (DTYPE, "O", b"\x89\x88\x87R")
POINTERS = struct.pack("<2Q", 0x4141414141414141, 0x10)


@pytest.mark.parametrize(
    "data, match",
    [
        # Pointers of the file's choice as an array of objects: by the dtype's name, by its state, and in a state after
        # another.
        (
            words(named("numpy.core.numeric", "_frombuffer"), (POINTERS,), *OBJECTS, 2, b"\x85", "C", b"tR"),
            "mark is missing|numbers are read",
        ),
        (
            words(
                b"}",
                0,
                named("numpy.core.numeric", "_frombuffer"),
                b"(",
                (POINTERS,),
                *OBJECTS,
                2,
                b"\x85",
                "C",
                b"tRs",
            ),
            "'O'; numbers are read",
        ),
        (words(b"}", 0, DTYPE, "f8", b"\x89\x88\x87R(", 3, "|", b"NNN", -1, -1, 63, b"tb", b"s"), None),
        (
            words(b"}", 0, DTYPE, "f8", b"\x89\x88\x87R(", 3, "|", "O", b"NN", -1, -1, 63, b"tb", b"s"),
            "state that numbers do not have",
        ),
        (
            words(
                b"}",
                0,
                DTYPE,
                "f8",
                b"\x89\x88\x87R(",
                3,
                "<",
                b"NNN",
                -1,
                -1,
                0,
                b"tb",
                b"(",
                3,
                "|",
                b"NNN",
                -1,
                -1,
                63,
                b"tb",
                b"s",
            ),
            "a state for a",
        ),
        (
            words(b"}", 0, named("numpy.core.multiarray", "scalar"), *OBJECTS, (POINTERS[:8],), b"\x86Rs"),
            "'O'; numbers are read",
        ),
        # An array whose shape and bytes do not fit, or are huge.
        (
            words(
                b"}",
                0,
                named("numpy.core.numeric", "_frombuffer"),
                b"(",
                (POINTERS,),
                DTYPE,
                "f8",
                b"\x89\x88\x87R(",
                3,
                "<",
                b"NNN",
                -1,
                -1,
                0,
                b"tb",
                2**40,
                b"\x85",
                "C",
                b"tRs",
            ),
            "16 bytes for an array of shape",
        ),
        # Memory by a number.
        (
            words(b"}", 0, named("builtins", "list"), named("builtins", "range"), 3 * 10**11, b"\x85R\x85Rs"),
            "a call of builtins.list",
        ),
        (words(b"}", 0, named("builtins", "bytearray"), 10**12, b"\x85Rs"), "bytes were expected, not a int"),
        (words(b"}", 0, named("builtins", "bytes"), 10**12, b"\x85Rs"), "takes 0"),
        (
            words(b"}", 0, named("collections", "deque"), named("builtins", "range"), 10**12, b"\x85R\x85Rs"),
            "a list was expected",
        ),
        (words(b"]" * (2 << 20)), "more than 1048576 lists"),
        (words(b"}", 0, b"\x8b" + struct.pack("<i", 4000) + b"\x7f" * 4000, b"s"), "an integer of"),
        (b"I" + b"9" * 5000 + b"\n.", "offset 0"),
        (words(b"\x8e" + struct.pack("<Q", 2**62)), "offset 2"),
        # Slow by hashes that are alike, and endless by values that hold themselves.
        (words(b"}", 0, b"}", (2**61 - 1) * 2**10, b"Nss"), "a key of 71 bits"),
        (words(b"}\x94", 0, b"h\0s"), "nested deeper than 64"),
        (
            words(
                b"}",
                0,
                b")" + b"\x85\x94h\0\x86\x94" + b"".join(b"h" + bytes([i]) + b"\x86\x94" for i in range(1, 60)),
                b"s",
            ),
            "hold more than",
        ),
        (words(b"}", 0, b"]" * 200 + b"a" * 199, b"s"), "nested deeper than 64"),
        # Raw constructors, modules that run something when imported, and objects without their content.
        (words(b"}", 0, named("mxnet.ndarray.ndarray", "NDArray"), b")\x81s"), "holds no data by itself"),
        (words(b"}", 0, named("mxnet.ndarray.ndarray", "NDArray"), b"N\x85Rs"), "lacks its content"),
        (words(b"}", 0, named("mxcore.ndarray.ndarray", "NDArray"), b")\x81s"), "mxcore.ndarray.ndarray.NDArray"),
        (words(b"}", 0, named("numpy", "ndarray"), 2**40, b"\x85Rs"), "a call of numpy.ndarray"),
        (words(b"}", 0, named("mxcore.__main__", "main"), b"s"), "mxcore.__main__.main"),
        (words(b"}", 0, named("mxnet.optimizer.optimizer", "Adam"), (0.5).hex(), b"\x85Rs"), "a call of"),
        (words(b"}", 0, named("mxnet.optimizer.optimizer", "create"), b"s"), "create"),
        (words(b"}", named("mxnet.optimizer.optimizer", "Adam"), b")\x81\x86"), "lacks 'rescale_grad'"),
        (
            words(b"}", named("mxnet.optimizer.optimizer", "Adam"), b")\x81}", "lr", "much", b"sb\x86"),
            "lacks 'rescale_grad'|'lr'",
        ),
        (words(b"}", 0, b"P1\n"), "0x50 is no instruction"),
        (words(b"}", b"]", b"Ns"), "a list as a key"),
        (words(b"N", 1, b"Ns"), "an entry of a"),
        (words(), "0 values at the end"),
        (b"", "the file is cut"),
    ],
)
def test_hostile_states_are_refused(data, match):
    if match is None:  # sound, if odd
        update().set_states(data)
    else:
        refused(data, match)
    assert len(data) < 3 << 20


def test_arrays_of_numbers_in_any_protocol():
    values = {
        0: (
            np.arange(6, dtype=">i2").reshape(2, 3),
            np.asfortranarray(np.ones((2, 2), "f4")),
            np.array([True, False]),
            np.float64(2.5),
            np.zeros(0, "i8"),
        )
    }
    for protocol in range(6):
        rule = update()
        rule.set_states(pickle.dumps(values, protocol))
        for found, want in zip(rule.states[0], values[0]):
            assert found.dtype == want.dtype and found.tolist() == want.tolist()
    rule.states[0][0][0, 0] = 7  # its own memory


def test_plain_data_in_any_protocol():
    values = {
        0: [
            True,
            None,
            1.5,
            2**70,
            "höhe",
            b"\xff",
            bytearray(b"x"),
            {1, 2},
            frozenset("a"),
            1j,
            slice(1, None),
            range(3),
            collections.OrderedDict(a=1),
        ],
        "w": collections.defaultdict(list, {1: [2]}),
        (1, 2): collections.deque([1, 2], 5),
    }
    for protocol in range(6):
        rule = update()
        rule.set_states(pickle.dumps(values, protocol))
        assert rule.states == values and rule.states["w"].default_factory is list


Pair = collections.namedtuple("Pair", "first second")


class Own(mx.optimizer.Optimizer):
    """An optimizer of a user, which keeps named tuples."""

    def create_state(self, index, weight):
        return Pair(mx.nd.zeros_like(weight), 3)

    def update(self, index, weight, grad, state):
        weight -= grad * state.second


def test_own_optimizers_and_tuples_travel():
    rule = mx.optimizer.get_updater(Own())
    rule(0, mx.nd.ones(2), mx.nd.ones(2))
    for data in (rule.get_states(True), *(pickle.dumps({0: Pair(1, 2)}, p) for p in range(6))):
        other = mx.optimizer.get_updater(Own())
        other.set_states(data)
        assert isinstance(other.states[0], Pair) and type(other.optimizer) is Own
    weight = mx.nd.ones(2)
    rule(0, mx.nd.ones(2), weight)
    assert weight.asnumpy().tolist() == [-2, -2]


class HeavyBall(mx.optimizer.Optimizer):
    """Its velocity begins at 0, and is an array from the first update on."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.velocity, self.step, self.seen = 0.0, 0.01, None

    def create_state(self, index, weight):
        return None

    def update(self, index, weight, grad, state):
        self._update_count(index)
        self.velocity = 0.9 * self.velocity + grad
        self.step, self.seen = self.step / 2, grad.sum()
        weight -= self._get_lr(index) * self.velocity


class Annealed(mx.optimizer.SGD):
    """A needed argument that is a word, and a generator, which it does not keep."""

    def __init__(self, mode, **kwargs):
        super().__init__(**kwargs)
        self.mode, self.draw, self.beta1 = mode, np.random.RandomState(0), None

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "draw"}


class Halving(mx.lr_scheduler.LRScheduler):
    """Does not call the base's `__init__`, as MXNet does not ask for it."""

    def __init__(self, at):
        self.at, self.count, self.step = at, 0.5, "half"

    def __call__(self, num_update):
        return 0.5**num_update


@pytest.mark.parametrize("size", [1, 3])
def test_own_optimizers_keep_whatever_they_like(size):
    rule = mx.optimizer.get_updater(HeavyBall(lr_scheduler=Halving(["a"])))
    weight, grad = mx.nd.ones(size), mx.nd.ones(size) * 2
    for _ in range(2):
        rule(0, grad, weight)
    other = mx.optimizer.get_updater(HeavyBall())
    other.set_states(rule.get_states(True))
    found, schedule = other.optimizer, rule.optimizer.lr_scheduler
    assert found.velocity.asnumpy().tolist() == rule.optimizer.velocity.asnumpy().tolist()
    assert found.velocity.shape == (size,) and found.seen.asnumpy().tolist() == [2 * size]
    assert found.step == 0.0025 and found.num_update == 2 and vars(found.lr_scheduler) == vars(schedule)
    again = weight.copy()
    rule(0, grad, weight)
    other(0, grad, again)
    assert weight.asnumpy().tolist() == again.asnumpy().tolist()


def test_own_optimizers_may_ask_for_words_and_leave_attributes_out():
    rule = mx.optimizer.get_updater(Annealed("cosine", momentum=0.5))
    rule(0, mx.nd.ones(2), mx.nd.ones(2))
    other = mx.optimizer.get_updater(Annealed("linear"))
    other.set_states(rule.get_states(True))
    assert other.optimizer.mode == "cosine" and not hasattr(other.optimizer, "draw")
    other(0, mx.nd.ones(2), mx.nd.ones(2))


def test_states_of_old_versions_have_other_names_and_fewer_attributes():
    """Before 1.4 the classes lay in ``mxnet.ndarray`` and ``mxnet.optimizer``; what came later gets its default."""
    data = GOLDEN["adam/2/1"].tobytes()
    for new, old in (
        (b"mxnet.ndarray.ndarray\n", b"mxnet.ndarray\n"),
        (b"mxnet.optimizer.optimizer\n", b"mxnet.optimizer\n"),
    ):
        data = data.replace(new, old)
    rule = update()
    rule.set_states(data)
    assert type(rule.optimizer) is mx.optimizer.Adam
    bare = mx.optimizer.Adam()
    del bare.__dict__["allow_np_array"], bare.__dict__["_all_index_update_counts"], bare.__dict__["aggregate_num"]
    rule.set_states(dumps(({}, bare)))
    assert rule.optimizer.aggregate_num == 0 and rule.optimizer._all_index_update_counts == {0: {}}


@pytest.mark.parametrize(
    "name, value, match",
    [
        ("lr", "much", "'lr' of str"),
        ("num_update", 1.5, "'num_update'"),
        ("idx2name", [1], "'idx2name' of list"),
        ("lr_mult", {0: "x"}, "a str in its table 'lr_mult'"),
        ("lr_scheduler", 3, "'lr_scheduler' of int"),
        ("beta1", None, "'beta1' of NoneType"),
        ("beta1", ..., "lacks 'beta1'"),
        ("clip_gradient", "x", "'clip_gradient' of str"),
        ("sym_info", ({},), "'sym_info'"),
        ("sym_info", ({"w": 3}, ["w"]), "'sym_info'"),
        ("sym_info", ({"w": {}}, [3]), "'sym_info'"),
        ("sym_info", "ab", "'sym_info'"),
    ],
)
def test_an_optimizer_that_lacks_something_is_refused(name, value, match):
    rule = mx.optimizer.Adam()
    rule.__dict__[name] = value
    if value is ...:
        del rule.__dict__[name]
    refused(dumps(({}, rule)), f"the optimizer, a Adam, .*{match}")


def test_a_scheduler_that_lacks_something_is_refused():
    rule = mx.optimizer.Adam(lr_scheduler=mx.lr_scheduler.FactorScheduler(3))
    del rule.lr_scheduler.step
    refused(dumps(({}, rule)), "the scheduler, a FactorScheduler, lacks 'step'")


def test_states_of_another_optimizer_are_refused_where_they_are_used():
    sgd, adam = update(), mx.optimizer.get_updater(mx.optimizer.Adam())
    sgd(0, mx.nd.ones(2), mx.nd.ones(2))
    adam.set_states(sgd.get_states())
    with pytest.raises(
        MXNetError,
        match=r"parameter 0 was read as none, but Adam keeps \[\(2,\), \(2,\)\] for a float32 weight of \(2,\)",
    ):
        adam(0, mx.nd.ones(2), mx.nd.ones(2))
    first = mx.optimizer.get_updater(mx.optimizer.Adam())
    first(0, mx.nd.ones(3), mx.nd.ones(3))
    adam.set_states(first.get_states())
    with pytest.raises(MXNetError, match=r"read as \[\(3,\), \(3,\)\]"):
        adam(0, mx.nd.ones(2), mx.nd.ones(2))


@pytest.mark.parametrize("key", ["adam/0/1", "sgd/2/0", "nag/4/1"])
def test_no_damaged_byte_raises_anything_else(key):
    data, caught = GOLDEN[key].tobytes(), 0
    for at in range(0, len(data), 3):
        for value in (0, 0x29, 0x52, 0xFF):
            try:
                update().set_states(data[:at] + bytes([value]) + data[at + 1 :])
            except MXNetError:
                caught += 1
    assert caught > len(data) // 3


@pytest.mark.parametrize("value", ["text", None, 3])
def test_states_that_are_no_bytes(value):
    with pytest.raises(MXNetError, match="states are bytes, not a"):
        update().set_states(value)


@pytest.mark.parametrize(
    "value, why",
    [
        (collections.Counter("ab"), "name collections.Counter"),
        (fractions.Fraction(1, 3), "name fractions.Fraction"),
        (np.random.RandomState(0), "name numpy.random"),
        (np.ones(2, "complex64"), "an array of 'c8'"),
        (mx.init.Xavier(), "name mxcore.initializer"),
        (len, "name builtins.len"),
        (lambda: 0, "pickle .*<lambda>"),
        ((x for x in ()), "cannot pickle 'generator'"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_states_that_could_not_be_read_again_are_not_saved(value, why, tmp_path):
    update = mx.optimizer.get_updater(mx.optimizer.SGD())
    update.states = {0: (mx.nd.ones((2,)), [value])}
    with pytest.raises(TypeError, match=f"cannot be saved, since they could not be read again: .*{why}") as caught:
        update.get_states()
    assert isinstance(caught.value, MXNetError)
    update.states, update.optimizer.noise = {}, value
    assert pickle.loads(update.get_states()) == {}
    with pytest.raises(TypeError, match=why):
        update.get_states(dump_optimizer=True)


def test_what_is_checked_before_states_are_saved_costs_no_memory():
    update = mx.optimizer.get_updater(mx.optimizer.SGD())
    update.states = {0: mx.nd.zeros((1 << 20,)), 1: mx.nd.sparse.zeros("csr", (3, 2)), 2: np.zeros((1 << 20,))}
    assert len(_states._written(_states._Outline, update.states)) < 1000
    _states.check_readable(update.states, "nowhere")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"list": [' * 400 + "]}" * 400, "{}", "3"])
def test_texts_of_no_optimizer_are_refused(text):
    with pytest.raises(MXNetError, match="this is no optimizer"):
        config.load(text)


@pytest.mark.parametrize("was, now", [("float16", "float32"), ("float32", "float16"), ("float32", "float64")])
@pytest.mark.parametrize("multi_precision", [True, False])
@pytest.mark.parametrize("name", ["sgd", "adam", "lamb", "rmsprop"])
@pytest.mark.parametrize("several", [True, False])
@pytest.mark.filterwarnings("ignore:.*sums float16:UserWarning")
def test_states_of_weights_that_were_cast_since_are_refused(name, was, now, multi_precision, several):
    kw = {"momentum": 0.9} if name == "sgd" else {}
    update = mx.optimizer.get_updater(mx.optimizer.create(name, multi_precision=multi_precision, **kw))

    def step(dtype):
        index = [0, 1] if several else [0]
        update(index, *([mx.nd.ones((3, 2), dtype=dtype) for _ in index] for _ in "gw"))

    for _ in range(3):
        step(was)
    with pytest.raises(mx.MXNetError, match=rf"state of parameter 0 holds float.*which is {now} now; after cast"):
        step(now)
    step(was)


class Keeping(mx.optimizer.SGD):
    """Keeps numbers in arrays."""

    def __init__(self, **kw):
        super().__init__(**kw)
        self.ema, self.scale, self.last, self.half = np.zeros(1), mx.nd.zeros((1,)), np.array(3), np.float16(0)


def test_arrays_of_one_number_stay_arrays():
    mx.optimizer.register(Keeping)
    update = mx.optimizer.get_updater(Keeping(learning_rate=np.float32(0.5)))
    update.optimizer.ema[0], update.optimizer.scale[:], update.optimizer.half = 0.25, 4, np.float16(1.5)
    other = mx.optimizer.get_updater(Keeping())
    other.set_states(update.get_states(dump_optimizer=True))
    found = other.optimizer
    assert type(found.ema) is np.ndarray and found.ema.tolist() == [0.25]
    assert type(found.scale) is mx.nd.NDArray and found.scale.asnumpy().tolist() == [4]
    assert type(found.last) is np.ndarray and found.last.tolist() == 3
    assert found.half == 1.5 and type(found.lr) is float and found.lr == 0.5


def test_arrays_of_mx_np_stay_so():
    """MXNet writes the same names, and reads them."""
    update = mx.optimizer.get_updater(mx.optimizer.SGD())
    update.states = {0: mx.np.arange(3), 1: (mx.np.ones((2, 2)), mx.nd.ones((2,)))}
    data = update.get_states()
    assert b"mxnet.numpy" in data
    other = mx.optimizer.get_updater(mx.optimizer.SGD())
    other.set_states(data)
    one, (two, three) = other.states[0], other.states[1]
    assert [type(a) for a in (one, two, three)] == [mx.np.ndarray, mx.np.ndarray, mx.nd.NDArray]
    assert one.tolist() == [0, 1, 2] and two.tolist() == [[1, 1], [1, 1]]
