"""The examples with mx.np."""

import re


def test_linear_regression(example):
    printed = example("linear_regression_numpy")
    assert float(re.search(r"weight off by (\S+),", printed)[1]) < 0.005
    assert float(re.search(r"bias by (\S+)", printed)[1]) < 0.005


def test_transformer_is_the_same_eagerly_and_as_a_graph(example, tmp_path):
    def bits(*more):
        printed = example("transformer_numpy", "--epochs", 2, "--save", "model.params", *more)
        assert re.search(r"^> this is the .{50}", printed, re.M | re.S)
        return [float(x) for x in re.findall(r"(\S+) bits", printed)]

    eager, graph = bits(), bits("--hybridize")
    assert 3 < eager[1] < eager[0] < 5
    assert max(abs(a - b) for a, b in zip(eager, graph)) < 0.02
    assert (tmp_path / "model.params").exists()
