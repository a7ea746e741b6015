"""Files of optimizer states that are small and would take a machine's time, memory or stack."""

import copyreg
import io
import pickle
import struct
import tracemalloc

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.ndarray.serialization import dump_record
from mxcore.optimizer import _states

HEAD = b"\x80\x04"
DEEP = b"N" + b"\x85" * 200_000  # ((((…None…))))
WIDE = b"N" + b"2\x86" * 60  # (x, x) of (x, x) of …: 2**60 values in 120 bytes


def name(module, what):
    return f"c{module}\n{what}\n".encode()


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def number(value):
    return b"J" + struct.pack("<i", value)


HOSTILE = {
    "a deep key": b"}" + DEEP + b"K\0s.",
    "a wide key": b"}" + WIDE + b"K\0s.",
    "a deep element": b"\x8f(" + DEEP + b"\x90.",
    "a wide element": b"(" + WIDE + b"\x91.",
    "a wide element of a set made by a call": name("builtins", "set") + b"](" + WIDE + b"e\x85R.",
    "a wide key of an ordered dictionary": name("collections", "OrderedDict") + b"](" + WIDE + b"K\0\x86e\x85R.",
    "a wide value where a dtype stands": name("numpy", "dtype") + WIDE + b"\x85R.",
    "a wide value where a type stands": name("collections", "defaultdict") + WIDE + b"\x85R.",
    "a long tuple as key of all entries": b"}(" + b"K\1" * 10_000 + b"tq\0Ns" + b"h\0Ns" * 10_000 + b".",
    "tuples as keys, of hashes that a file can choose": b"}"
    + b"".join(number(i) + b"\x85Ns" for i in range(5000))
    + b".",
    "complex keys of one hash": b"}"
    + b"".join(
        name("builtins", "complex")
        + b"G"
        + struct.pack(">d", -1000003.0 * k)
        + b"G"
        + struct.pack(">d", k)
        + b"\x86RNs"
        for k in range(1, 3)
    )
    + b".",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_keys_and_texts_of_errors_take_no_time(case):
    with pytest.raises(ValueError, match="no optimizer states") as caught:
        _states.loads(HEAD + HOSTILE[case], __name__)
    assert isinstance(caught.value, MXNetError) and len(str(caught.value)) < 2000


RAW = b"a" * (1 << 18)
RECORD = dump_record(np.zeros(1 << 16, "float32"))
COPIES = {
    "encode": text(RAW)
    + b"q\0"
    + name("_codecs", "encode")
    + b"q\1h\0"
    + text(b"latin1")
    + b"q\2\x86R"
    + b"h\1h\0h\2\x86R" * 1000,
    "bytearray": text(RAW) + b"q\0" + name("builtins", "bytearray") + b"q\1h\0\x85R" + b"h\1h\0\x85R" * 1000,
    "set": b"](" + b"K\1" * (1 << 18) + b"eq\0" + name("builtins", "set") + b"q\1h\0\x85R" + b"h\1h\0\x85R" * 1000,
    "arrays": b"\x8e"
    + struct.pack("<Q", len(RECORD))
    + RECORD
    + b"q\0"
    + text(b"handle")
    + b"q\2"
    + name("mxnet.ndarray.ndarray", "NDArray")
    + b"q\1N\x85R}h\2h\0sb"
    + b"h\1N\x85R}h\2h\0sb" * 1000,
}


@pytest.mark.parametrize("case", COPIES)
def test_the_same_bytes_are_not_copied_without_end(case):
    data = HEAD + b"](" + COPIES[case] + b"e."
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="copied again and again"):
            _states.loads(data, __name__)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("hidden", ["update", "create_state_multi_precision", "__dict__"])
def test_attributes_do_not_hide_methods(hidden, monkeypatch):
    monkeypatch.setattr(
        mx.optimizer.SGD,
        "__reduce_ex__",
        lambda self, protocol: (copyreg.__newobj__, (mx.optimizer.SGD,), self.__dict__ | {hidden: None}),
        raising=False,
    )
    data = _states.dumps(({}, mx.optimizer.SGD()))
    with pytest.raises(ValueError, match=f"{hidden!r}, which would hide a method"):
        _states.loads(data, __name__)


def _with(optimizer, **attributes):
    optimizer.__dict__.update(attributes)
    return optimizer


@pytest.mark.parametrize("name", ["adam", "nadam", "adamax"])
def test_powers_of_integers_take_no_time(name):
    update = mx.optimizer.get_updater(mx.optimizer.create(name))
    update(0, mx.nd.ones(3), mx.nd.ones(3))
    _with(update.optimizer, beta1=1, beta2=1, num_update=1 << 40)  # with 3 a failure would take the machine's memory
    update.set_states(update.get_states(True))
    kept = update.optimizer.__dict__
    assert type(kept["beta1"]) is type(kept["beta2"]) is float and kept["num_update"] == 1 << 40


ODD = {
    "an integer that no float holds": lambda: _with(mx.optimizer.SGD(), lr=1 << 1200),
    "a rate that is no number": lambda: _with(mx.optimizer.SGD(), lr=float("nan")),
    "neither rate nor schedule": lambda: _with(mx.optimizer.SGD(), lr=None),
    "a long count": lambda: _with(mx.optimizer.SGD(), _index_update_count={0: 1 << 1200}),
    "a count below 0": lambda: _with(mx.optimizer.SGD(), _index_update_count={0: -5}),
    "counts of a device": lambda: _with(mx.optimizer.SGD(), _all_index_update_counts={0: {"a": "b"}}),
    "steps": lambda: mx.optimizer.SGD(lr_scheduler=_with(mx.lr_scheduler.MultiFactorScheduler([1, 3]), step=[None])),
    "a place among steps": lambda: mx.optimizer.SGD(
        lr_scheduler=_with(mx.lr_scheduler.MultiFactorScheduler([1, 3]), cur_step_ind=-9)
    ),
    "half a step": lambda: mx.optimizer.SGD(lr_scheduler=_with(mx.lr_scheduler.FactorScheduler(3), step=0.5)),
    "a table of a scheduler": lambda: mx.optimizer.SGD(
        lr_scheduler=_with(mx.lr_scheduler.FactorScheduler(3), lr_mult=1.5)
    ),
    "a bound": lambda: _with(mx.optimizer.LAMB(), lower_bound=[1]),
}


@pytest.mark.parametrize("case", ODD)
def test_numbers_that_an_optimizer_cannot_have(case):
    data = _states.dumps(({}, ODD[case]()))
    with pytest.raises(
        MXNetError, match="these .* bytes are no optimizer states: the (optimizer|scheduler), a .*the file is damaged"
    ):
        _states.loads(data, __name__)


def test_what_sound_files_hold_is_read_by_every_protocol():
    value = {
        0: (1, 2.5, None),
        "w": [b"bytes", bytearray(b"b" * 3000)],
        (0, "a"): {1, "x", 2.0},
        7: frozenset((1, (2, 3))),
        np.int64(3): np.ones(3000),
    }
    for protocol in range(6):
        out = io.BytesIO()
        pickle._Pickler(out, protocol).dump(value)
        found, optimizer = _states.loads(out.getvalue(), __name__)
        assert optimizer is None and list(found) == list(value)
        assert found[(0, "a")] == value[(0, "a")] and found[7] == value[7] and found["w"] == value["w"]
        assert found[np.int64(3)].tolist() == value[np.int64(3)].tolist()


@pytest.mark.parametrize(
    "name, attribute, value, problem",
    [
        ("adam", "beta1", 1.0, "ZeroDivisionError"),
        ("adam", "beta2", 2.0, "math domain error"),
        ("lbsgd", "batch_scale", 0, "ZeroDivisionError"),
        ("sgd", "lr_scheduler.max_steps", 0, "ZeroDivisionError"),
    ],
)
def test_numbers_that_no_weight_can_move_by(name, attribute, value, problem):
    """The error says whose they are, and which."""
    schedule = {"lr_scheduler": mx.lr_scheduler.CosineScheduler(5)} if "." in attribute else {}
    updater = mx.optimizer.get_updater(mx.optimizer.create(name, **schedule))
    weight = mx.nd.ones((3, 2))
    updater(0, weight * 0.5, weight)
    owner, _, attribute = attribute.rpartition(".")
    setattr(getattr(updater.optimizer, owner) if owner else updater.optimizer, attribute, value)
    other = mx.optimizer.get_updater(mx.optimizer.create("sgd"))
    other.set_states(updater.get_states(dump_optimizer=True))
    with pytest.raises(mx.MXNetError, match=f"optimizer {type(updater.optimizer).__name__} cannot move a weight") as e:
        for _ in range(3):
            other(0, weight * 0.5, weight)
    assert problem in str(e.value) and f"{attribute}={value!r}" in str(e.value)


def test_numbers_that_several_weights_cannot_move_by_any_more():
    """What they did together is kept, and done at once from then on."""
    updater = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    weights = [mx.nd.ones((3, 2)) for _ in range(3)]
    for _ in range(3):
        updater([0, 1, 2], [w * 0.5 for w in weights], weights)
    assert updater._standing
    updater.optimizer.beta1 = 1.0
    with pytest.raises(mx.MXNetError, match="optimizer Adam cannot move a weight: ZeroDivisionError.*beta1=1.0"):
        updater([0, 1, 2], [w * 0.5 for w in weights], weights)


def test_errors_of_the_users_own_optimizers_are_theirs():
    class Late(mx.lr_scheduler.LRScheduler):
        def __call__(self, n):
            raise ValueError("late")

    class Mine(mx.optimizer.SGD):
        def update_multi_precision(self, *args):
            raise ZeroDivisionError("mine")

    weight = mx.nd.ones((2,))
    with pytest.raises(ZeroDivisionError, match="^mine$"):
        mx.optimizer.get_updater(Mine())(0, weight, weight)
    with pytest.raises(ValueError, match="^late$"):
        mx.optimizer.get_updater(mx.optimizer.SGD(lr_scheduler=Late()))(0, weight, weight)
    with pytest.raises(AttributeError, match="^'int' object"):
        mx.optimizer.get_updater(mx.optimizer.SGD())(0, 3, weight)
