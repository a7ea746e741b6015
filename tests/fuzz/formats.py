"""The formats that are read: for each, sound files, and how they are read.

A format is one entry of `FORMATS`: a function that gives sound samples, each a dictionary of file names to bytes, and
one that reads such files from a folder as a user would. It returns, or raises an MXNetError; anything else is a defect.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import itertools
import json
import struct
import tarfile
import types
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["FORMATS", "Format"]

TESTS = Path(__file__).resolve().parents[1]
Sample = dict[str, bytes]


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    samples : callable
        () -> list of sound samples.
    read : callable
        folder -> None; reads a sample, and raises what its reader raises.
    """

    samples: Callable[[], list[Sample]]
    read: Callable[[Path], None]


def _files(*paths: Path, called: str) -> list[Sample]:
    return [{called: p.read_bytes()} for p in paths]


# -- arrays ------------------------------------------------------------------------------------------------------------
def _params() -> list[Sample]:
    return _files(*sorted((TESTS / "ndarray" / "golden_params").glob("*.params")), called="a.params")


def _read_params(folder: Path) -> None:
    import mxcore as mx

    with mx.util.np_shape():  # one of the samples was written there
        found = mx.nd.load(str(folder / "a.params"))
        mx.nd.load_frombuffer((folder / "a.params").read_bytes())
    for a in found.values() if isinstance(found, dict) else found:
        if a is not None:
            (a if a.stype == "default" else a.data).asnumpy()  # a sparse one is not made dense: its shape may be any
            if a.stype != "default":
                a.check_format()


def _npz() -> list[Sample]:
    found = []
    for write in (np.savez, np.savez_compressed):
        out = io.BytesIO()
        write(out, a=np.arange(6, dtype="f4").reshape(1, 6), b=np.ones((3, 6), "u1", order="F"))
        found.append({"a.npz": out.getvalue()})
    return found


def _read_npz(folder: Path) -> None:
    import mxcore as mx

    for a in mx.npx.load(str(folder / "a.npz")).values():
        a.asnumpy()


def _npy() -> list[Sample]:
    found = []
    for a in (np.arange(6, dtype="f4").reshape(1, 6), np.ones((2, 6)), np.ones((3, 6), "u1", order="F")):
        out = io.BytesIO()
        np.save(out, a)
        found.append({"a.npy": out.getvalue()})
    return found


def _read_npy(folder: Path) -> None:
    from mxcore.base import MXNetError
    from mxcore.cli.predict.inputs import Prepare

    prepare = Prepare(types.SimpleNamespace(channels=lambda: None), (6,), (0.0,), (1.0,), 1)
    try:
        prepare.array(str(folder / "a.npy"))
    except MXNetError as e:
        assert "a.npy" in str(e), f"the error does not name the file: {e}"
        raise


# -- graphs ------------------------------------------------------------------------------------------------------------
@functools.cache
def _net():
    import mxcore as mx

    x = mx.sym.Variable("data", shape=(2, 3), lr_mult=2)
    x = mx.sym.FullyConnected(x, num_hidden=4, name="fc")
    x = mx.sym.BatchNorm(x, name="bn")
    x = mx.sym.reshape(mx.sym.SliceChannel(x, num_outputs=2, name="cut")[1], shape=(-1, 2))
    return mx.sym.SoftmaxOutput(mx.sym.sum(x * 2.5, axis=(1,), keepdims=True), name="softmax")


def _loop():
    import mxcore as mx

    out, states = mx.sym.contrib.foreach(lambda x, s: (x + s, x * s), mx.sym.Variable("x"), mx.sym.Variable("s"))
    return mx.sym.Group([out, states])


#: As MXNet 0.8 wrote it: pairs, ``param`` and ``attr``, no version, no auxiliary states.
_OLD = {
    "nodes": [
        {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1, "attr": {"ctx_group": "a"}},
        {"op": "null", "param": {}, "name": "fc_weight", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "fc_bias", "inputs": [], "backward_source_id": -1},
        {
            "op": "FullyConnected",
            "param": {"no_bias": "False", "num_hidden": "3"},
            "name": "fc",
            "inputs": [[0, 0], [1, 0], [2, 0]],
            "backward_source_id": -1,
        },
        {"op": "BatchNorm", "param": {"eps": "0.001"}, "name": "bn", "inputs": [[3, 0]], "backward_source_id": -1},
        {
            "op": "Reshape",
            "param": {"target_shape": "(0, 3)"},
            "name": "r",
            "inputs": [[4, 0]],
            "backward_source_id": -1,
        },
    ],
    "arg_nodes": [0, 1, 2],
    "heads": [[5, 0]],
}


def _symbols() -> list[Sample]:
    golden = (TESTS / "gluon" / "golden" / "exported-symbol.json").read_bytes()
    return [
        {"a.json": data}
        for data in (_net().tojson().encode(), _loop().tojson().encode(), json.dumps(_OLD).encode(), golden)
    ]


def _use_symbol(symbol) -> None:
    (
        symbol.list_arguments(),
        symbol.list_outputs(),
        symbol.list_auxiliary_states(),
        symbol.attr_dict(),
        symbol.debug_str(),
    )
    symbol.tojson()
    symbol.infer_shape_partial()
    symbol.infer_type_partial()


def _read_symbol(folder: Path) -> None:
    import mxcore as mx

    _use_symbol(mx.sym.load(str(folder / "a.json")))


@functools.cache
def _checkpoint() -> list[Sample]:
    import mxcore as mx

    mod = mx.mod.Module(_net(), label_names=("softmax_label",))
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
    mod.init_params()
    mod.init_optimizer(optimizer="adam")
    mod.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones((2,))]))
    mod.update()
    mod.save_checkpoint("memory://fuzz/a", 1, save_optimizer_states=True)
    from mxcore._io_files import open_read

    return [
        {
            name: open_read(f"memory://fuzz/{name}").read()
            for name in ("a-symbol.json", "a-0001.params", "a-0001.states")
        }
    ]


def _read_checkpoint(folder: Path) -> None:
    import mxcore as mx

    mod = mx.mod.Module.load(str(folder / "a"), 1, load_optimizer_states=True, label_names=("softmax_label",))
    mod.bind([("data", (2, 3))], [("softmax_label", (2,))])
    mod.init_optimizer(optimizer="adam")
    mod.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones((2,))]))
    mod.update()
    mod.get_outputs()[0].asnumpy()


def _gluon() -> list[Sample]:
    folder = TESTS / "gluon" / "golden"
    return [
        {
            "a-symbol.json": (folder / "exported-symbol.json").read_bytes(),
            "a-0000.params": (folder / "exported-0002.params").read_bytes(),
        }
    ]


def _read_gluon(folder: Path) -> None:
    import mxcore as mx

    mx.gluon.SymbolBlock.imports(str(folder / "a-symbol.json"), ["data"], str(folder / "a-0000.params"))


def _block():
    import mxcore as mx

    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.Dense(1, in_units=3))
    net.initialize()
    return net


def _blocks() -> list[Sample]:
    from mxcore._io_files import open_read

    net = _block()
    net.save("memory://fuzz/b")
    return [{name: open_read(f"memory://fuzz/{name}").read() for name in ("b-model.json", "b-model.params")}]


def _read_block(folder: Path) -> None:
    net = _block()
    net.load(str(folder / "b"))
    net.load_parameters(str(folder / "b-model.params"))


def _configs() -> list[Sample]:
    texts = [
        '["xavier", {"rnd_type": "gaussian", "magnitude": 2}]',
        '{"metric": "accuracy", "axis": 1}',
        '["mixed", {"patterns": [".*"], "initializers": ["zeros"]}]',
    ]
    return [{"a.json": t.encode()} for t in texts]


def _read_config(folder: Path) -> None:
    import mxcore as mx
    from mxcore.base import MXNetError, error

    try:
        text = (folder / "a.json").read_bytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as e:
        raise error(ValueError, str(e)) from None
    for create in (mx.init.create, mx.metric.create):
        try:
            create(text)
        except MXNetError:
            pass


def _command(*lines: list[str]) -> None:
    """Call `mxcore` with each of these lines; one that fails is an error."""
    from mxcore.base import error
    from mxcore.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        ended = [main(line) for line in lines]
    if any(ended):
        raise error(ValueError, said.getvalue())


def _commands() -> list[Sample]:
    import mxcore as mx
    from mxcore._io_files import open_read

    net = _net()
    arg_shapes, _, aux_shapes = net.infer_shape(data=(2, 3))
    mx.model.save_checkpoint(
        "memory://fuzz/c",
        0,
        net,
        {n: mx.nd.ones(s) for n, s in zip(net.list_arguments(), arg_shapes) if n not in ("data", "softmax_label")},
        {n: mx.nd.ones(s) for n, s in zip(net.list_auxiliary_states(), aux_shapes)},
    )
    out = io.BytesIO()
    np.save(out, np.ones((2, 3), "f4"))
    names = {"c-symbol.json": "a-symbol.json", "c-0000.params": "a-0000.params"}
    return [
        {new: open_read(f"memory://fuzz/{old}").read() for old, new in names.items()}
        | {"x.npy": out.getvalue(), "labels.txt": b"cat\ndog\n"}
    ]


def _read_command(folder: Path) -> None:
    graph, params = str(folder / "a-symbol.json"), str(folder / "a-0000.params")
    _command(
        ["summary", graph, "--params", params],
        ["summary", graph, "--shape", "data=2,3"],
        ["plot", graph, "--shape", "data=2,3", "-o", str(folder / "plot.svg")],
        [
            "predict",
            graph,
            params,
            "--input",
            str(folder / "x.npy"),
            "--shape",
            "data=3",
            "--labels",
            str(folder / "labels.txt"),
        ],
    )


# -- optimizers --------------------------------------------------------------------------------------------------------
def _states() -> list[Sample]:
    with np.load(TESTS / "golden" / "data" / "states.npz") as file:
        return [{"a.states": file[key].tobytes()} for key in file.files if not key.endswith("leaves")]


def _read_states(folder: Path) -> None:
    import mxcore as mx

    update = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    update.set_states((folder / "a.states").read_bytes())
    update.get_states(True)
    if isinstance(update.optimizer, mx.optimizer.Optimizer) and isinstance(update.optimizer.learning_rate, float):
        update.optimizer.set_lr_mult({})


# -- records and images ------------------------------------------------------------------------------------------------
def _pair(stem: str) -> list[Sample]:
    folder = TESTS / "io_rec" / "golden"
    return [{"a.rec": (folder / f"{stem}.rec").read_bytes(), "a.idx": (folder / f"{stem}.idx").read_bytes()}]


def _read_records(folder: Path) -> None:
    import mxcore as mx
    from mxcore.base import MXNetError

    rec, idx = str(folder / "a.rec"), str(folder / "a.idx")
    for policy in ("skip", "raise"):
        reader = mx.recordio.MXRecordIO(rec, "r", on_error=policy)
        for _ in range(1000):
            try:
                record = reader.read()
            except MXNetError:
                continue
            if record is None:
                break
            try:
                mx.recordio.unpack(record)
            except MXNetError:
                pass
    keyed = mx.recordio.MXIndexedRecordIO(idx, rec, "r")
    for key in keyed.keys[:100]:
        try:
            keyed.read_idx(key)
        except MXNetError:
            pass


def _batches(kind: str, folder: Path, **parameters) -> None:
    import mxcore as mx

    for lenient in ({}, {"path_imgidx": str(folder / "a.idx"), "shuffle": True}):
        it = getattr(mx.io, kind)(
            path_imgrec=str(folder / "a.rec"),
            data_shape=(3, 16, 16),
            batch_size=2,
            preprocess_threads=1,
            verbose=False,
            **parameters,
            **lenient,
        )
        for batch in itertools.islice(it, 50):  # an index may name one image ten thousand times
            batch.data[0].asnumpy(), batch.label[0].asnumpy()


def _images() -> list[Sample]:
    import cv2

    y, x = np.mgrid[:20, :30]
    picture = np.stack([x * 8, y * 12, (x + y) * 5], -1).astype(np.uint8)
    kinds = (
        (".png", picture),
        (".jpg", picture),
        (".bmp", picture),
        (".png", picture[..., 0]),
        (".webp", picture),
        (".tiff", picture),
    )
    found = [cv2.imencode(ending, p)[1].tobytes() for ending, p in kinds]
    tiff = b"II*\0\x08\0\0\0" + struct.pack("<HHHIHHI", 1, 0x112, 3, 1, 6, 0, 0)  # turned by 90 degrees
    exif = b"\xff\xe1" + struct.pack(">H", 8 + len(tiff)) + b"Exif\0\0" + tiff
    return [{"a.img": data} for data in (*found, found[1][:2] + exif + found[1][2:])]


def _read_image(folder: Path) -> None:
    import mxcore as mx
    from mxcore.gluon.data.vision import images

    data = (folder / "a.img").read_bytes()
    for flag in (1, 0):
        images.decode(data, flag)
    mx.nd.imdecode(data) if hasattr(mx.nd, "imdecode") else None


def _lists() -> list[Sample]:
    folder = TESTS / "io_rec" / "golden"
    return [
        {
            "a.rec": (folder / "images.rec").read_bytes(),
            "a.idx": (folder / "images.idx").read_bytes(),
            "a.lst": b"0\t1\ta.jpg\n1\t2\tb.jpg\n2\t3.5\tc.jpg\n",
        }
    ]


def _read_list(folder: Path) -> None:
    import mxcore as mx

    it = mx.io.ImageRecordIter(
        path_imgrec=str(folder / "a.rec"),
        path_imglist=str(folder / "a.lst"),
        data_shape=(3, 16, 16),
        batch_size=2,
        preprocess_threads=1,
        verbose=False,
    )
    for batch in itertools.islice(it, 50):
        batch.data[0].asnumpy(), batch.label[0].asnumpy()
    ds = mx.gluon.data.vision.ImageRecordDataset(str(folder / "a.rec"))
    for i in range(min(20, len(ds))):
        ds[i]


def _im2rec() -> list[Sample]:
    image = _images()
    return [{"a.lst": b"0\t1\ta.jpg\n1\t2\tb.png\n", "a.jpg": image[1]["a.img"], "b.png": image[0]["a.img"]}]


def _run_im2rec(folder: Path) -> None:
    _command(["im2rec", str(folder / "a"), str(folder), "--resize", "8"])


def _idx_files(wrap: Callable[[bytes], bytes]) -> list[Sample]:
    images = struct.pack(">IIII", 2051, 5, 4, 3) + bytes(range(60))
    return [{"images": wrap(images), "labels": wrap(struct.pack(">II", 2049, 5) + bytes(range(5)))}]


def _read_mnist(folder: Path) -> None:
    import mxcore as mx

    for batch in mx.io.MNISTIter(image=str(folder / "images"), label=str(folder / "labels"), batch_size=2):
        batch.data[0].asnumpy()


# -- published archives ------------------------------------------------------------------------------------------------
def _archives() -> list[Sample]:
    files = {"a.bin": bytes(range(200)), "b.bin": b"hello" * 50}
    tar, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as t, zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            member = tarfile.TarInfo(f"folder/{name}")
            member.size = len(data)
            t.addfile(member, io.BytesIO(data))
            z.writestr(zipfile.ZipInfo(f"folder/{name}"), data)
    return [{"archive": data} for data in (tar.getvalue(), gzip.compress(tar.getvalue(), mtime=0), zipped.getvalue())]


def _read_archive(folder: Path) -> None:
    from mxcore.gluon._repository import unpack

    names = ["a.bin", "b.bin"]
    try:
        unpack(str(folder / "archive"), names, str(folder))
    finally:
        there = [(folder / name).exists() for name in names]
        assert all(there) or not any(there), "one of two files that belong together was taken out"
        for name in names:
            (folder / name).unlink(missing_ok=True)


def _tar(form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for name, kind in (("a", tarfile.REGTYPE), ("b" * 120, tarfile.REGTYPE), ("c", tarfile.SYMTYPE)):
            member = tarfile.TarInfo(f"folder/{name}")
            member.type, member.linkname, member.mtime = kind, "a", 1.5
            member.size = 300 if kind == tarfile.REGTYPE else 0
            t.addfile(member, io.BytesIO(bytes(300)))
    return out.getvalue()


def _chained() -> list[Sample]:
    pax, gnu, zipped = _tar(tarfile.PAX_FORMAT), _tar(tarfile.GNU_FORMAT), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(zipfile.ZipInfo("folder/a"), bytes(300))
    packed = gzip.compress(pax, mtime=0)
    return [{"pax.tar": pax, "gnu.tar": gnu, "pax.tar.gz": packed, "a.zip": zipped.getvalue()}]


def _read_chained(folder: Path) -> None:
    from mxcore._io_files import reading

    for archive in ("pax.tar", "gnu.tar", "pax.tar.gz", "a.zip"):
        kind, names = ("zip", ["a"]) if archive == "a.zip" else ("tar", ["a", "b" * 120, "c"])
        for name in names:
            with reading(f"{kind}://folder/{name}::{folder / archive}") as file:
                file.read()


# -- text --------------------------------------------------------------------------------------------------------------
def _csv() -> list[Sample]:
    return [
        {"a.csv": b"1,2\n3,4\n5,6\n", "l.csv": b"1\n2\n0\n"},
        {"a.csv": b"1.5,-2e3\r\n\r\nnan,inf\r\n1,2", "l.csv": b"1\n2\n3\n"},
    ]


def _read_csv(folder: Path) -> None:
    import mxcore as mx
    from mxcore.base import MXNetError

    said = None
    for dtype in ("int32", "int64", "float32"):
        try:
            for batch in mx.io.CSVIter(
                data_csv=str(folder / "a.csv"),
                label_csv=str(folder / "l.csv"),
                data_shape=(2,),
                batch_size=2,
                dtype=dtype,
            ):
                batch.data[0].asnumpy()
        except MXNetError as e:
            assert ".csv" in str(e), f"the error does not name the file: {e}"
            said = e if dtype == "float32" else None
    if said is not None:
        raise said


def _libsvm() -> list[Sample]:
    return [{"a.svm": b"1 0:0.5 2:1.25\n-2\n3.5 1:2 3:4\n"}, {"a.svm": b"# none\n1 qid:3 1:-1e-1 # more\n0 3\n"}]


def _read_libsvm(folder: Path) -> None:
    import mxcore as mx

    mx.io.LibSVMIter(data_libsvm=str(folder / "a.svm"), data_shape=(4,), batch_size=2).next().data[0].check_format()


def _embeddings() -> list[Sample]:
    return [{"a.txt": b"hello 1 2\nworld 3 4\n<unk> 0 0\n"}, {"a.txt": "2 3\nhällo 1 2.5 -3e-2\nw 1 2 3\n".encode()}]


def _read_embedding(folder: Path) -> None:
    import mxcore as mx
    from mxcore.base import MXNetError

    try:
        mx.contrib.text.embedding.CustomEmbedding(str(folder / "a.txt")).get_vecs_by_tokens(["hello", "x"]).asnumpy()
    except MXNetError as e:
        assert "a.txt" in str(e), f"the error does not name the file: {e}"
        raise


def _image_lists() -> list[Sample]:
    picture = (TESTS / "golden" / "data" / "images" / "0.png").read_bytes()
    return [
        {"ImageIter.lst": b"0\t1.0\ta.png\n1\t0\ta.png\n", "a.png": picture},
        {"ImageDetIter.lst": b"7\t2\t5\t0\t0.1\t0.2\t0.5\t0.6\ta.png\n", "a.png": picture},
    ]


def _read_image_list(folder: Path) -> None:
    import mxcore as mx

    for kind in ("ImageIter", "ImageDetIter"):
        path = folder / f"{kind}.lst"
        if path.exists():
            try:
                getattr(mx.image, kind)(2, (3, 20, 20), path_imglist=str(path), path_root=str(folder)).next()
            except StopIteration:  # every image was left out
                pass


FORMATS: dict[str, Format] = {
    "params": Format(_params, _read_params),
    "npy": Format(_npy, _read_npy),
    "npz": Format(_npz, _read_npz),
    "symbol": Format(_symbols, _read_symbol),
    "checkpoint": Format(_checkpoint, _read_checkpoint),
    "gluon": Format(_gluon, _read_gluon),
    "block": Format(_blocks, _read_block),
    "config": Format(_configs, _read_config),
    "states": Format(_states, _read_states),
    "records": Format(lambda: _pair("framing"), _read_records),
    "image records": Format(lambda: _pair("images"), lambda folder: _batches("ImageRecordIter", folder)),
    "object records": Format(lambda: _pair("objects"), lambda folder: _batches("ImageDetRecordIter", folder)),
    "images": Format(_images, _read_image),
    "lists": Format(_lists, _read_list),
    "im2rec": Format(_im2rec, _run_im2rec),
    "commands": Format(_commands, _read_command),
    "mnist": Format(lambda: _idx_files(bytes), _read_mnist),
    "mnist gz": Format(lambda: _idx_files(lambda b: gzip.compress(b, mtime=0)), _read_mnist),
    "archives": Format(_archives, _read_archive),
    "chains": Format(_chained, _read_chained),
    "csv": Format(_csv, _read_csv),
    "libsvm": Format(_libsvm, _read_libsvm),
    "image lists": Format(_image_lists, _read_image_list),
    "embeddings": Format(_embeddings, _read_embedding),
}
