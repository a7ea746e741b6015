"""Data files: fetched, unpacked, or found locally; no network is needed or used."""

import bz2
import gzip
import hashlib
import os
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import mxcore as mx

t = mx.test_utils
#: A port that answers nobody.
NOWHERE = "http://127.0.0.1:9/"
IMAGES = np.random.RandomState(0).randint(0, 256, (20, 28, 28)).astype(np.uint8)
LABELS = (np.arange(20) % 10).astype(np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty current folder, and Gluon's data sets below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MXNET_GLUON_REPO", NOWHERE)
    return tmp_path


def write_mnist(folder, packed):
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        for kind, values in (("images-idx3", IMAGES), ("labels-idx1", LABELS)):
            name = f"{part}-{kind}-ubyte{'.gz' if packed else ''}"
            data = bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()
            (folder / name).write_bytes(gzip.compress(data) if packed else data)


def publish(folder, monkeypatch):
    """Give the digests of files for those of the published ones."""
    for path in folder.glob("*.gz"):
        monkeypatch.setitem(mx.gluon.data.vision.MNIST._files, path.name, hashlib.sha1(path.read_bytes()).hexdigest())


def test_download(folder):
    (folder / "a.txt").write_text("one")
    url = (folder / "a.txt").as_uri()
    assert t.download(url, dirname="there") == os.path.join("there", "a.txt")
    assert t.download(url, fname="b.txt") == "b.txt"
    assert t.download(url, fname="c.txt", dirname="there/deep") == os.path.join("there/deep", "c.txt")
    (folder / "a.txt").write_text("two")
    assert (folder / t.download(url, fname="b.txt")).read_text() == "one"
    assert (folder / t.download(url, fname="b.txt", overwrite=True)).read_text() == "two"


def test_download_errors(folder):
    with pytest.raises(OSError, match="nosuch.txt.*put the file there yourself"):
        t.download((folder / "nosuch.txt").as_uri(), dirname="there")
    with pytest.raises(OSError, match=r"after 2 attempt\(s\)"):
        t.download(NOWHERE + "x.txt", retries=2)
    assert not os.path.exists("x.txt")
    with pytest.raises(ValueError, match="1 or more, got 0"):
        t.download(NOWHERE + "x.txt", retries=0)
    with pytest.raises(ValueError, match="fname="):
        t.download("file:///")


def test_download_model(folder):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    mx.model.save_checkpoint(
        str(folder / "m"), 0, net, {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,))}, {}
    )
    info = {"net": {"symbol": (folder / "m-symbol.json").as_uri(), "params": (folder / "m-0000.params").as_uri()}}
    prefix, epoch = t.download_model("net", "models", info)
    symbol, args, _ = mx.model.load_checkpoint(prefix, epoch)
    assert symbol.list_arguments() == net.list_arguments() and args["fc_weight"].shape == (2, 3)
    assert t.download_model("other", "models", info) == (None, 0)
    with pytest.raises(AssertionError, match="lacks params"):
        t.download_model("net", "models", {"net": {"symbol": "x"}})


def test_zip(folder):
    with zipfile.ZipFile(folder / "a.zip", "w") as z:
        z.writestr("in/x.txt", "hello")
    t.get_zip_data("data", (folder / "a.zip").as_uri(), "a.zip")
    assert (folder / "data" / "in" / "x.txt").read_text() == "hello"
    t.get_zip_data("data", NOWHERE, "a.zip")  # it is there
    with pytest.raises(FileNotFoundError, match="get_zip_data: .*b.zip is not there"):
        t.get_zip_data("data", NOWHERE + "b.zip", "b.zip")
    (folder / "data" / "bad.zip").write_text("no archive")
    with pytest.raises(ValueError, match="bad.zip is damaged"):
        t.get_zip_data("data", NOWHERE, "bad.zip")
    with zipfile.ZipFile(folder / "data" / "evil.zip", "w") as z:
        z.writestr("../out.txt", "x")
    with pytest.raises(ValueError, match="outside of data"):
        t.get_zip_data("data", NOWHERE, "evil.zip")
    assert not (folder / "out.txt").exists()


def zip_file(path, content=b"hello", kind=zipfile.ZIP_DEFLATED):
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", kind) as z:
        z.writestr("in/x.txt", content)
        z.writestr("in/deeper/", b"")
    return path


@pytest.mark.parametrize("at, value", [((6, 8), 1), ((8, 10), 77)])
def test_archives_that_zipfile_cannot_unpack_are_damaged(folder, at, value):
    """With a password; by an unknown method."""
    path = zip_file(folder / "data" / "a.zip")
    data = bytearray(path.read_bytes())
    data[at[0]] = data[data.index(b"PK\1\2") + at[1]] = value
    path.write_bytes(data)
    with pytest.raises(mx.MXNetError, match="a.zip is damaged"):
        t.get_zip_data("data", NOWHERE, "a.zip")


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_cannot_be_unfolded_in_pieces_is_refused(folder, kind):
    """A megabyte of it may hold terabytes, and zipfile makes all of them at once."""
    zip_file(folder / "data" / "a.zip", kind=kind)
    with pytest.raises(mx.MXNetError, match="only what is stored or deflated is unpacked"):
        t.get_zip_data("data", NOWHERE, "a.zip")


def test_what_unfolds_too_far_is_refused(folder, monkeypatch):
    zip_file(folder / "data" / "a.zip", bytes(5000))
    (folder / "data" / "a.bz2").write_bytes(bz2.compress(bytes(5000)))
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", "4000")
    with pytest.raises(mx.MXNetError, match="a.zip tells of 5000 bytes, more than the 4000"):
        t.get_zip_data("data", NOWHERE, "a.zip")
    with pytest.raises(mx.MXNetError, match="a.bz2 tells of 5000 bytes, more than the 4000"):
        t.get_bz2_data("data", "a", NOWHERE, "a.bz2")
    assert sorted(os.listdir("data")) == ["a.bz2", "a.zip"]


def test_files_are_unpacked_whole_or_not_at_all(folder, monkeypatch):
    zip_file(folder / "data" / "a.zip")
    (folder / "data" / "a.bz2").write_bytes(bz2.compress(b"hello"))
    with monkeypatch.context() as m:
        m.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(mx.MXNetError, match="cannot write '.*x.txt': No space left"):
            t.get_zip_data("data", NOWHERE, "a.zip")
        with pytest.raises(mx.MXNetError, match="cannot write '.*a': No space left"):
            t.get_bz2_data("data", "a", NOWHERE, "a.bz2")
    assert os.listdir("data/in") == [] and not os.path.exists("data/a")
    t.get_zip_data("data", NOWHERE, "a.zip")
    assert sorted(os.listdir("data/in")) == ["deeper", "x.txt"]


def test_bz2(folder):
    (folder / "data").mkdir()
    (folder / "data" / "k.bz2").write_bytes(bz2.compress(b"hi"))
    t.get_bz2_data("data", "k.txt", NOWHERE, "k.bz2")
    assert (folder / "data" / "k.txt").read_bytes() == b"hi"
    t.get_bz2_data("data", "k.txt", NOWHERE, "gone.bz2")  # unpacked already
    with pytest.raises(FileNotFoundError, match="l.bz2 is not there"):
        t.get_bz2_data("data", "l.txt", NOWHERE + "l.bz2", "l.bz2")
    (folder / "data" / "bad.bz2").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="bad.bz2 is damaged"):
        t.get_bz2_data("data", "bad.txt", NOWHERE, "bad.bz2")
    assert sorted(os.listdir("data")) == ["bad.bz2", "k.bz2", "k.txt"]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("where", [".", "data", "home/datasets/mnist"])
def test_mnist(folder, where, packed, monkeypatch):
    write_mnist(folder / where, packed)
    publish(folder / where, monkeypatch)
    found = t.get_mnist()
    assert {k: (v.shape, v.dtype.name) for k, v in found.items()} == {
        "train_data": ((20, 1, 28, 28), "float32"),
        "train_label": ((20,), "int8"),
        "test_data": ((20, 1, 28, 28), "float32"),
        "test_label": ((20,), "int8"),
    }
    np.testing.assert_allclose(found["train_data"][:, 0], IMAGES / 255, rtol=1e-6)
    assert found["test_label"].tolist() == LABELS.tolist()
    t.get_mnist_ubyte()
    assert sorted(n for n in os.listdir("data") if not n.endswith(".gz")) == [
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
    ]


def test_mnist_iterators(folder, monkeypatch):
    write_mnist(folder, True)
    publish(folder, monkeypatch)
    train, test = t.get_mnist_iterator(5, (1, 28, 28))
    assert train.provide_data[0].shape == (5, 1, 28, 28) and len(list(test)) == 4
    flat, _ = t.get_mnist_iterator(5, (784,), num_parts=2, part_index=1)
    assert flat.provide_data[0].shape == (5, 784) and len(list(flat)) == 2


def test_mnist_is_nowhere():
    for f in (t.get_mnist, t.get_mnist_ubyte):
        with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte.gz is not there and cannot be downloaded"):
            f()


def test_published_files(folder, monkeypatch):
    from mxcore.test_utils import files

    monkeypatch.setattr(files, "_MNIST_PKL", NOWHERE + "mnist.pkl.gz")
    monkeypatch.setattr(files, "_PUBLISHED", NOWHERE)
    with pytest.raises(FileNotFoundError, match="get_mnist_pkl: .*mnist.pkl.gz is not there"):
        t.get_mnist_pkl()
    with pytest.raises(FileNotFoundError, match="cifar10.zip is not there"):
        t.get_cifar10()
    with zipfile.ZipFile(folder / "data" / "cifar10.zip", "w") as z:
        for name in ("train.rec", "test.rec", "train.lst", "test.lst"):
            z.writestr(f"cifar/{name}", "x")
    t.get_cifar10()
    assert len(os.listdir("data/cifar")) == 4
    (folder / "data" / "cifar10.zip").unlink()
    t.get_cifar10()
    (folder / "data" / "mnist.pkl.gz").write_text("x")
    t.get_mnist_pkl()


def test_im2rec_runs_by_its_path(folder):
    cv2 = pytest.importorskip("cv2")
    (folder / "images").mkdir()
    cv2.imwrite(str(folder / "images" / "a.png"), np.zeros((4, 4, 3), np.uint8))
    script = t.get_im2rec_path()
    done = subprocess.run([sys.executable, script, "--list", "x", "images"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "a.png" in (folder / "x.lst").read_text()
    theirs = folder / "home" / "tools"
    theirs.mkdir(parents=True)
    (theirs / "im2rec.py").write_text("")
    assert t.get_im2rec_path() == str(theirs / "im2rec.py")
    assert t.get_im2rec_path("MXCORE_NO_SUCH_VARIABLE") == script


def test_dummy_iter():
    real = mx.io.NDArrayIter(np.arange(8.0).reshape(4, 2), np.arange(4), 2)
    it = t.DummyIter(real)
    assert (it.batch_size, it.provide_data, it.provide_label) == (2, real.provide_data, real.provide_label)
    it.reset()
    assert next(it) is it.next() is it.the_batch and it.the_batch.data[0].asnumpy().tolist() == [[0, 1], [2, 3]]
    assert (
        it.iter_next()
        and it.getdata() is it.the_batch.data
        and it.getlabel()[0].asnumpy().tolist() == [0, 1]
        and it.getpad() == 0
    )
    assert next(real).data[0].asnumpy().tolist() == [[4, 5], [6, 7]]
