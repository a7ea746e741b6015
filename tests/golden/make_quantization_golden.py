"""Write how MXNet 1.9.1 quantises the models of ``quantization_cases.py``, the files it saves, and what they compute.

They go to ``data/scripts/quantization.npz``. ``tools/make_golden.py`` runs it in MXNet's own environment, as::

    python tests/golden/make_quantization_golden.py
"""

import pathlib
import tempfile

import mxnet as mx
import numpy as np
import quantization_cases as cases
from make_golden import load_pack
from mxnet.contrib import quantization as api

OUT = pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "quantization.npz"


def saved(symbol, args, aux):
    """The bytes of the two files of a model."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(pathlib.Path(folder) / "model")
        mx.model.save_checkpoint(prefix, 0, symbol, args, aux)
        names = ("model-symbol.json", "model-0000.params")
        return [np.frombuffer((pathlib.Path(folder) / n).read_bytes(), np.uint8) for n in names]


def main():
    """Quantise everything, and keep graphs, files and numbers."""
    api.stats = api.stats or True  # it is asked for, and not used
    pack = load_pack()()
    for number, (model, options) in enumerate(cases.GRAPHS):
        symbol, shape = cases.build(mx, model)
        args, aux = cases.parameters(symbol, shape)
        made, _, _, collector = api.quantize_graph(
            symbol, {n: mx.nd.array(v) for n, v in args.items()}, aux, calib_mode="naive", **options
        )
        pack.entries.append({"graph": number, "json": made.tojson(), "layers": collector.include_layer})
    for run in cases.RUNS:
        symbol, args, aux = cases.quantized(mx, run, api)
        pack.entries.append(
            {
                "run": run,
                "files": [pack.add(a) for a in saved(symbol, args, aux)],
                "outputs": [pack.add(y) for y in cases.outputs(mx, run, symbol, args, aux)],
            }
        )
    # An operator that MXNet runs in graphs only.
    names = ("lhs", "rhs", "lhs_min", "lhs_max", "rhs_min", "rhs_max")
    product = mx.sym.contrib.quantized_elemwise_mul
    for options, lhs, rhs, *ends in cases.products():
        inputs = {n: mx.nd.array(a, dtype=a.dtype) for n, a in zip(names, (lhs, rhs, *ends))}
        exe = product(*(mx.sym.Variable(n) for n in names), name="m", **options).bind(mx.cpu(), inputs)
        pack.entries.append({"product": options, "outputs": [pack.add(y.asnumpy()) for y in exe.forward()]})
    for params, *arrays in cases.convolutions():
        sums = mx.nd.contrib.quantized_conv(*(mx.nd.array(a, dtype=a.dtype) for a in arrays), **params)[0]
        told = {k: str(v) for k, v in params.items()}
        pack.entries.append({"convolution": told, "sums": pack.add(sums.asnumpy())})
    pack.save(str(OUT))
    print(f"{OUT.name}: {len(pack.entries)} entries, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
