"""Write what MXNet 1.9.1 gives for ``sparse_cases.py``: run it in MXNet's environment."""

import json
import os
import pathlib

os.environ.setdefault("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")

import mxnet as mx
import sparse_cases

OUT = pathlib.Path(__file__).resolve().parent / "data" / "sparse.json"


def main():
    """Run all cases; those that MXNet refuses are kept as null."""
    found = {}
    for name, call in sparse_cases.cases(mx):
        try:
            found[name] = sparse_cases.facts(call())
        except Exception:  # MXNet's limits, some of them bare exceptions
            found[name] = None
    OUT.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")
    print(
        f"{OUT.name}: {len(found)} cases, {sum(v is None for v in found.values())} refused, {OUT.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
