"""``mxcore info --kernels``: who runs, where, and why."""

import pytest

import mxcore as mx
from mxcore import cli
from mxcore.plugin import Device, KernelSet, op


@op("test_shown", "test_shown_too")
def shown(k, p, data):
    """Return data."""
    return data


def kernel_set(value, **kw):
    ks = KernelSet("cpu")

    @ks.kernel("test_shown", **kw)
    def kernel(k, p, data):
        return data * 0 + value

    return {"cpu": ks}


def told(capsys, name="test_shown"):
    """Lines about the CPU, without the places of functions."""
    assert cli.main(["info", "--kernels", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == "operator test_shown of the_op (dist-the_op)"
        and lines[1].split(",")[0] == "cpu"
        and lines[1].endswith(", of cpu_numba (mxcore)")
    )
    ours = []
    for line in lines[2:]:
        if not line.startswith("  "):
            break
        ours.append(line[2:].replace(f"test_info_kernels:{shown.body.__code__.co_firstlineno}", "BODY"))
    return ours


def test_a_body_alone(plug, capsys):
    plug("the_op", mxcore_ops=[shown])
    lines = told(capsys, "test_shown_too")
    assert (
        lines[0] == "all dtypes:"
        and lines[1].startswith("  1. reference body, ")
        and lines[1].endswith("BODY: no kernel is there")
    )
    assert lines[2:] == ["sparse inputs (row_sparse, csr): they are made dense first"]


def test_dtypes_conditions_priorities(plug, capsys):
    plug("the_op", mxcore_ops=[shown])
    plug("high", mxcore_kernels=kernel_set(1, dtypes="f4", priority=10, when=lambda p, x: x.ndim == 1))
    plug("low", mxcore_kernels=kernel_set(2, dtypes="f4 f8", out=True))
    plug("least", mxcore_kernels=kernel_set(3, priority=-1))
    lines = told(capsys)
    assert [x for x in lines if x.endswith(":")] == ["float32:", "float64:", "all other dtypes:"]
    first, second, third = (x.split(", ") for x in lines[1:4])
    assert (
        first[0] == "  1. kernel of high (dist-high)"
        and first[2].startswith("where its `when` (")
        and first[2].endswith("holds: its priority 10 is above 0")
    )
    assert (
        second[0] == "  2. kernel of low (dist-low)"
        and second[2] == "writes into its outputs: its priority 0 is above -1"
    )
    assert third[0] == "     never reached: kernel of least (dist-least)" and third[2] == "priority -1"
    others = lines[lines.index("all other dtypes:") + 1]
    assert others.startswith("  1. kernel of least") and others.endswith(
        "priority -1, and a kernel goes before the reference body"
    )
    x = mx.nd.zeros((2,), dtype="int32")
    assert mx.nd.test_shown(x).asnumpy().tolist() == [3, 3] and mx.nd.test_shown(
        x.astype("float32")
    ).asnumpy().tolist() == [1, 1]


def test_dtypes_of_other_libraries_have_names(plug, capsys):
    plug("the_op", mxcore_ops=[shown])
    plug("half", mxcore_kernels=kernel_set(1, dtypes="float32 bfloat16"))
    assert [x for x in told(capsys) if x.endswith(":")] == ["bfloat16, float32:", "all other dtypes:"]
    for dtype, wanted in (("bfloat16", 1), ("float32", 1), ("float16", 0)):
        assert mx.nd.test_shown(mx.nd.zeros((1,), dtype=dtype)).astype("float32").asscalar() == wanted
    with pytest.raises(TypeError, match="unknown dtype 'f9'; use one of .*bfloat16"):
        KernelSet("cpu").kernel("test_shown", dtypes="f9")


@pytest.mark.filterwarnings("ignore:kernels of a")
def test_ties(plug, capsys, monkeypatch):
    plug("the_op", mxcore_ops=[shown])
    plug("b", mxcore_kernels=kernel_set(2))
    plug("a", mxcore_kernels=kernel_set(1))
    assert told(capsys)[1].endswith(
        "priority 0 as the next one, and the name of dist-a is before dist-b (MXCORE_KERNEL_ORDER decides otherwise)"
    )
    monkeypatch.setenv("MXCORE_KERNEL_ORDER", "dist-b")
    line = told(capsys)[1]
    assert line.startswith("  1. kernel of b (dist-b)") and line.endswith(
        "priority 0 as the next one, and MXCORE_KERNEL_ORDER names b first"
    )


def test_sparse_inputs_and_devices_that_cannot(plug, capsys):
    class Bare(Device):
        type, type_id, xp = "test_bare", 90_010, None

        def count(self):
            return 1

    class Broken(Bare):
        type, type_id = "test_broken", 90_011

        def count(self):
            raise OSError("no driver")

    plug("bare", mxcore_devices=[Bare(), Broken()])
    assert cli.main(["info", "--kernels", "relu"]) == 0
    out = capsys.readouterr().out
    assert "sparse body of the operator, before all other kernels" in out and "test_broken" not in out
    assert (
        "test_bare, of bare (dist-bare)\n  all dtypes:\n"
        "    1. an error: no kernel is there, and the device no array namespace\n" in out
    )
    assert cli.main(["info", "--kernels", "dot"]) == 0
    assert "kernels and body get them as they are" in capsys.readouterr().out


def test_an_operator_that_does_not_exist(capsys):
    assert cli.main(["info", "--kernels", "sofmax"]) == 1
    assert "no operator is named 'sofmax', did you mean 'softmax'" in capsys.readouterr().err
