"""Write what MXNet 1.9.1 prints for the programs in `scripts`.

Run in MXNet's own environment: ``python tests/programs/make_golden.py``.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

if __name__ == "__main__":
    found = {}
    for path in sorted((HERE / "scripts").glob("*.py")):
        with tempfile.TemporaryDirectory() as folder:  # what they write is theirs
            done = subprocess.run(
                [sys.executable, "-W", "ignore", str(path)], stdout=subprocess.PIPE, text=True, check=True, cwd=folder
            )
        found[path.stem] = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
    (HERE / "golden.json").write_text(json.dumps(found, indent=1) + "\n")
