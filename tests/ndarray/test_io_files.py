"""Files by path or URL: reading, replacing whole, and what is said when that fails."""

import errno
import io
import os
import re
import stat
import subprocess
import sys
import zipfile

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import mxcore as mx
from mxcore import _io_files
from mxcore._io_files import local_path, open_read, open_write, reading, write_atomic
from mxcore.base import MXNetError
from mxcore.drafts import atomic_writer
from mxcore.urls import is_url, store


def content(path):
    with open_read(path) as file:
        return file.read()


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "f.bin"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize("url", ["memory://box/a.bin", "memory:///box/deep/er/a.bin"])
def test_urls(url):
    write_atomic(url, [b"a", b"bc"])
    write_atomic(url, b"new")
    assert content(url) == b"new"
    fs, inner = fsspec.core.url_to_fs(url)
    assert [os.path.basename(p) for p in fs.ls(inner.rpartition("/")[0], detail=False)].count("a.bin") == 1
    assert not any(".tmp" in p for p in fs.find("/"))


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_local_paths(prefix, tmp_path):
    write_atomic(f"{prefix}{tmp_path}/a.bin", b"abc")
    assert content(f"{prefix}{tmp_path}/a.bin") == b"abc" and content(tmp_path / "a.bin") == b"abc"
    with open_write(tmp_path / "b.bin") as file:
        file.write(b"x")
    assert (tmp_path / "b.bin").read_bytes() == b"x"


def test_names():
    assert is_url("s3://b/k") and is_url("hdfs:///k")
    assert not any(is_url(p) for p in (r"C:\x", "C://x", "a.b", "file:///x"))
    assert local_path("file:///C:/x") == "C:/x" and local_path("~") == os.path.expanduser("~")
    for bad in (None, b"x", 3, ""):
        with pytest.raises(MXNetError, match="file name"):
            write_atomic(bad, b"")


@pytest.mark.parametrize("url, inner", [("hdfs:///d/w.bin", "/d/w.bin"), ("s3://box/w.bin", "box/w.bin")])
def test_other_stores_get_the_path_they_know(url, inner, monkeypatch):
    """Stand-ins for hdfs, where files are renamed into place, and s3, where an upload shows once complete."""
    calls = []

    class Store(MemoryFileSystem):
        protocol = ("hdfs", "s3")
        store, pseudo_dirs, cachable = {}, [""], False

        @classmethod
        def _strip_protocol(cls, path):
            return path.split("://", 1)[-1]

        def mv(self, old, new, **kwargs):
            calls.append(("mv", new))
            self.store[new] = self.store.pop(old)

    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, url.split(":")[0], Store)
    write_atomic(url, b"abc")
    assert {name: file.getvalue() for name, file in Store.store.items()} == {inner: b"abc"}
    assert calls == ([("mv", inner)] if url.startswith("hdfs") else [])


def test_a_failed_block_keeps_the_file(old):
    with pytest.raises(ZeroDivisionError), atomic_writer(old) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert old.read_bytes() == b"old" and os.listdir(old.parent) == ["f.bin"]
    write_atomic("memory://box/k.bin", b"old")
    with pytest.raises(ZeroDivisionError), atomic_writer("memory://box/k.bin") as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert content("memory://box/k.bin") == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_keeps_the_file(old, call, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(MXNetError, match="cannot write '.*f.bin'.*No space left") as caught:
        write_atomic(old, b"new")
    assert isinstance(caught.value, OSError) and caught.value.errno == errno.ENOSPC
    assert old.read_bytes() == b"old" and os.listdir(old.parent) == ["f.bin"]


@pytest.mark.skipif(os.name == "nt", reason="file size limits are POSIX")
def test_a_disk_that_fills_while_writing(old):
    script = (
        "import resource, signal, sys\n"
        "from mxcore._io_files import write_atomic\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999))\n"
        "try:\n    write_atomic(sys.argv[1], (bytes(1000) for _ in range(100)))\n"
        "except OSError as e:\n    print(e)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(old)], capture_output=True, text=True, check=True)
    assert "cannot write" in run.stdout and "File too large" in run.stdout
    assert old.read_bytes() == b"old" and os.listdir(old.parent) == ["f.bin"]


@pytest.mark.skipif(os.name == "nt", reason="modes and links are POSIX")
def test_modes_and_links_survive(old):
    fresh = old.parent / "fresh"
    umask = os.umask(0o027)
    try:
        write_atomic(fresh, b"")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640
    old.chmod(0o604)
    link = old.parent / "link"
    link.symlink_to(old)
    write_atomic(link, b"new")
    assert link.is_symlink() and old.read_bytes() == b"new" and stat.S_IMODE(old.stat().st_mode) == 0o604


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs /dev/null")
def test_devices_are_written_not_replaced():
    write_atomic("/dev/null", b"abc")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("action", [open_read, open_write, lambda p: write_atomic(p, b"x")])
def test_missing_folders_and_folders(action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MXNetError, match="the folder '.*none' does not exist") as caught:
        action("none/x.bin")
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(MXNetError, match="cannot (read|write)") as caught:
        action(tmp_path)
    assert isinstance(caught.value, OSError)


def test_missing_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MXNetError, match=r"cannot read 'x.bin': No such file .*looked in"):
        open_read("x.bin")
    with pytest.raises(MXNetError, match="cannot read 'memory://none/x'"):
        open_read("memory://none/x")


def test_errors_of_a_store_are_explained(monkeypatch):
    class NoCredentials(Exception):
        pass

    def refuse(*args, **kwargs):
        raise NoCredentials("who are you?")

    monkeypatch.setattr(MemoryFileSystem, "put_file", refuse)
    monkeypatch.setattr(MemoryFileSystem, "_open", refuse)
    for action in (open_read, open_write, lambda p: write_atomic(p, b"x")):
        with pytest.raises(MXNetError, match="'memory://box/z': NoCredentials: who are you") as caught:
            action("memory://box/z")
        assert isinstance(caught.value, OSError)


def test_unknown_stores():
    with pytest.raises(MXNetError, match="nosuch"):
        open_read("nosuch://a/b")
    with pytest.raises(MXNetError, match="nosuch"):
        write_atomic("nosuch://a/b", b"")


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MXNetError, match="pip install fsspec"):
        open_read("memory://a/b")


NAMELESS = [None, 5, 1.5, b"bytes", [], {}, "a\0b"]


@pytest.mark.parametrize("name", NAMELESS, ids=repr)
def test_what_is_no_file_name_is_told_by_its_argument(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("1\n")
    net = mx.gluon.nn.Dense(1, in_units=1)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 1)))
    vision, symbol = mx.gluon.data.vision, mx.sym.Variable("x")
    module = mx.mod.Module(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1), label_names=None)
    module.bind([("data", (1, 1))])
    module.init_params()
    calls = {
        "the prefix of a checkpoint": [
            lambda: mx.model.save_checkpoint(name, 0, symbol, {}, {}),
            lambda: mx.model.load_checkpoint(name, 0),
            lambda: net.export(name),
            lambda: mx.mod.Module.load(name, 0),
            lambda: module.save_checkpoint(name, 0),
            lambda: mx.callback.do_checkpoint(name)(0, symbol, {}, {}),
        ],
        "the prefix of a block's files": [lambda: net.save(name), lambda: net.load(name)],
        "CSVIter: data_csv": [lambda: mx.io.CSVIter(data_csv=name, data_shape=(1,), batch_size=1)],
        "MNISTIter: image": [lambda: mx.io.MNISTIter(image=name, label="l", batch_size=1)],
        "MNISTIter: label": [lambda: mx.io.MNISTIter(image="i", label=name, batch_size=1)],
        "the file of an embedding": [lambda: mx.contrib.text.embedding.CustomEmbedding(name)],
        "RecordFileDataset: filename": [
            lambda: mx.gluon.data.RecordFileDataset(name),
            lambda: vision.ImageRecordDataset(name),
        ],
        "ImageFolderDataset: root": [lambda: vision.ImageFolderDataset(name)],
        "the folder for TensorBoard": [lambda: mx.contrib.tensorboard.LogMetricsCallback(name)],
        "check_sha1: filename": [lambda: mx.gluon.utils.check_sha1(name, "0" * 8)],
        "download: url": [lambda: mx.gluon.utils.download(name)],
    }
    if name is not None:
        calls["CSVIter: label_csv"] = [
            lambda: mx.io.CSVIter(data_csv="a.csv", label_csv=name, data_shape=(1,), batch_size=1)
        ]
        calls["MNIST: root"] = [lambda: vision.MNIST(root=name)]
        calls["root, the folder of the models,"] = [
            lambda: mx.gluon.model_zoo.vision.resnet18_v1(pretrained=True, root=name)
        ]
        calls["download: path"] = [lambda: mx.gluon.utils.download("a.csv", path=name)]
    kind, text = (
        (ValueError, "no file can have the name ")
        if isinstance(name, str)
        else (TypeError, " must be a non-empty string or a path, not ")
    )
    for argument, ways in calls.items():
        for call in ways:
            with pytest.raises(kind) as e:
                call()
            assert (
                isinstance(e.value, MXNetError)
                and text in str(e.value)
                and (kind is ValueError or str(e.value).startswith(argument))
            ), (argument, e.value)
    assert os.listdir() == ["a.csv"]


class Raises(os.PathLike):
    def __fspath__(self):
        raise RuntimeError("no name yet")


class Number(os.PathLike):
    def __fspath__(self):
        return 5


@pytest.mark.parametrize("name, said", [(Raises(), "RuntimeError: no name yet"), (Number(), "TypeError: .* not int")])
def test_paths_of_own_classes_that_tell_no_name(name, said):
    module = mx.mod.Module(mx.sym.Variable("x"), data_names=["x"], label_names=None)
    for call in (
        lambda: mx.nd.save(name, []),
        lambda: mx.nd.load(name),
        lambda: mx.npx.save(name, mx.np.ones(1)),
        lambda: mx.npx.load(name),
        lambda: mx.sym.Variable("x").save(name),
        lambda: mx.sym.load(name),
        lambda: mx.gluon.nn.Dense(1, in_units=1).load_parameters(name),
        lambda: module.save_checkpoint(name, 0),
        lambda: mx.profiler.set_config(filename=name),
        lambda: mx.image.imread(name),
        lambda: mx.nd._internal._cvimread(name),
        lambda: mx.recordio.MXRecordIO(name, "r"),
        lambda: mx.recordio.MXRecordIO(name, "w"),
        lambda: mx.recordio.MXIndexedRecordIO(name, name, "r"),
        lambda: mx.recordio.MXIndexedRecordIO(name, name, "w"),
        lambda: mx.io.CSVIter(data_csv=name, data_shape=(1,), batch_size=1),
        lambda: mx.io.LibSVMIter(data_libsvm=name, data_shape=(1,), batch_size=1),
        lambda: mx.image.ImageIter(1, (3, 4, 4), path_imgrec=name),
    ):
        with pytest.raises(TypeError, match=f"must be .*a path, not {type(name).__name__}.* failed: {said}") as e:
            call()
        assert isinstance(e.value, MXNetError)


def test_a_prefix_may_be_a_path(tmp_path):
    mx.model.save_checkpoint(tmp_path / "net", 1, mx.sym.Variable("x"), {"w": mx.nd.ones(2)}, {})
    assert list(mx.model.load_checkpoint(tmp_path / "net", 1)[1]) == ["w"]


@pytest.mark.skipif(os.name == "nt", reason="descriptors are POSIX")
def test_a_number_is_no_file_and_stays_open():
    here, there = os.pipe()
    with pytest.raises(MXNetError):
        mx.gluon.utils.check_sha1(there, "0" * 8)
    assert os.write(there, b"x") == 1
    os.close(here), os.close(there)


def test_what_was_saved_under_np_shape_is_loaded_there_only(tmp_path):
    path = str(tmp_path / "a")
    with mx.util.np_shape():
        mx.nd.save(path, [mx.nd.array(5), mx.nd.zeros((0, 3)), mx.nd.ones((2,))])
        assert [x.shape for x in mx.nd.load(path)] == [(), (0, 3), (2,)]
    words = r"an array of shape \(\) was saved under np_shape .* use `with mx.util.np_shape\(\):`"
    with pytest.raises(ValueError, match=f"{re.escape(path)}: {words}"):
        mx.nd.load(path)
    for x in (mx.nd.array([[1.0, 2, 3]])[0:0], mx.nd.array([]), mx.nd.empty((0, 3))):  # legacy files hold empty arrays
        mx.nd.save(path, [x])
        assert mx.nd.load(path)[0].shape == x.shape


def test_pickles_from_other_machines_load_on_the_current_context():
    values = [
        mx.nd.array([1.0, 2]),
        mx.nd.array(5),
        mx.nd.array([[1.0, 0], [0, 2]]).tostype("csr"),
        mx.nd.array([[1.0, 0], [0, 2]]).tostype("row_sparse"),
    ]
    for x in values:
        make, (*args, _) = x.__reduce__()
        for ctx in (mx.gpu(7), mx.cpu(1)):
            y = make(*args, ctx)
            assert (
                y.context == (ctx if ctx.device_type == "cpu" else mx.cpu())
                and y.stype == x.stype
                and y.asnumpy().tolist() == x.asnumpy().tolist()
            )


@pytest.mark.parametrize("device", [1, 2])
def test_the_state_that_pickles_of_mxnet_hold(device):
    x = mx.nd.NDArray(None)  # what `pickle` makes first
    x.__setstate__({"handle": None})
    x.__setstate__(
        {
            "handle": bytearray.fromhex(
                f"c9fa93f900000000010000000200000000000000{device:02x}00000000000000000000000000803f00000040"
            )
        }
    )
    assert x.asnumpy().tolist() == [1, 2] and x.context == mx.cpu() and (x + 1).asnumpy().tolist() == [2, 3]


@pytest.mark.parametrize("word", [b"n", b"new", b"newer"], ids=["shorter", "other", "longer"])
def test_a_file_that_is_written_to_while_it_is_read(tmp_path, word):
    """Part of what was read may be the old file's, part the new one's: neither result nor complaint count."""
    path = tmp_path / "a.bin"

    def read(change, complaint=None):
        path.write_bytes(b"old")
        with reading(path) as file:
            found = file.read(1)
            change()
            if complaint is not None:
                raise complaint
            return found + file.read()

    def over():
        path.write_bytes(word)
        os.utime(path, ns=(1, 1))

    assert read(lambda: write_atomic(path, word)) == b"old"
    with pytest.raises(ValueError, match="damaged"):
        read(lambda: None, ValueError("damaged"))
    for complaint in (None, ValueError("damaged")):
        with pytest.raises(MXNetError, match=r"a\.bin' was written to while it was read; read it again") as caught:
            read(over, complaint)
        assert isinstance(caught.value, OSError) and caught.value.__cause__ is complaint


class _Failing(io.FileIO):
    """A file on a disk that tells of trouble when it is closed, as those of networks may."""

    def close(self):
        super().close()
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_file_that_was_read_is_read_however_it_closes(tmp_path, monkeypatch):
    path = str(tmp_path / "a.params")
    mx.nd.save(path, {"x": mx.nd.ones((2,))})
    monkeypatch.setattr(_io_files, "open", lambda name, mode: io.BufferedReader(_Failing(name, mode)), raising=False)
    assert mx.nd.load(path)["x"].asnumpy().tolist() == [1, 1]
    with pytest.raises(MXNetError, match="cannot read .*: what went wrong before") as e, reading(path):
        raise PermissionError("what went wrong before")
    assert isinstance(e.value, PermissionError)


def test_an_archive_that_was_read_is_read_however_it_closes(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("a.csv", "1,2\n")
    fs, inner = store(f"zip://a.csv::{path}")
    assert fs.cat_file(inner) == b"1,2\n"
    failing = _Failing(path)
    monkeypatch.setattr(fs._of, "close", failing.close)
    fs.__del__()  # what it raises when the interpreter calls it is printed only
    assert failing.closed
    monkeypatch.undo()
