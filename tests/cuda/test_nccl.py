"""KVStore 'nccl' over a stand-in of NCCL, on three emulated GPUs."""

import ctypes
import functools
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon
from mxcore.base import MXNetError
from mxcore_cuda import drivers, nccl, probe
from mxcore_cuda.emulation.streams import Meeting
from mxcore_cuda.nccl import Step, clique

from .test_training import losses, mlp

GPUS = 3
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64")


@pytest.fixture
def calls(gpus, monkeypatch):
    """The calls of NCCL's functions, by name."""
    found, call = [], nccl.call

    def noted(name, *arguments):
        found.append(name.removeprefix("nccl"))
        call(name, *arguments)

    monkeypatch.setattr(nccl, "call", noted)
    yield found
    nccl.library().mx_fail(b"", 0)


def arrays(contexts, shape=(3, 2), dtype="float32", seed=0):
    rs = np.random.RandomState(seed)
    return [mx.nd.array(rs.uniform(0, 50, shape), ctx=ctx, dtype="float64").astype(dtype) for ctx in contexts]


def opened(keys=("w",), shape=(3, 2), dtype="float32"):
    kv = mx.kv.create("nccl")
    kv.init([*keys], [mx.nd.zeros(shape, dtype=dtype)] * len(keys))
    return kv


def pulled(kv, key="w", shape=(3, 2), ctx=None, dtype="float32"):
    out = mx.nd.empty(shape, ctx=ctx, dtype=dtype)
    kv.pull(key, out)
    return out.asnumpy()


def total(parts):
    return functools.reduce(np.add, [p.asnumpy() for p in parts])


# -- what it does ------------------------------------------------------------------------------------------------------
def test_facts(gpus):
    kv = mx.kv.create("NCCL")
    assert kv.type == "nccl" and kv.rank == 0 and kv.num_workers == 1 and kv.is_capable("optimizer")
    assert kv.batches(gpus) and not kv.batches(gpus[:1])
    assert mx.runtime.feature_list()[2].name == "NCCL" and mx.runtime.feature_list()[2].enabled
    assert nccl.describe() == "NCCL 2.29.7 for kvstore 'nccl'"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_what_gpus_push_is_added_up_and_handed_out(gpus, calls, dtype, n):
    kv, parts = opened(dtype=dtype), arrays(gpus[-n:], dtype=dtype)
    kv.push("w", parts)
    outs = arrays(gpus, dtype=dtype, seed=1)
    kv.pull("w", outs)
    for out in outs:
        if n < 3 or np.dtype(dtype).kind in "iu":
            assert out.asnumpy().tobytes() == total(parts).tobytes()
        else:
            np.testing.assert_allclose(out.asnumpy().astype("f8"), total(parts).astype("f8"), rtol=1e-2)
    assert [c for c in calls if c in ("Reduce", "Broadcast")] == ["Reduce"] * n * (n > 1) + ["Broadcast"] * 3
    for p in parts:
        p[:] = 1  # what was pushed is used again
    assert pulled(kv, dtype=dtype).tobytes() == outs[0].asnumpy().tobytes()


def test_keys_that_come_together_are_one_group(gpus, calls):
    keys = [*range(20)]
    kv = opened(keys)
    parts, outs = [arrays(gpus, seed=k) for k in keys], [arrays(gpus) for _ in keys]
    kv.pushpull(keys, parts)
    mx.nd.waitall()
    calls.clear()
    kv.pushpull(keys, parts, out=outs)
    mx.nd.waitall()
    assert calls == ["GroupStart", *["AllReduce"] * 60, "GroupEnd"]
    kv.set_optimizer(mx.optimizer.SGD())
    calls.clear()
    kv.pushpull(keys, parts, out=outs)
    mx.nd.waitall()
    assert calls == ["GroupStart", *["Reduce"] * 60, "GroupEnd", "GroupStart", *["Broadcast"] * 60, "GroupEnd"]
    assert sorted(ctx.device_id for ctx in kv._homes.values()) == [0] * 7 + [1] * 7 + [2] * 6


def test_sums_take_the_place_of_what_was_pushed(gpus):
    kv, parts = opened("ab"), [arrays(gpus, seed=k) for k in range(2)]
    for step in range(3):
        expected = [total(some) for some in parts]
        kv.pushpull(["a", "b"], parts, priority=-step)
        for key, some, value in zip("ab", parts, expected):
            for p in (*some, mx.nd.array(pulled(kv, key))):
                np.testing.assert_allclose(p.asnumpy(), value, rtol=1e-6)


@pytest.mark.parametrize("order", ["crossed", "twice", "elsewhere", "cast"])
def test_what_does_not_fit_one_sum_everywhere(gpus, order):
    """Outputs that other keys are read from, that come twice, on other GPUs or of other dtypes."""
    kv, (a, b) = opened("ab"), (arrays(gpus[:2], seed=0), arrays(gpus[:2], seed=1))
    sums = total(a), total(b)
    if order == "crossed":
        kv.pushpull(["a", "b"], [a, b], out=[b, a])
        outs, expected = (*b, *a), [sums[0]] * 2 + [sums[1]] * 2
    elif order == "twice":
        kv.pushpull(["a", "b"], [a, b], out=[[a[0]], [a[0], a[1]]])
        outs, expected = a, [sums[1]] * 2
    elif order == "elsewhere":
        outs = arrays(gpus[1:])
        kv.pushpull(["a", "b"], [a, b], out=[outs[:1], outs[1:]])
        expected = sums
    else:
        outs = [*arrays(gpus[:1], dtype="float64"), *arrays(gpus[1:2], dtype="float16"), mx.nd.zeros((3, 2))]
        kv.pushpull("a", a, out=outs)
        expected = [sums[0].astype("f8"), sums[0].astype("f2"), sums[0]]
    for out, value in zip(outs, expected):
        np.testing.assert_array_equal(out.asnumpy(), value)


def test_a_key_may_come_from_other_gpus_at_each_push(gpus):
    kv = opened()
    kv.push("w", arrays(gpus[1:]))
    home = kv._homes["w"]
    for some in (gpus, gpus[:1], gpus[::-1], [c for c in gpus if c is not home]):
        parts = arrays(some, seed=len(some))
        kv.push("w", parts)
        np.testing.assert_allclose(pulled(kv, ctx=gpus[0]), total(parts), rtol=1e-6)
        assert kv._stored["w"].context is home


def test_one_gpu_may_bring_a_key_twice(gpus, calls):
    kv, parts = opened(), arrays([gpus[0], gpus[0], gpus[1]])
    kv.push(("w", "w"), (parts[:1], parts[1:]))
    np.testing.assert_allclose(pulled(kv), total(parts), rtol=1e-6)
    assert calls.count("Reduce") == 2
    kv.push("w", [parts[0]] * 3)
    np.testing.assert_allclose(pulled(kv), parts[0].asnumpy() * 3, rtol=1e-6)


def test_views_turned_memory_and_empty_arrays(gpus):
    kv = opened()
    whole = [mx.nd.array(np.arange(12).reshape(6, 2), ctx=ctx) for ctx in gpus]
    kv.push("w", [a[3:] for a in whole])
    expected = np.arange(6, 12).reshape(3, 2) * 3
    outs = [mx.nd.zeros((6, 2), ctx=ctx) for ctx in gpus]
    kv.pull("w", [o[:3] for o in outs])
    for o in outs:
        np.testing.assert_array_equal(o.asnumpy(), np.concatenate([expected, np.zeros((3, 2))]))
    kv.init("e", mx.nd.empty((0, 4)))
    kv.pushpull("e", arrays(gpus, (0, 4)))
    assert pulled(kv, "e", (0, 4)).shape == (0, 4)
    kv.push([], [])
    kv.pushpull([], [], out=[])


def test_many_keys_of_all_kinds(gpus):
    rs = np.random.RandomState(0)
    keys = [*range(40)]
    kinds = [(int(rs.randint(1, 3000)), str(rs.choice(DTYPES[:4]))) for _ in keys]
    stores = mx.kv.create("nccl"), mx.kv.create("device")
    for kv in stores:
        kv.init(keys, [mx.nd.zeros((n,), dtype=d) for n, d in kinds])
    for step in range(2):
        who = [[gpus[i] for i in rs.permutation(3)[: rs.randint(1, 3)]] for _ in keys]
        parts = [arrays(some, (n,), d, seed=step) for some, (n, d) in zip(who, kinds)]
        found = []
        for kv in stores:
            outs = [[mx.nd.zeros((n,), ctx=ctx, dtype=d) for ctx in gpus] for n, d in kinds]
            kv.pushpull(keys, parts, out=outs)
            found.append([out.asnumpy().tobytes() for out in sum(outs, [])])
        assert found[0] == found[1]  # of two terms


# -- as 'device' -------------------------------------------------------------------------------------------------------
def trained(gpus, kvstore, monkeypatch, **params):
    made = gluon.Trainer
    monkeypatch.setattr(gluon, "Trainer", functools.partial(made, kvstore=kvstore, **params))
    found = losses(mlp, gpus, True, "adam")
    monkeypatch.setattr(gluon, "Trainer", made)
    return found


@pytest.mark.parametrize("on_store", [True, False])
@pytest.mark.parametrize("n", [2, 3])
def test_a_trainer_learns_as_with_device(gpus, calls, monkeypatch, n, on_store):
    there = trained([*gpus[:n]], "nccl", monkeypatch, update_on_kvstore=on_store)
    assert "Reduce" in calls if on_store else "AllReduce" in calls
    here = trained([*gpus[:n]], "device", monkeypatch, update_on_kvstore=on_store)
    np.testing.assert_allclose(there, here, rtol=1e-6 if n == 2 else 1e-4)


@pytest.mark.parametrize("on_store", ["1", "0"])
def test_a_module_learns_as_with_device(gpus, monkeypatch, on_store):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", on_store)
    found = []
    for kind in ("nccl", "device"):
        mx.random.seed(0)
        np.random.seed(0)
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="first")
        net = mx.sym.FullyConnected(mx.sym.relu(net), num_hidden=3, name="second")
        module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"), context=list(gpus[:2]))
        data = np.random.RandomState(0).randn(24, 5).astype("float32")
        batches = mx.io.NDArrayIter(data, data.argmax(1) % 3, batch_size=8)
        module.fit(batches, num_epoch=3, kvstore=kind, optimizer="adam", initializer=mx.init.Xavier())
        args, _ = module.get_params()
        found.append({k: v.asnumpy() for k, v in args.items()})
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], rtol=1e-6, err_msg=name)


def test_states_go_to_a_file_and_back(gpus, tmp_path):
    def store():
        kv = mx.kv.create("nccl")
        kv.init(0, mx.nd.ones((2,), ctx=gpus[0]))
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
        return kv

    a, b = store(), store()
    a.push(0, arrays(gpus, (2,)))
    a.save_optimizer_states(str(tmp_path / "states"), dump_optimizer=True)
    b.push(0, arrays(gpus, (2,)))
    b.load_optimizer_states(str(tmp_path / "states"))
    for kv in (a, b):
        kv.push(0, arrays(gpus, (2,), seed=1))
    np.testing.assert_array_equal(pulled(a, 0, (2,)), pulled(b, 0, (2,)))


def test_a_single_gpu_needs_none(gpus):
    net = gluon.nn.Dense(2, in_units=2)
    net.initialize(ctx=gpus[0])
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="nccl")
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 2), ctx=gpus[0]))
    loss.backward()
    trainer.step(1)
    assert trainer._kvstore is None


def test_threads_share_stores_and_gpus(gpus, in_threads):
    stores = [opened("ab"), opened("ab")]
    parts = [arrays(gpus, seed=i) for i in range(4)]

    def run(i):
        for _ in range(10):
            stores[i % 2].push("ab"[i // 2], parts[i])

    in_threads(run, [(i,) for i in range(4)])
    for i in range(4):
        np.testing.assert_allclose(pulled(stores[i % 2], "ab"[i // 2]), total(parts[i]), rtol=1e-6)


def test_it_waits_for_what_is_computed_and_nobody_waits_for_it(gpus, monkeypatch):
    kv = opened(shape=(200, 200))
    meetings, launch = [], Meeting.launch
    monkeypatch.setattr(Meeting, "launch", lambda self: (meetings.append(self), launch(self)))
    for step in range(3):
        parts = [mx.nd.ones((200, 200), ctx=ctx) for ctx in gpus]
        parts = [mx.nd.dot(p, p) * step for p in parts]
        kv.pushpull("w", parts)
        assert meetings[-1].places  # nobody got there yet
        sums = [p + 1 for p in parts]
        del parts
        for s in sums:
            assert (s.asnumpy() == 600 * step + 1).all()


# -- what is wrong -----------------------------------------------------------------------------------------------------
def rows(ctx):
    return mx.nd.zeros((3, 2), ctx=ctx).tostype("row_sparse")


@pytest.mark.parametrize(
    "use, kind, said",
    [
        (lambda kv, g: kv.push("w", arrays([g[0], mx.cpu()])), ValueError, r"push of key 'w'.* GPUs .* cpu\(0\)"),
        (lambda kv, g: kv.push("w", [rows(g[0])] * 2), TypeError, "push of key 'w'.* dense values only.* row_sparse"),
        (lambda kv, g: kv.init("r", rows(g[0])), TypeError, "init of key 'r'.* dense values only"),
        (
            lambda kv, g: kv.pull("w", [rows(g[0])], ignore_sparse=False),
            TypeError,
            "pull of key 'w'.* dense values only",
        ),
        (
            lambda kv, g: kv.row_sparse_pull("w", rows(g[0]), row_ids=mx.nd.array([0])),
            NotImplementedError,
            "'nccl' has no row_sparse_pull",
        ),
        (lambda kv, g: kv.set_gradient_compression({"type": "2bit"}), ValueError, "'nccl' does not compress gradients"),
        (lambda kv, g: kv.push("v", arrays(g)), KeyError, "push of key 'v', which was not initialised"),
        (lambda kv, g: kv.push("w", arrays(g, (2, 3))), ValueError, r"its value has shape \(3, 2\)"),
        (lambda kv, g: kv.push("w", arrays(g, dtype="float16")), TypeError, "its value is float32"),
        (lambda kv, g: kv.pull("w", arrays(g, (9,))), ValueError, "pull of key 'w'"),
        (lambda kv, g: kv.pushpull("w", arrays(g), out=arrays(g, (9,))), ValueError, "pull of key 'w'"),
        (lambda kv, g: kv.init("w", mx.nd.ones(1)), ValueError, "initialised before"),
        (lambda kv, g: kv.push("b", arrays(g, (2,), "bool")), TypeError, "key 'b': NCCL adds up no bool; 'device'"),
    ],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_bad_input(gpus, use, kind, said):
    kv = opened()
    kv.init("b", mx.nd.zeros((2,), dtype="bool"))
    kv.push("w", arrays(gpus))
    before = pulled(kv)
    with pytest.raises(kind, match=said) as caught:
        use(kv, gpus)
    assert isinstance(caught.value, MXNetError)
    np.testing.assert_array_equal(pulled(kv), before)


def test_without_the_library_what_to_install_is_said(gpus, monkeypatch):
    monkeypatch.setattr(type(drivers.driver()), "nccl", lambda self: None)
    nccl.library.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=r"needs NCCL.*mxcore-cuda\[nccl13\].*'device' does the same") as caught:
            mx.kv.create("nccl")
        assert isinstance(caught.value, MXNetError)
        assert nccl.describe().startswith("no NCCL for kvstore 'nccl': pip install")
    finally:
        nccl.library.cache_clear()


def test_without_a_gpu_that_is_said(gpus, monkeypatch):
    monkeypatch.setattr(probe, "_counted", lambda: (0, "there is no NVIDIA driver"))
    with pytest.raises(RuntimeError, match="kvstore 'nccl' is for GPUs: there is no NVIDIA driver"):
        mx.kv.create("nccl")


@pytest.mark.parametrize("name", ["CommInitAll", "GroupStart", "Reduce", "GroupEnd"])
def test_what_nccl_says_is_told(gpus, calls, name):
    nccl.close()
    kv = opened()
    nccl.library().mx_fail(f"nccl{name}".encode(), 1)
    with pytest.raises(
        RuntimeError, match=rf"nccl{name}: unhandled cuda error \(1\); a failure that was asked for; an earlier kernel"
    ) as caught:
        kv.push("w", arrays(gpus))
        kv._stored["w"].asnumpy()
    assert isinstance(caught.value, MXNetError)
    nccl.library().mx_fail(b"", 0)
    kv.push("w", arrays(gpus))
    np.testing.assert_allclose(pulled(kv), total(arrays(gpus)), rtol=1e-6)


def test_communicators_are_made_once_and_given_back(gpus, calls):
    nccl.close()
    before, kv = nccl.library().mx_left(), opened("ab")
    for _ in range(3):
        kv.push("a", arrays(gpus))
        kv.push("b", arrays(gpus[:2]))
    mx.nd.waitall()
    assert calls.count("CommInitAll") == 2 and nccl.library().mx_left() == before + 5
    kv.push("a", arrays(gpus))  # is on its way
    nccl.close()
    assert nccl.library().mx_left() == before
    np.testing.assert_allclose(pulled(kv, "a"), total(arrays(gpus)), rtol=1e-6)


PROGRAM = """
    import os
    import mxcore as mx
    from mxcore._core.manager import manager
    import mxcore_cuda
    from mxcore_cuda import nccl

    manager.load()
    if "cuda" not in manager.origin:
        manager.register(mxcore_cuda, "cuda")
    kv = mx.kv.create("nccl")
    kv.init(0, mx.nd.zeros(2))
    parts = [mx.nd.ones(2, ctx=mx.gpu(i)) for i in range(2)]
    kv.push(0, parts)
    print(mx.nd.array(kv._stored[0].asnumpy()).asnumpy().tolist(), flush=True)
    if os.fork() == 0:
        try:
            nccl.clique((0, 1)).run([nccl.Step([p._data for p in parts], [p._data for p in parts])])
        except mx.MXNetError as e:
            print("child:", e, flush=True)
        raise SystemExit(0)
    os.wait()
    kv.push(0, parts)
    print("parent:", kv._stored[0].asnumpy().tolist(), flush=True)
    call = nccl.call
    nccl.call = lambda name, *arguments: (print(name, flush=True), call(name, *arguments))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that can be forked")
def test_a_forked_process_is_told_and_its_parent_goes_on(gpus):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        env={**os.environ, "MXCORE_CUDA_EMULATE": "2", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "[2.0, 2.0]"
    assert lines[1].startswith("child: a GPU cannot be used in a process forked after its first use")
    assert lines[2:] == ["parent: [2.0, 2.0]", "ncclCommDestroy", "ncclCommDestroy"]  # and the child destroys nothing


# -- the stand-in ------------------------------------------------------------------------------------------------------
def raw(gpus, group, calls):
    """Make calls, (rank, function, count, type, root), for the ranks of two GPUs; returns status and what is said."""
    library, found = nccl.library(), clique((0, 1))
    memory = [mx.nd.ones(8, ctx=ctx) for ctx in gpus[:2]]
    mx.nd.waitall()
    status = library.ncclGroupStart() if group else 0
    for rank, name, count, kind, *root in calls:
        place = ctypes.c_void_p(memory[rank]._data.ptr)
        given = [place, place, ctypes.c_size_t(count), kind, *([0] if name != "Broadcast" else []), *root]
        comm = ctypes.c_void_p(found.communicators[rank])
        status = status or getattr(library, f"nccl{name}")(*given, comm, ctypes.c_void_p(1))
    if group:
        status = library.ncclGroupEnd() or status
    return status, library.ncclGetLastError(None).decode()


@pytest.mark.parametrize(
    "group, given, status, said",
    [
        (True, [(0, "AllReduce", 8, 7), (1, "AllReduce", 8, 7)], 0, ""),
        (False, [(0, "AllReduce", 8, 7)], 5, "outside of a group"),
        (True, [(0, "AllReduce", 8, 7)], 5, "rank 0 makes 1 calls, rank 1 makes 0: they would wait for ever"),
        (True, [(0, "AllReduce", 8, 7), (1, "AllReduce", 7, 7)], 5, "rank 1 calls ncclAllReduce of 7"),
        (True, [(0, "AllReduce", 8, 7), (1, "AllReduce", 8, 2)], 5, "rank 0 calls ncclAllReduce of 8 of type 7"),
        (True, [(0, "Reduce", 8, 7, 0), (1, "Reduce", 8, 7, 1)], 5, "root 1"),
        (True, [(0, "Reduce", 8, 7, 0), (1, "Broadcast", 8, 7, 0)], 5, "ncclBroadcast"),
        (True, [(0, "Reduce", 8, 7, 2), (1, "Reduce", 8, 7, 2)], 4, "invalid root"),
        (True, [(0, "AllReduce", 8, 77), (1, "AllReduce", 8, 77)], 4, "invalid type"),
        (True, [(0, "AllReduce", 9000, 7), (1, "AllReduce", 9000, 7)], 4, "not in memory of device 0"),
    ],
)
def test_the_stand_in_refuses_what_would_wait_for_ever(gpus, group, given, status, said):
    found, text = raw(gpus, group, given)
    if status == 4:
        assert found  # the group was left with a call missing, too
    else:
        assert found == status and said in text


def test_the_stand_in_knows_devices_and_communicators(gpus):
    with pytest.raises(MXNetError, match="ncclCommInitAll: invalid usage .*duplicate device 1"):
        nccl.Clique((0, 1, 1))
    with pytest.raises(MXNetError, match="ncclCommInitAll: invalid usage .*device 3"):
        nccl.Clique((0, 3))
    assert nccl.library().ncclGroupEnd() == 5
    found = nccl.Clique((0, 1))
    found.close()
    with pytest.raises(MXNetError, match="ncclCommDestroy: invalid argument .*was destroyed"):
        found.close()


def test_memory_of_another_gpu_is_refused(gpus):
    a = [mx.nd.ones(4, ctx=gpus[0]) for _ in range(2)]
    clique((0, 1)).run([Step([x._data for x in a], [x._data for x in a])])
    with pytest.raises(MXNetError, match="ncclAllReduce: invalid argument .*sendbuff is not in memory of device 1"):
        a[0].asnumpy()
