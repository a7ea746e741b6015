"""Measurements that need a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def child(module, call, **environment):
    """What a call of a function of a module of benchmarks gives in a fresh interpreter, as JSON can say it.

    ``child("test_module", "f(3)")`` calls ``benchmarks.test_module.f(3)``.
    """
    code = f"import json; from benchmarks.{module} import *; print(json.dumps({call}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
