"""Files that never end, and disks that fail: every reader says so in time."""
import os
import signal

import pytest

import mxcore as mx
from mxcore._io_files import read_text, read_whole
from mxcore.base import MXNetError
from mxcore.cli.predict.inputs import npy

READERS = {
    "params": mx.nd.load,
    "symbol": mx.sym.load,
    "states": lambda p: mx.optimizer.get_updater(mx.optimizer.SGD()).load(p),
    "csv": lambda p: mx.io.CSVIter(data_csv=p, data_shape=(1,), batch_size=1),
    "embedding": lambda p: mx.contrib.text.embedding.CustomEmbedding(p),
    "block": lambda p: mx.gluon.nn.Dense(1).load_parameters(p),
    "import": lambda p: mx.gluon.SymbolBlock.imports(p, ["data"]),
    "initializer": lambda p: mx.init.Load(p),
    "npy": npy,
}


@pytest.fixture(autouse=True)
def alarm():
    """A reader that does not end would hold up all tests."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no such file here")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom"])
def test_devices_without_end(name, path):
    with pytest.raises(MXNetError, match=path):
        READERS[name](path)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="there is no such file here")
@pytest.mark.parametrize("name", READERS)
def test_errors_of_reading_name_the_file(name):
    with pytest.raises(MXNetError, match="cannot read '/proc/self/mem'") as caught:
        READERS[name]("/proc/self/mem")
    assert isinstance(caught.value, OSError)


def test_how_much_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1000)
    assert read_whole(path) == read_whole(path, most=1000) == b"x" * 1000
    with pytest.raises(MXNetError, match="longer than 999 bytes"):
        read_whole(path, most=999)
    with pytest.raises(MXNetError, match="it begins with b'xxxx"):
        read_whole(path, begins=lambda first: first[:1] == b"y")
    monkeypatch.setattr("mxcore._io_files._LONGEST_TEXT", 10)
    with pytest.raises(MXNetError, match="longer than 10 bytes"):
        read_text(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_what_has_no_size_ends_somewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("mxcore._io_files._ENDLESS", 1 << 21)
    with pytest.raises(MXNetError, match="longer than 2097152 bytes"):
        read_whole("/dev/zero")
