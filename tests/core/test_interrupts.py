"""Regions that Ctrl-C interrupts at their end, beside whoever else sets handlers."""

import functools
import signal

import pytest

import mxcore as mx
from mxcore._interrupts import Uninterrupted, handled
from mxcore.plugin import op


def test_an_interrupt_comes_at_the_end(ctrl_c):
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as outer:
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append(1)
        done.append(2)  # of regions within each other at the end of the outermost
    assert done == [1, 2] and outer.came
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_is_set_in_the_midst_stays(ctrl_c):
    heard = []

    def mine(*_):
        heard.append(1)

    with Uninterrupted():
        with Uninterrupted():
            signal.signal(signal.SIGINT, mine)  # as another signal's handler may
        assert signal.getsignal(signal.SIGINT) is mine
    assert signal.getsignal(signal.SIGINT) is mine
    signal.raise_signal(signal.SIGINT)
    assert heard == [1] and handled()


def test_who_was_told_of_a_region_as_the_handler_before_may_set_it_again(ctrl_c):
    with Uninterrupted():
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGINT, before)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Uninterrupted():
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("signum", [signal.SIGTERM, max(signal.valid_signals())])
def test_each_change_of_a_handler_is_seen(signum, ctrl_c):
    before = signal.getsignal(signum)
    try:
        for _ in range(2):
            for handler, answer in ((signal.SIG_IGN, False), (lambda *_: None, True), (signal.SIG_DFL, False)):
                signal.signal(signum, handler)
                assert [handled(), handled()] == [answer] * 2
                with Uninterrupted():
                    assert handled() is answer
    finally:
        signal.signal(signum, before)


def deadline(k, p, x):
    signal.raise_signal(signal.SIGTERM)  # as it passes while something is computed
    return x * 1


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("late", ["forward", "backward"])
def test_what_a_handler_raises_is_no_failure_of_what_it_came_amid(plug, late, hybridize):
    class Late(OSError):
        def __init__(self, seconds, more):
            super().__init__(f"{seconds} {more}")

    def handler(*_):
        raise Late(1, "s")

    meets = op("test_interrupts_meets", inputs="x", grad=lambda F, dy: dy)(deadline)
    meets_later = op("test_interrupts_meets_later", inputs="x", grad=lambda F, dy: F.test_interrupts_meets(dy))
    plug(mxcore_ops=[meets, meets_later(lambda k, p, x: x * 1)])
    name = {"forward": "test_interrupts_meets", "backward": "test_interrupts_meets_later"}[late]
    net = mx.gluon.nn.HybridLambda(lambda F, x: getattr(F, name)(x))
    if hybridize:
        net.hybridize()
    x = mx.nd.ones((2, 3))
    x.attach_grad()
    before = signal.signal(signal.SIGTERM, functools.partial(handler))
    try:
        with pytest.raises(Late) as told, mx.autograd.record():
            net(x).backward()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert type(told.value) is Late
