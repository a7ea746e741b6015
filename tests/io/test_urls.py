"""Archives, caches and other chains of URLs: what is read through them, and what they refuse to have written."""

import io
import os
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import fsspec.implementations.local
import numpy as np
import pytest

import mxcore as mx
from mxcore import drafts, urls
from mxcore._io_files import make_folder, names_in, open_read, open_write, write_atomic
from mxcore.base import MXNetError
from mxcore.gluon.data import RecordFileDataset
from mxcore.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack
from mxcore_io_rec.records import RecordFile, Records


def network():
    return mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A checkpoint, records, a table and arrays, as they lie in archives."""
    folder = tmp_path_factory.mktemp("files")
    mx.model.save_checkpoint(str(folder / "net"), 3, network(), {"fc_weight": mx.nd.ones((2, 3))}, {})
    (folder / "rows.csv").write_text("1,2\n3,4\n")
    with MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "w") as record:
        for i in range(64):
            record.write_idx(i, pack(IRHeader(0, float(i), i, 0), bytes([i]) * 5000))
    return folder


ARCHIVES = ("zip", "deflated", "tar", "tar.gz")


def archive(kind, files, path):
    if kind in ("zip", "deflated"):
        how = zipfile.ZIP_STORED if kind == "zip" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", how) as out:
            for file in sorted(files.iterdir()):
                out.write(file, f"in/{file.name}")
    else:
        with tarfile.open(path, "w:gz" if kind.endswith("gz") else "w") as out:
            for file in sorted(files.iterdir()):
                out.add(file, f"in/{file.name}")
    return path


@pytest.fixture(scope="module", params=ARCHIVES)
def chain(request, files, tmp_path_factory):
    """(how names begin, how they end) of files in an archive on disk."""
    name = "a.tar.gz" if request.param == "tar.gz" else "a.archive"
    path = archive(request.param, files, tmp_path_factory.mktemp("archive") / name)
    return f"{'zip' if request.param in ('zip', 'deflated') else 'tar'}://in/", f"::{path}"


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("zip://a::b.zip", True),
        ("simplecache::s3://b/a", True),
        ("simplecache::a.params", True),
        ("nosuch::s3://b/a", True),
        ("a::b", False),
        ("file:///a::b", False),
        ("local:///a", False),
        ("C:\\a", False),
        ("memory://a", True),
    ],
)
def test_what_a_url_is(name, url):
    assert urls.is_url(name) is url


def test_local_urls_are_paths(tmp_path):
    for scheme in ("file", "local", "LOCAL"):
        mx.nd.save(f"{scheme}://{tmp_path}/{scheme}.params", {"a": mx.nd.ones(2)})
        assert list(mx.nd.load(f"{tmp_path}/{scheme}.params")) == ["a"]


def test_names_made_of_others():
    chained = "zip://in/net.old::s3://b/nets.zip"
    assert urls.appended(chained, "-symbol.json") == "zip://in/net.old-symbol.json::s3://b/nets.zip"
    assert urls.appended("simplecache::s3://b/net", "-0001.params") == "simplecache::s3://b/net-0001.params"
    assert urls.appended("a::b", ".idx") == "a::b.idx" and urls.appended("", "-1") == "-1"
    assert urls.with_ending(chained, ".idx") == "zip://in/net.idx::s3://b/nets.zip"
    assert urls.with_ending("simplecache::zip://a.rec::b.zip", ".idx") == "simplecache::zip://a.idx::b.zip"
    assert urls.with_ending("a.b/c", ".idx") == "a.b/c.idx" and urls.ending("zip://a.rec::b.zip") == ".rec"


def test_arrays_and_graphs_in_archives(chain):
    begin, end = chain
    assert mx.nd.load(f"{begin}net-0003.params{end}")["arg:fc_weight"].shape == (2, 3)
    assert mx.sym.load(f"{begin}net-symbol.json{end}").list_arguments() == ["data", "fc_weight"]
    block = mx.gluon.SymbolBlock.imports(f"{begin}net-symbol.json{end}", ["data"], f"{begin}net-0003.params{end}")
    assert block(mx.nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]]
    rows = mx.io.CSVIter(data_csv=f"{begin}rows.csv{end}", data_shape=(2,), batch_size=2)
    assert rows.next().data[0].asnumpy().tolist() == [[1, 2], [3, 4]]


def test_checkpoints_in_archives(chain):
    begin, end = chain
    graph, arg, _ = mx.model.load_checkpoint(f"{begin}net{end}", 3)
    assert graph.list_arguments() == ["data", "fc_weight"] and list(arg) == ["fc_weight"]
    module = mx.mod.Module.load(f"{begin}net{end}", 3, label_names=())
    module.bind([("data", (1, 3))], for_training=False)
    assert module.get_params()[0]["fc_weight"].shape == (2, 3)


def test_records_in_archives(chain):
    begin, end = chain
    rec, idx = f"{begin}a.rec{end}", f"{begin}a.idx{end}"
    payloads = [bytes([i]) * 5000 for i in range(64)]
    assert [mx.recordio.unpack(r)[1] for r in MXRecordIO(rec, "r")] == payloads
    indexed, beside, numbered = MXIndexedRecordIO(idx, rec, "r"), RecordFileDataset(rec), RecordFile(rec)
    assert len(beside) == 64 and numbered._keys is not None  # the index beside it was found
    with ThreadPoolExecutor(4) as pool:  # who share one position in the archive
        order = np.random.RandomState(0).permutation(64).tolist() * 2
        for read in (indexed.read_idx, beside.__getitem__, numbered.read):
            assert [mx.recordio.unpack(r)[1] for r in pool.map(read, order)] == [payloads[i] for i in order]


def test_folders_of_records_in_archives(chain):
    begin, end = chain
    assert len(Records(f"{begin[:-1]}{end}")) == 64


def test_an_archive_in_a_store(files, tmp_path):
    packed = archive("zip", files, tmp_path / "a.zip")
    fsspec.filesystem("memory").pipe("/urls/a.zip", packed.read_bytes())
    for url in ("zip://in/net::memory://urls/a.zip", "zip://in/net::simplecache::memory://urls/a.zip"):
        assert list(mx.model.load_checkpoint(url, 3)[1]) == ["fc_weight"]


@pytest.fixture
def bombs(tmp_path, monkeypatch):
    """Archives of a few kilobytes with 20 MB in them, where 1 MB may be unfolded."""
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", str(1 << 20))
    big, inner = tmp_path / "a.params", tmp_path / "inner.zip"
    mx.nd.save(str(big), [mx.nd.zeros((5_000_000,))])
    for path, method, what in (
        ("deflated", zipfile.ZIP_DEFLATED, big),
        ("stored", zipfile.ZIP_STORED, big),
        ("bz2", zipfile.ZIP_BZIP2, big),
    ):
        with zipfile.ZipFile(tmp_path / f"{path}.zip", "w", method) as z:
            z.write(what, "a.params")
    with zipfile.ZipFile(inner, "w") as z:
        z.write(big, "a.params")
    with zipfile.ZipFile(tmp_path / "nested.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write(inner, "inner.zip")
    for mode, ending in (("w", "tar"), ("w:gz", "tar.gz")):
        with tarfile.open(tmp_path / f"a.{ending}", mode) as t:
            t.add(big, "a.params")
    return tmp_path


@pytest.mark.parametrize(
    "url, words",
    [
        ("zip://a.params::{}/deflated.zip", "tells of 2000.* bytes, more than the 1048576"),
        ("simplecache::zip://a.params::{}/deflated.zip", "tells of 2000.* bytes, more than the 1048576"),
        ("zip://a.params::zip://inner.zip::{}/nested.zip", "nested.zip tells of 2000"),
        ("zip://a.params::{}/bz2.zip", "packed by method 12"),
        ("tar://a.params::{}/a.tar.gz", "tells of 2000"),
        ("zip://a.params::{}/stored.zip", None),
        ("tar://a.params::{}/a.tar", None),
    ],
)
def test_archives_are_unfolded_up_to_the_limit(bombs, url, words):
    if words is None:
        assert mx.nd.load(url.format(bombs))[0].shape == (5_000_000,)
        return
    with pytest.raises(mx.MXNetError, match=words):
        mx.nd.load(url.format(bombs))


def every_writer(begin, end):
    """Whatever writes files of its own."""
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    hybrid = mx.gluon.nn.HybridSequential()
    hybrid.add(mx.gluon.nn.Dense(2, in_units=3))
    hybrid.initialize()
    hybrid.hybridize()
    hybrid(mx.nd.ones((1, 3)))
    module = mx.mod.Module(network(), label_names=())
    module.bind([("data", (1, 3))])
    module.init_params()
    yield lambda: mx.nd.save(f"{begin}new.params{end}", {"w": mx.nd.ones(2)})
    yield lambda: mx.nd.save(f"{begin}net-0003.params{end}", {"w": mx.nd.ones(2)})
    yield lambda: network().save(f"{begin}net-symbol.json{end}")
    yield lambda: net.save_parameters(f"{begin}new.params{end}")
    yield lambda: hybrid.export(f"{begin}new{end}")
    yield lambda: module.save_checkpoint(f"{begin}new{end}", 1)
    yield lambda: mx.model.save_checkpoint(f"{begin}new{end}", 1, network(), {}, {})
    yield lambda: MXRecordIO(f"{begin}new.rec{end}", "w")
    yield lambda: MXIndexedRecordIO(f"{begin}new.idx{end}", f"{begin}new.rec{end}", "w")
    yield lambda: open_write(f"{begin}new{end}")
    yield lambda: make_folder(f"{begin}new{end}")


def test_archives_are_not_written(chain, tmp_path, monkeypatch):
    """Nor are they made: fsspec would leave half an archive where a writer is killed."""
    begin, end = chain
    monkeypatch.chdir(tmp_path)
    before = Path(end[2:]).read_bytes()
    for whole in (end, "::missing.zip"):
        for write in every_writer(begin, whole):
            with pytest.raises(
                MXNetError, match=r"cannot (write|make the folder) '.*archives are read only here"
            ) as caught:
                write()
            assert isinstance(caught.value, OSError)
    assert Path(end[2:]).read_bytes() == before and os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", ["data://,abc", "http://127.0.0.1:1/a", "simplecache::https://127.0.0.1:1/a"])
def test_stores_that_are_read_only(url):
    with pytest.raises(MXNetError, match=r"cannot write .*the store 'data|http|https' is read only"):
        write_atomic(url, b"")


def test_a_url_without_its_archive():
    for url in ("zip://a.params", "tar://a.params", "zip::"):
        with pytest.raises(MXNetError, match="names no archive; write 'zip|tar://FILE::ARCHIVE'"):
            open_read(url)


def test_what_is_not_in_an_archive(chain):
    begin, end = chain
    for read in (mx.nd.load, mx.sym.load, lambda url: MXRecordIO(url, "r")):
        with pytest.raises(FileNotFoundError, match="cannot read"):
            read(f"{begin}missing{end}")


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"no archive")
    for scheme in ("zip", "tar"):
        for read in (mx.nd.load, lambda url: MXRecordIO(url, "r")):
            with pytest.raises(MXNetError, match="cannot read .*a.zip"):
                read(f"{scheme}://a::{tmp_path}/a.zip")


@pytest.mark.parametrize("cache", ["simplecache", "filecache"])
def test_caches(cache):
    """What is written goes to the store, and is read from there or from a copy of it."""
    for number in range(2):
        url = f"{cache}::memory://urls/{cache}{number}"
        mx.model.save_checkpoint(url, 1, network(), {"fc_weight": mx.nd.ones((2, 3))}, {})
        assert list(mx.model.load_checkpoint(url, 1)[1]) == ["fc_weight"]
        assert list(mx.nd.load(f"memory://urls/{cache}{number}-0001.params")) == ["arg:fc_weight"]
        with MXIndexedRecordIO(f"{url}.idx", f"{url}.rec", "w") as record:
            record.write_idx(0, b"one")
        assert RecordFileDataset(f"{url}.rec")[0] == b"one"
    assert not [name for name in fsspec.filesystem("memory").find("/urls") if ".mxcore-" in name]


@pytest.mark.parametrize("cache", ["simplecache", "filecache", "simplecache::filecache"])
def test_what_is_written_through_a_cache_is_read_through_it(cache):
    url = f"{cache}::memory://urls/again.params"
    for number in (1, 2, 3):
        mx.nd.save(url, {"a": mx.nd.full(2, number)})
        for name in (url, "memory://urls/again.params"):
            assert mx.nd.load(name)["a"].asnumpy().tolist() == [number] * 2


@pytest.mark.parametrize("cache", ["", "simplecache::", "filecache::"])
def test_a_pair_that_is_replaced_while_it_is_read_is_read_again(cache):
    """As far as a store tells versions apart; from a cache, too, which has the old ones."""
    owner, other = (f"{cache}memory://urls/{name}" for name in ("owner", "other"))

    def write(content):
        for name in (owner, other):
            write_atomic(name.rpartition("::")[2], content)

    write(b"old")
    turns = []

    def read(place):
        with open_read(owner) as file:
            first = file.read()
        if not turns:
            write(b"newer")
        turns.append(1)
        with open_read(place) as file:
            return first, file.read()

    assert drafts.read_pair(other, owner, read) == (b"newer", b"newer") and len(turns) == 2


@pytest.mark.parametrize("cache", ["simplecache::", "filecache::"])
def test_a_pair_of_which_a_cache_has_one_is_read_anew(cache):
    """It is of another time."""
    for number in (1, 2):
        graph = mx.sym.Variable(f"data{number}")
        mx.model.save_checkpoint("memory://urls/half", 1, graph, {"w": mx.nd.full(2, number)}, {})
        mx.nd.load(f"{cache}memory://urls/half-0001.params")
    symbol, params, _ = mx.model.load_checkpoint(f"{cache}memory://urls/half", 1)
    assert symbol.name == "data2" and params["w"].asnumpy().tolist() == [2, 2]


def test_an_archive_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match="cannot open 'zip://a::nowhere.zip'") as caught:
        urls.store("zip://a::nowhere.zip")
    assert isinstance(caught.value, MXNetError)


def test_a_failed_write_through_a_cache_leaves_the_old_file():
    write_atomic("memory://urls/kept", b"old")

    def pieces():
        yield b"new"
        raise KeyError

    with pytest.raises(KeyError):
        write_atomic("simplecache::memory://urls/kept", pieces())
    assert open_read("memory://urls/kept").read() == b"old"


def test_a_store_that_cannot_rename(monkeypatch):
    """It cannot replace a file whole, so it is not written at all; the old file stays."""
    fs = fsspec.filesystem("memory")
    write_atomic("memory://urls/unmoved", b"old")

    def mv(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr(type(fs), "mv", mv)
    with pytest.raises(MXNetError, match="cannot write 'memory://urls/unmoved': the store cannot rename"):
        write_atomic("memory://urls/unmoved", b"new")
    assert open_read("memory://urls/unmoved").read() == b"old"
    assert [name for name in fs.find("/urls") if ".mxcore-" in name] == []


def test_nothing_local_is_made_of_a_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_folder("memory://urls/folder/below")
    assert fsspec.filesystem("memory").isdir("/urls/folder/below")
    write_atomic("memory://urls/folder/a", b"")
    assert names_in("memory://urls/folder") == ["a", "below"]
    for local in (
        lambda: mx.gluon.utils.download("file:///etc/hostname", "memory://urls/host"),
        lambda: mx.gluon.data.vision.ImageFolderDataset("memory://urls"),
        lambda: mx.gluon.data.vision.MNIST("memory://urls"),
        lambda: mx.gluon.model_zoo.model_store.get_model_file("alexnet", "memory://urls"),
        lambda: mx.gluon.contrib.estimator.CheckpointHandler("memory://urls"),
    ):
        with pytest.raises(MXNetError, match="memory://urls.* is a URL; .* on this machine is needed here"):
            local()
    assert os.listdir(tmp_path) == []


def test_pieces_of_an_archive_that_is_read_slowly(files, tmp_path):
    """The file keeps the archive open, whoever else holds it."""
    import gc

    file = open_read(f"zip://in/a.rec::{archive('zip', files, tmp_path / 'a.zip')}")
    gc.collect()
    assert isinstance(file, io.IOBase) and len(file.read()) == os.path.getsize(files / "a.rec")


class Cutting(fsspec.implementations.local.LocalFileSystem):
    """A store whose files end after some bytes, as where a server or a proxy cuts them off."""

    protocol, after = "cutting", 10

    def _open(self, path, mode="rb", **more):
        file = super()._open(path, mode, **more)
        if mode == "rb":
            read = file.f.read
            file.read = file.read1 = lambda n=-1: read(min(n if n >= 0 else 1 << 60, max(self.after - file.tell(), 0)))
        return file


@pytest.mark.parametrize("name", ["rows.csv", "rows.svm", "graph.json", "words.txt", "a.params"])
def test_files_that_a_store_cuts_off_are_no_whole_ones(tmp_path, name):
    fsspec.register_implementation("cutting", Cutting, clobber=True)
    path = tmp_path / name
    line = {"rows.csv": "{},2\n", "rows.svm": "{} 0:1\n"}.get(name, "a{} 1 2\n")
    path.write_text("".join(map(line.format, range(5))))
    if name == "graph.json":
        mx.sym.Variable("x").save(str(path))
    elif name == "a.params":
        mx.nd.save(str(path), [mx.nd.ones((4,))])
    url = f"cutting://{path}"
    read = {
        "rows.csv": lambda: mx.io.CSVIter(data_csv=url, data_shape=(2,), batch_size=1),
        "rows.svm": lambda: mx.io.LibSVMIter(data_libsvm=url, data_shape=(2,), batch_size=1),
        "graph.json": lambda: mx.sym.load(url),
        "words.txt": lambda: mx.contrib.text.embedding.CustomEmbedding(url),
        "a.params": lambda: mx.nd.load(url),
    }[name]
    for Cutting.after in (0, 12):
        said = f"it ended after {Cutting.after} of {path.stat().st_size} bytes"
        with pytest.raises(MXNetError, match=said):
            read()
    Cutting.after = 1 << 40
    assert read() is not None


def test_readers_of_one_file_in_memory_have_positions_of_their_own():
    write_atomic("memory://urls/one.bin", bytes(range(256)) * 4096)
    with open_read("memory://urls/one.bin") as a, open_read("memory://urls/one.bin") as b:
        assert [a.read(2), b.read(2), a.read(2), b.read(1)] == [b"\0\1", b"\0\1", b"\2\3", b"\2"]
        write_atomic("memory://urls/one.bin", b"new")
        assert a.read(1) == b"\4"
    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(lambda _: mx._io_files.read_whole("memory://urls/one.bin"), range(64))} == {b"new"}
