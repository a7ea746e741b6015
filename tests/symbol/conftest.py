"""Fresh names for every test."""

import pytest

import mxcore as mx


@pytest.fixture(autouse=True)
def fresh_names():
    with mx.name.NameManager():
        yield


@pytest.fixture
def a():
    return mx.sym.Variable("a")


@pytest.fixture
def b():
    return mx.sym.Variable("b")


@pytest.fixture
def fc():
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
