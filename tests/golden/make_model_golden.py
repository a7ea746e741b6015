"""Write what MXNet 1.9.1 makes of whole models: their files, what it infers, and the numbers of one step of training.

Run in MXNet's own environment: ``python tests/golden/make_model_golden.py``. The file ``data/scripts/models.npz``
holds, for each model of ``model_cases.py``, its JSON, its lists, shapes and types, and digests of outputs, gradients
and states; for each file in an old layout, the JSON that MXNet writes after reading it; and the names of the outputs
and states of every graph in ``symbols.npz``, by a digest of its text.
"""

import pathlib
import pickle

import model_cases
import mxnet as mx
from make_golden import load_pack

DATA = pathlib.Path(__file__).resolve().parent / "data" / "scripts"


def main():
    """Run all models."""
    Pack = load_pack()
    pack = Pack()
    for model in model_cases.MODELS:
        symbol, shapes = model_cases.build(mx, model)
        arrays = model_cases.run(mx, model.__name__, symbol, shapes) if shapes else {}
        pack.entries.append(
            {
                "model": model.__name__,
                "pickle": pickle.dumps(symbol, 2).decode("latin-1"),
                "json": symbol.tojson(),
                "facts": model_cases.described(mx, symbol, shapes),
                "arrays": {k: pack.add(v) for k, v in arrays.items()},
            }
        )
        print(f"{model.__name__}: {len(arrays)} arrays")
    for name, text in model_cases.LEGACY.items():
        pack.entries.append({"legacy": name, "json": mx.sym.load_json(text).tojson()})
    for e in Pack.load(str(DATA / "symbols.npz")).entries:
        symbol = mx.sym.load_json(e["json"])
        pack.entries.append(
            {
                "graph": model_cases.key(e["json"]),
                "outputs": symbol.list_outputs(),
                "states": symbol.list_auxiliary_states(),
                "internals": symbol.get_internals().list_outputs(),
            }
        )
    pack.save(str(DATA / "models.npz"))
    print(f"models.npz: {len(pack.entries)} entries, {(DATA / 'models.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()
