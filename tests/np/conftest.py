"""Tests of ``mx.np`` begin and end with MXNet's meaning of shapes and arrays of ``mx.nd``."""

import pytest

from mxcore import npx


@pytest.fixture(autouse=True)
def plain():
    yield
    npx.reset_np()


@pytest.fixture
def numpy_mode(plain):
    npx.set_np()
