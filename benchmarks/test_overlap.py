"""Two independent chains of heavy work on two contexts, one compute thread each."""

from __future__ import annotations

import json
import os
import subprocess
import sys

ONE_THREAD = dict.fromkeys(("MXCORE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def chains():
    """Time the two chains one after the other and side by side; prints the two minima."""
    import time

    import mxcore as mx

    start = [mx.nd.random.uniform(-1, 1, shape=(600, 600), ctx=mx.cpu(i)) for i in range(2)]

    def chain(x):
        for _ in range(6):
            x = mx.nd.tanh(mx.nd.dot(x, x) * 0.01)
        return x

    def serial():
        for x in start:
            chain(x).wait_to_read()

    def together():
        for y in [chain(x) for x in start]:
            y.wait_to_read()

    times = {serial: [], together: []}
    for _ in range(20):
        for run in times:
            begin = time.perf_counter()
            run()
            mx.nd.waitall()
            times[run].append(time.perf_counter() - begin)
    print(json.dumps([min(t) for t in times.values()]))


def test_two_contexts(row):
    # A process of its own: how many threads BLAS takes is settled when it loads.
    code = f"import sys; sys.path.insert(0, {os.getcwd()!r}); from benchmarks.test_overlap import chains; chains()"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True)
    serial, together = json.loads(done.stdout)
    row("two chains on cpu(0) and cpu(1)", seconds=together, against=f"one by one {serial * 1e3:.0f} ms",
        ratio=together / serial, at_most=0.65)  # fmt: skip
    assert together > 0
