"""Write small ``.params`` files with the real MXNet 1.9.1, and what MXNet reads in them.

Run in MXNet's own environment: ``python tests/golden/make_params_golden.py``. MXNet writes the files of the
newest formats; those of the older ones, which 1.9.1 only reads, are put together here and read by MXNet.
``expected.json`` says what MXNet found in each file.
"""

import json
import pathlib
import struct

import mxnet as mx
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "ndarray" / "golden_params"
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


def described(array):
    """What a test compares: the array as lists, by MXNet's own eyes."""
    if array.stype == "default":
        name = "bfloat16" if array.dtype == BFLOAT16 else np.dtype(array.dtype).name
        values = array.astype("float32") if name == "bfloat16" else array
        return {"stype": "default", "dtype": name, "shape": array.shape, "values": values.asnumpy().tolist()}
    parts = (array.indices,) if array.stype == "row_sparse" else (array.indptr, array.indices)
    return {
        "stype": array.stype,
        "dtype": np.dtype(array.dtype).name,
        "shape": array.shape,
        "values": array.data.asnumpy().tolist(),
        "aux": [p.asnumpy().tolist() for p in parts],
    }


def written():
    """File name -> what MXNet is asked to save."""
    base = np.array([[1, 0, 3], [4, 5, 127]])
    cases = {dtype: [mx.nd.array(base, dtype=dtype)] for dtype in DTYPES}
    cases["bfloat16"] = [mx.nd.array([1, -2.5, 0]).astype(BFLOAT16)]
    cases["empty"] = []
    cases["list"] = [mx.nd.array([1, 2]), mx.nd.array(base, dtype="int32"), mx.nd.ones((2, 1, 2, 1, 2))]
    cases["dict"] = {
        "arg:fc_weight": mx.nd.array(base),
        "aux:bn_\u03bc": mx.nd.array([7], dtype="int64"),
        "": mx.nd.ones(1),
    }
    rows = mx.nd.sparse.row_sparse_array((np.array([[1, 2], [3, 4.5]], "float32"), [1, 4]), shape=(6, 2))
    matrix = mx.nd.sparse.csr_matrix((np.array([1, 2, 3], "float32"), [0, 2, 1], [0, 2, 2, 3]), shape=(3, 4))
    cases["row_sparse"] = {"rows": rows, "none": mx.nd.sparse.zeros("row_sparse", (6, 2, 3), dtype="float64")}
    cases["csr"] = {"matrix": matrix, "none": mx.nd.sparse.zeros("csr", (3, 4))}
    return cases


def older():
    """File name -> bytes of the formats before storage types."""
    data = np.array([[1, 2, 3], [4, 5, 6]], "float32")
    tail = struct.pack("<iii", 1, 0, 0) + data.tobytes()
    first = struct.pack("<III", 2, 2, 3) + tail
    v1 = struct.pack("<Iiqq", 0xF993FAC8, 2, 2, 3) + tail
    gpu = struct.pack("<Iiqq", 0xF993FAC8, 2, 2, 3) + struct.pack("<iii", 2, 1, 0) + data.tobytes()
    return {"first": listed([first, first], [b"a", b"b"]), "v1": listed([v1, first]), "v1_gpu": listed([gpu])}


def listed(arrays, names=()):
    head = struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(arrays)
    return head + struct.pack("<Q", len(names)) + b"".join(struct.pack("<Q", len(n)) + n for n in names)


def read(path, load):
    found = load(str(path))
    names = list(found) if isinstance(found, dict) else []
    return {"names": names, "arrays": [described(a) for a in (found.values() if names else found)]}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, data in written().items():
        path = OUT / (name + ".params")
        mx.nd.save(str(path), data)
        expected[name] = dict(read(path, mx.nd.load), version=2)
    for name, data in older().items():
        path = OUT / (name + ".params")
        path.write_bytes(data)
        expected[name] = dict(read(path, mx.nd.load), version=1)
    mx.npx.set_np()
    path = OUT / "np_shape.params"
    arrays = {"scalar": mx.np.array(3.5), "hollow": mx.np.zeros((0, 3)), "b": mx.np.array([True])}
    mx.npx.save(str(path), arrays)
    expected["np_shape"] = dict(read(path, mx.npx.load), version=3)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in expected.items())
    (OUT / "expected.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
