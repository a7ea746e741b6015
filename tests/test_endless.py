"""Files that never end, and disks that fail: every reader says so in time."""

import os
import signal
import tempfile
from unittest import mock

import pytest

import mxcore as mx
from mxcore._io_files import lines_of, read_text, read_whole
from mxcore.base import MXNetError
from mxcore.cli.predict.answers import read_labels
from mxcore.cli.predict.inputs import npy
from mxcore.gluon.contrib.estimator import CheckpointHandler
from mxcore.testing.robust import bounded_memory


def _cifar(path):
    """CIFAR-10 whose files are links to one."""
    with tempfile.TemporaryDirectory() as folder:
        for n in range(1, 6):
            os.symlink(path, os.path.join(folder, f"data_batch_{n}.bin"))
        with mock.patch("mxcore.gluon.data.vision.downloaded._LONGEST", 1 << 24):
            mx.gluon.data.vision.CIFAR10(folder)


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
    "libsvm": lambda p: mx.io.LibSVMIter(data_libsvm=p, data_shape=(1,), batch_size=1),
    "labels": read_labels,
    "ImageIter": lambda p: mx.image.ImageIter(1, (3, 4, 4), path_imglist=p),
    "ImageDetIter": lambda p: mx.image.ImageDetIter(1, (3, 4, 4), path_imglist=p),
    "cifar": _cifar,
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
    with pytest.raises(MXNetError, match="data_batch_1.bin" if name == "cifar" else path):
        READERS[name](path)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="there is no such file here")
@pytest.mark.parametrize("name", READERS)
def test_errors_of_reading_name_the_file(name):
    with pytest.raises(
        MXNetError, match="cannot read '.*data_batch_1.bin'" if name == "cifar" else "cannot read '/proc/self/mem'"
    ) as caught:
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


FOLDERS = {
    "ImageFolderDataset": lambda d: mx.gluon.data.vision.ImageFolderDataset(d)[0],
    "ImageIter": lambda d: mx.image.ImageIter(1, (3, 4, 4), imglist=[[1.0, "a/b.jpg"]], path_root=d).next(),
    "ImageDataLoader": lambda d: next(
        iter(mx.gluon.contrib.data.vision.ImageDataLoader(1, (3, 4, 4), path_root=d, imglist=[[1.0, "a/b.jpg"]]))
    ),
    "csv": lambda d: mx.io.CSVIter(data_csv=f"{d}/a", data_shape=(1,), batch_size=1),
    "libsvm": lambda d: mx.io.LibSVMIter(data_libsvm=f"{d}/a", data_shape=(1,), batch_size=1),
    "ImageRecordIter": lambda d: mx.io.ImageRecordIter(path_imgrec=f"{d}/a", data_shape=(3, 4, 4), batch_size=1),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", FOLDERS)
def test_pipes_and_devices_in_a_folder_are_not_waited_for(name, tmp_path):
    ending = "rec" if name == "ImageRecordIter" else "jpg"
    (tmp_path / "a").mkdir()
    for make in (os.mkfifo, lambda p: os.symlink("/dev/zero", p)):
        make(tmp_path / "a" / f"b.{ending}")
        with pytest.raises(MXNetError, match=rf"cannot read '.*b\.{ending}': it is a pipe or a device") as caught:
            FOLDERS[name](str(tmp_path))
        assert isinstance(caught.value, OSError)
        (tmp_path / "a" / f"b.{ending}").unlink()


#: Names in the folders of published files -> how they are found.
PUBLISHED = {
    "train-images-idx3-ubyte": mx.gluon.data.vision.MNIST,
    "train-images-idx3-ubyte.gz": mx.gluon.data.vision.MNIST,
    "data_batch_1.bin": mx.gluon.data.vision.CIFAR10,
    "cifar-10-binary.tar.gz": mx.gluon.data.vision.CIFAR10,
    "wiki.train.tokens": mx.gluon.contrib.data.text.WikiText2,
    "wikitext-2-v1.zip": mx.gluon.contrib.data.text.WikiText2,
    "alexnet.params": lambda root: mx.gluon.model_zoo.vision.alexnet(pretrained=True, root=root),
    "alexnet-44335d1f.zip": lambda root: mx.gluon.model_zoo.vision.alexnet(pretrained=True, root=root),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("name", PUBLISHED)
def test_pipes_in_the_place_of_published_files_are_not_waited_for(name, tmp_path):
    for n in range(2, 6):
        (tmp_path / f"data_batch_{n}.bin").write_bytes(b"")
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=f"cannot read '.*{name}': it is a pipe or a device"):
        PUBLISHED[name](str(tmp_path))


def resume(folder):
    """Go on from the newest checkpoint of a folder."""
    from mxcore.gluon.contrib.estimator import CheckpointHandler, Estimator

    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    trained = Estimator(net, mx.gluon.loss.L2Loss(), trainer=mx.gluon.Trainer(net.collect_params(), "sgd"))
    data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((2, 3)), mx.nd.ones((2, 2))), 2)
    trained.fit(data, epochs=2, event_handlers=[CheckpointHandler(folder, resume_from_checkpoint=True)])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("kind", ["params", "states"])
def test_pipes_among_checkpoints_are_not_waited_for(kind, tmp_path):
    for other in ("params", "states"):
        (tmp_path / f"model-epoch0batch0.{other}").write_bytes(b"")
    (tmp_path / f"model-epoch0batch0.{kind}").unlink()
    os.mkfifo(tmp_path / f"model-epoch0batch0.{kind}")
    with pytest.raises(OSError, match=rf"cannot read '.*0\.{kind}': it is a pipe or a device"):
        resume(str(tmp_path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
@pytest.mark.parametrize("kind", ["params", "states", "json"])
def test_a_run_does_not_wait_for_pipes_among_its_checkpoints(kind, tmp_path, capsys):
    from mxcore.cli import main

    run = ["train", "--network", "mlp", "--output", str(tmp_path)]
    for other in ("params", "states", "json"):
        (tmp_path / f"mlp-0001.{other}").write_bytes(b"")
    (tmp_path / f"mlp-0001.{kind}").unlink()
    os.mkfifo(tmp_path / f"mlp-0001.{kind}")
    assert main([*run, "--resume"]) == 1
    assert f"mlp-0001.{kind}': it is a pipe or a device" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ImageFolderDataset", "csv", "libsvm", "ImageRecordIter"])
def test_a_folder_that_cannot_be_read_is_named(name, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(MXNetError, match=f"cannot read '{tmp_path}.*': Permission denied") as caught:
        FOLDERS[name](str(tmp_path))
    assert isinstance(caught.value, PermissionError)


@pytest.mark.parametrize("name", ["libsvm", "ImageIter", "ImageDetIter", "csv", "embedding"])
def test_a_file_of_holes_is_refused_in_time(name, tmp_path):
    path = tmp_path / "holes"
    with open(path, "wb") as f:
        f.truncate(1 << 40)
    with bounded_memory(1 << 30), pytest.raises(MXNetError, match="holes"):
        READERS[name](str(path))


@pytest.mark.parametrize("kind", ["MXIndexedRecordIO", "ImageRecordIter", "list", "index"])
def test_what_does_not_fit_into_memory_is_named(kind, tmp_path):
    path, rec = str(tmp_path / "holes"), str(tmp_path / "a.rec")
    with open(path, "wb") as f:
        f.truncate(1 << 40)
    with mx.recordio.MXRecordIO(rec, "w") as w:
        w.write(b"x")
    common = {"path_imgrec": rec, "data_shape": (3, 4, 4), "batch_size": 1, "verbose": False}
    read = {
        "MXIndexedRecordIO": lambda: mx.recordio.MXIndexedRecordIO(path, rec, "r"),
        "list": lambda: mx.io.ImageRecordIter(path_imglist=path, **common),
        "ImageRecordIter": lambda: mx.io.ImageRecordIter(path_imgidx=path, **common),
        "index": lambda: mx.image.ImageIter(1, (3, 4, 4), path_imgrec=rec, path_imgidx=path),
    }
    with (
        bounded_memory(1 << 30),
        pytest.raises(MXNetError, match="cannot read '.*holes': its 1099511627776 bytes do not fit into memory"),
    ):
        read[kind]()


def test_digits_that_do_not_fit_into_memory_are_named(tmp_path):
    path = tmp_path / "holes"
    with open(path, "wb") as f:
        f.write(bytes((0, 0, 8, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 1, 0, 0, 0, 1, 0)))
        f.truncate(1 << 40)
    with bounded_memory(1 << 28), pytest.raises(MXNetError, match=r"holes' tells of .*does not fit into memory") as e:
        mx.io.MNISTIter(image=str(path), label=str(path), batch_size=1)
    assert isinstance(e.value, MemoryError)


def test_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("mxcore._io_files._PIECE", 4)
    path = tmp_path / "a"
    for text in (
        b"",
        b"a",
        b"a\n",
        b"\n\nab\r\ncdefgh\n\ni",
        b"abc\n",
        b"abcd\n",
        b"ab\rcd\r",
        b"abc\r\nd",
        b"abc\rd",
        b"abc\r",
    ):
        path.write_bytes(text)
        assert list(lines_of(path, "X")) == [*enumerate(text.splitlines(), 1)]
    monkeypatch.setattr("mxcore._io_files._LONGEST_LINE", 10)
    path.write_bytes(b"ab\n" + b"c" * 30)
    with pytest.raises(MXNetError, match="X: '.*a', line 2: it is longer than 10 bytes; is this a text?"):
        list(lines_of(path, "X"))


@pytest.mark.parametrize(
    "make",
    [
        mx.gluon.data.vision.MNIST,
        mx.gluon.data.vision.CIFAR10,
        mx.util.makedirs,
        CheckpointHandler,
        lambda p: mx.gluon.utils.download("file://" + p, p + "/a/b"),
    ],
)
def test_a_folder_that_cannot_be_made_is_named(make, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    with pytest.raises(MXNetError, match="cannot make the folder '.*file") as caught:
        make(str(path))
    assert isinstance(caught.value, OSError)
