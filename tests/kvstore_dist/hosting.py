"""A worker that adds up with others, and says what comes: ``hosting.py TYPE``; each line that it reads is a step."""

import sys
import time

import mxcore as mx
from tests.kvstore_dist.processes import say

store = mx.kv.create(sys.argv[1])
x = mx.nd.full(300_000, store.rank + 1)
if hasattr(store, "init"):
    store.init("x", x)
for _ in sys.stdin:
    start = time.monotonic()
    try:
        store.pushpull("x", x)
        say({"value": float(x.max().asscalar())})
    except mx.MXNetError as e:
        say({"error": str(e), "seconds": time.monotonic() - start})
        break
