"""A worker that trains step by step, and says what happens: ``stepping.py TYPE``; each line that it reads is a step."""

import sys
import time

import mxcore as mx
from tests.kvstore_dist.processes import say

kind = sys.argv[1]
store = mx.kv.create(kind)
store.init(["a", "b"], [mx.nd.zeros(3), mx.nd.zeros((50, 40))])
if "async" in kind:
    store.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
say("ready")
outs = [mx.nd.empty(3), mx.nd.empty((50, 40))]
for line in sys.stdin:
    start = time.monotonic()
    try:
        if line.strip() == "barrier":
            store.barrier()
        elif line.strip() == "fail":
            store.pushpull("a", mx.nd.ones(3), out=outs[0])  # which waits for the others
            raise ZeroDivisionError("division by zero")
        else:
            store.pushpull(["a", "b"], [mx.nd.ones(3), mx.nd.ones((50, 40))], out=outs)
        say({"value": float(outs[0].asnumpy()[0]), "other": float(outs[1].asnumpy().min())})
    except mx.MXNetError as e:
        say({"error": str(e), "type": type(e).__name__, "seconds": time.monotonic() - start})
        sys.exit(3)
