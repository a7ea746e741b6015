"""A signal's handler that moves the weights which it interrupts the moving of: both steps count."""

import pytest

import mxcore as mx

FILES = ("optimizer/_bound.py", "optimizer/_standing.py", "optimizer/updater.py")


@pytest.mark.parametrize("weights", [1, 3])
@pytest.mark.parametrize("name, more", [("sgd", {"momentum": 0.0}), ("adam", {})])
def test_steps_of_a_handler(handled_anywhere, name, more, weights):
    def made():
        optimizer = mx.optimizer.create(name, learning_rate=0.5, wd=0, **more)
        return mx.optimizer.get_updater(optimizer), [mx.nd.ones(4) for _ in range(weights)]

    index, steps = [*range(weights)], []
    updater, moved = made()

    def step(value):
        updater(index, [mx.nd.full(4, value)] * weights, moved)
        steps.append(value)

    step(1), step(1)  # bound by now
    lines = handled_anywhere(FILES, lambda: step(1), lambda: step(1))
    assert lines > 20
    again, wanted = made()
    for value in steps:
        again(index, [mx.nd.full(4, value)] * weights, wanted)
    if name == "sgd":  # others depend on the order
        for a, b in zip(moved, wanted):
            assert a.asnumpy().tolist() == b.asnumpy().tolist()
    assert updater.optimizer.num_update == again.optimizer.num_update


def test_counts_of_a_handler(handled_anywhere):
    counter = mx.profiler.Counter(mx.profiler.Domain("here"), "steps")
    n = []

    def count():
        n.append(1)
        counter.increment()

    assert handled_anywhere("profiler/objects.py", count, count) > 3
    assert counter._value == len(n)
