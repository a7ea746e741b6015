"""Blocks in half precision: bfloat16 does what float16 does; parameters of batch normalisation stay float32."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.gluon import nn

pytest.importorskip("ml_dtypes")
HALVES = ["float16", "bfloat16"]
NORMALS = {
    "BatchNorm": lambda: nn.BatchNorm(in_channels=4),
    "BatchNorm, deferred": lambda: nn.BatchNorm(),
    "BatchNormReLU": lambda: nn.BatchNormReLU(in_channels=4),
    "SyncBatchNorm": lambda: gluon.contrib.nn.SyncBatchNorm(in_channels=4, num_devices=1),
    "LayerNorm": lambda: nn.LayerNorm(in_channels=4, axis=1),
    "InstanceNorm": lambda: nn.InstanceNorm(in_channels=4),
}


def build(kind):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, in_channels=3), NORMALS[kind](), nn.Activation("relu"), nn.Dense(2, in_units=4 * 16))
    return net


def data(dtype):
    return nd.array(np.random.RandomState(0).randn(2, 3, 6, 6)).astype(dtype)


def name(dtype):
    return np.dtype(dtype).name


def trained(kind, dtype, hybrid, cast_first, multi_precision=True):
    mx.random.seed(0)
    net = build(kind)
    if cast_first:
        net.cast(dtype)
    net.initialize()
    if not cast_first:
        net(data("float32"))
        net.cast(dtype)
    net.hybridize(hybrid)
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9, "multi_precision": multi_precision}
    )
    for _ in range(2):
        with autograd.record():
            y = net(data(dtype))
            loss = (y.astype("float32") ** 2).sum()
        loss.backward()
        trainer.step(2)
    return net


@pytest.mark.parametrize("cast_first", [True, False])
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", NORMALS)
def test_training_and_inference(kind, dtype, hybrid, cast_first):
    net, wide = (trained(kind, t, hybrid, cast_first) for t in (dtype, "float32"))
    inner = dtype if kind in ("LayerNorm", "InstanceNorm") else "float32"
    assert {name(p.data().dtype) for p in net[1].collect_params().values()} == {inner}
    assert {name(net[i].weight.data().dtype) for i in (0, 3)} == {dtype}
    y = net(data(dtype))
    assert name(y.dtype) == dtype
    np.testing.assert_allclose(y.astype("float32").asnumpy(), wide(data("float32")).asnumpy(), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", NORMALS)
def test_files(kind, dtype, hybrid, tmp_path):
    net = trained(kind, dtype, hybrid, True)
    y = net(data(dtype)).astype("float32").asnumpy()
    net.save_parameters(str(tmp_path / "net.params"))
    other = build(kind)
    other.cast(dtype)
    other.load_parameters(str(tmp_path / "net.params"))
    np.testing.assert_array_equal(other(data(dtype)).astype("float32").asnumpy(), y)
    if not hybrid:
        return
    net.export(str(tmp_path / "net"))
    read = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    np.testing.assert_allclose(read(data(dtype)).astype("float32").asnumpy(), y, rtol=2e-2, atol=1e-2)
    read.cast("float32")
    read.cast(dtype)
    assert {name(p.data().dtype) for n, p in read.params.items() if "running" in n} <= {"float32"}
    assert name(read(data(dtype)).dtype) == dtype


@pytest.mark.parametrize("dtype", HALVES)
def test_a_dtype_is_known_by_its_name_alone(dtype):
    """A process that has not met bfloat16 yet."""
    import subprocess
    import sys

    code = (
        f"import mxcore as mx; net = mx.gluon.nn.BatchNorm(in_channels=2); net.cast({dtype!r}); print(net.gamma.dtype)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "float32" in found


@pytest.mark.parametrize("dtype", HALVES)
def test_optimizers_keep_a_master_copy_or_warn(dtype):
    weight, grad = nd.ones((3,), dtype=dtype), nd.ones((3,), dtype=dtype)
    wide = mx.optimizer.create("adam", multi_precision=True)
    master, _ = wide.create_state_multi_precision(0, weight)
    assert name(master.dtype) == "float32"
    narrow = mx.optimizer.create("sgd", learning_rate=0.5)
    with pytest.warns(UserWarning, match=f"sums {dtype} numbers"):
        state = narrow.create_state_multi_precision(0, weight)
    narrow.update_multi_precision(0, weight, grad, state)
    assert weight.astype("float32").asnumpy().tolist() == [0.5] * 3


def test_numbers_are_drawn_in_bfloat16():
    mx.random.seed(3)
    narrow = nd.random.uniform(-1, 1, shape=(50,), dtype="bfloat16")
    mx.random.seed(3)
    wide = nd.random.uniform(-1, 1, shape=(50,))
    assert name(narrow.dtype) == "bfloat16"
    np.testing.assert_allclose(narrow.astype("float32").asnumpy(), wide.asnumpy(), rtol=1e-2)
    assert narrow.astype("float32").asnumpy().max() < 1
