"""Write what MXNet 1.9.1 prints for the programs here, by two workers and a server.

Run in MXNet's own environment: ``python tests/kvstore_dist/programs/make_golden.py``.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WORKERS = 2
#: What MXNet 1.9.1 does not get through: workers of the one wait for ever, the numbers of the other run away.
NOT_THERE = ("split_sampler", "own_store")


def lines(path):
    """What all workers say of themselves, sorted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(WORKERS),
        "DMLC_NUM_SERVER": "1",
        "DMLC_INTERFACE": "lo",
    }
    with tempfile.TemporaryDirectory() as folder:
        started = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", str(path)],
                env={**os.environ, **common, "DMLC_ROLE": role},
                stdout=subprocess.PIPE,
                text=True,
                cwd=folder,
            )
            for role in ["scheduler", "server"] + ["worker"] * WORKERS
        ]
        try:
            printed = "".join(process.communicate(timeout=60)[0] for process in started)
        finally:
            for process in started:
                process.kill()
    assert not any(process.returncode for process in started), path
    return sorted(line.rstrip() for line in printed.splitlines() if line.startswith("rank "))


if __name__ == "__main__":
    names = sorted({path.stem for path in HERE.glob("*.py")} - {"make_golden", *NOT_THERE})
    found = {name: lines(HERE / f"{name}.py") for name in names}
    (HERE / "golden.json").write_text(json.dumps(found, indent=1) + "\n")
