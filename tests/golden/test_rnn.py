"""``gluon.rnn`` gives what MXNet 1.9.1 gave: outputs, states, gradients, names of parameters, also in files."""

import pathlib

import numpy as np
import pytest

import mxcore as mx

from . import rnn_cases

with np.load(pathlib.Path(__file__).resolve().parent / "data" / "rnn_gluon.npz") as file:
    GOLDEN = dict(file)


def test_the_file_holds_these_cases():
    assert {k.rpartition(".")[0] for k in GOLDEN} == set(rnn_cases.CASES)


@pytest.mark.parametrize("name", rnn_cases.CASES)
def test_as_mxnet(name):
    found = rnn_cases.run(mx, name)
    assert len(found) == sum(k.rpartition(".")[0] == name for k in GOLDEN)
    for i, value in enumerate(found):
        want = GOLDEN[f"{name}.{i}"]
        if value.dtype == np.uint8:
            assert value.tobytes().decode() == want.tobytes().decode(), i
        else:
            assert value.shape == want.shape and value.dtype == want.dtype
            np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-5, err_msg=str(i))
