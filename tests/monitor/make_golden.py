"""Write what MXNet 1.9.1's Monitor reports of ``cases.py``: run it in MXNet's environment."""

import json
import pathlib

import cases
import mxnet as mx

if __name__ == "__main__":
    out = pathlib.Path(__file__).resolve().parent / "golden.json"
    out.write_text(
        json.dumps(
            {
                "reports": {way: cases.reports(mx, way) for way in cases.WAYS},
                "names": {way: cases.rows(mx, **settings) for way, settings in cases.NAMES.items()},
            }
        )
        + "\n"
    )
    print(f"{out.name}: {out.stat().st_size} bytes")
