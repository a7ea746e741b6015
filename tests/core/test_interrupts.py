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


class Late(TimeoutError):
    pass


def late(signum, frame):
    raise Late


def gone(signum, frame):
    signal.signal(signum, signal.SIG_IGN)  # a second one is not to disturb what is done now
    raise Late


class Slow(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        signal.raise_signal(signal.SIGTERM)


@mx.operator.register("test_interrupts_slow")
class SlowProp(mx.operator.CustomOpProp):
    def infer_shape(self, shapes):
        return shapes, [shapes[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Slow()


@pytest.mark.parametrize("handler", [late, gone])
def test_a_handler_is_known_whatever_it_has_set(handler):
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(Late):
            mx.nd.Custom(mx.nd.ones((2,)), op_type="test_interrupts_slow").wait_to_read()
    finally:
        signal.signal(signal.SIGTERM, before)


def saved(folder):
    mx.nd.save(str(folder / "a.params"), {"w": mx.nd.ones((3,))})


def loaded(folder):
    assert mx.nd.load(str(folder / "b.params"))["w"].shape == (3,)


def bound(folder):
    x = mx.sym.var("x")
    (mx.sym.dot(x, x) + 1).simple_bind(mx.cpu(), x=(2, 2))


def indexed(folder):
    mx.np.ones((3, 4))[1, ..., 2]


@pytest.mark.parametrize(
    "work, files",
    [
        (saved, ("mxcore/drafts.py", "mxcore/_io_files.py", "ndarray/serialization.py")),
        (loaded, ("mxcore/_io_files.py", "ndarray/serialization.py")),
        (bound, ("executor/arguments.py", "executor/executor.py")),
        (indexed, ("numpy/multiarray.py", "_core/dispatch.py")),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of files that it left unclosed
def test_no_deadline_is_lost(handled_anywhere, work, files, tmp_path):
    mx.nd.save(str(tmp_path / "b.params"), {"w": mx.nd.ones((3,))})
    work(tmp_path)
    came = []

    def guarded():
        try:
            work(tmp_path)
        except Late:
            came.append(1)

    lines = handled_anywhere(files, guarded, lambda: late(None, None))
    assert len(came) == lines > 8
