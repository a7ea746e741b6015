import pytest

import mxcore as mx


@pytest.fixture(autouse=True)
def fresh_names():
    """Names count from 0 in every test."""
    with mx.name.NameManager():
        yield


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Publications are looked for in an empty folder instead of on the network."""
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "nowhere").as_uri())
    return tmp_path
