"""Regions that Ctrl-C interrupts at their end, beside whoever else sets handlers."""

import functools
import gc
import itertools
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

import mxcore as mx
from mxcore._core.errors import said
from mxcore._interrupts import Uninterrupted, descriptor, handled
from mxcore._workers import begin
from mxcore.codecache import CodeCache, Places
from mxcore.plugin import KernelSet, Latch, MXNetError, compute_without, error, op
from tests.descriptors import TOLD, not_there, open_descriptors


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


def test_the_handler_of_ctrl_c_raises_for_other_signals_too(ctrl_c):
    """As `kill` is made to act as Ctrl-C; regions put Ctrl-C aside alone."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        assert handled()
        with Uninterrupted():
            assert handled()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not handled()


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


def compiled(folder):
    cache = CodeCache("example", list)
    cache.places, cache._written = Places((folder,), folder), {folder: 0}
    (folder / "a.code").unlink(missing_ok=True)
    assert cache.made("a.code", lambda: b"abc") == cache.load("a.code") == b"abc"


def loaded(folder):
    assert mx.nd.load(str(folder / "b.params"))["w"].shape == (3,)


def bound(folder):
    x = mx.sym.var("x")
    (mx.sym.dot(x, x) + 1).simple_bind(mx.cpu(), x=(2, 2))


def indexed(folder):
    mx.np.ones((3, 4))[1, ..., 2]


DRAFTS = [f"mxcore/drafts/{path.name}" for path in sorted(Path(mx.__file__).with_name("drafts").glob("*.py"))]


@pytest.mark.parametrize(
    "work, files",
    [
        (saved, (*DRAFTS, "mxcore/_file_names.py", "mxcore/_io_files.py", "ndarray/serialization.py")),
        (compiled, ("mxcore/codecache.py",)),
        (loaded, ("mxcore/_file_names.py", "mxcore/_io_files.py", "ndarray/serialization.py")),
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

    gc.collect()
    before = open_descriptors()
    lines = handled_anywhere(files, guarded, lambda: late(None, None))
    assert len(came) == lines > 8
    gc.collect()
    # A folder may stay open where the interpreter would not look at signals: before it closes it.
    there = [what for what in open_descriptors().values() if what != str(tmp_path)]
    assert len(there) <= len(before), not_there(before)
    work(tmp_path)
    assert not list(tmp_path.glob("*.tmp"))  # drafts that nobody holds go with the next file


class Wrong(ValueError):
    pass


@pytest.fixture
def too_late():
    """A signal's handler raises a ValueError."""

    def handler(*_):
        raise Wrong("too late")

    before = signal.signal(signal.SIGTERM, handler)
    yield lambda: signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)


def read(raises):
    try:
        raises()
    except ValueError:
        raise TypeError("must be a float") from None


def named(e):
    return error(KeyError, f"in another function: {e}")


def test_no_error_stands_in_the_place_of_what_a_handler_raised(too_late):
    def directly():
        try:
            too_late()
        except ValueError as e:
            raise error(ValueError, f"it failed: {e}") from e

    def handed_on():
        try:
            too_late()
        except ValueError as e:
            raise named(e) from None

    def twice():
        try:
            functools.partial(read, too_late)()
        except TypeError as e:
            raise error(TypeError, f"parameter p {e}") from None

    here = read.__code__
    with pytest.raises(MXNetError, match="parameter p must be a float"):  # another one has caught it, and means that
        twice()
    read.__code__ = here.replace(co_filename=mx.__file__)
    try:
        for way in (directly, handed_on, twice):
            with pytest.raises(Wrong, match="too late"):
                way()
    finally:
        read.__code__ = here


def test_who_handles_it_may_meet_other_errors(too_late):
    for wrong in (lambda: mx.nd.array("x"), lambda: mx.nd.random.uniform(low="x"), lambda: mx.nd.ones((2,)).nonsense):
        try:
            too_late()
        except Wrong:
            with pytest.raises((mx.MXNetError, AttributeError)) as told:
                wrong()
            assert not isinstance(told.value, Wrong)


def test_a_deadline_amid_the_first_call_of_a_network_is_no_failure_of_its_shapes(too_late):
    class Net(mx.gluon.nn.HybridSequential):
        def infer_shape(self, *args):
            too_late()

    net = Net()
    net.add(mx.gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    with pytest.raises(Wrong):
        net(mx.nd.ones((1, 2)))


def test_a_latch_does_not_swallow_it(monkeypatch):
    class Late(RuntimeError):
        pass

    def handler(*_):
        raise Late

    class Lock:
        def acquire(self, timeout=-1):
            return True

        def release(self):
            signal.raise_signal(signal.SIGTERM)

    latch = Latch()
    latch._lock = Lock()
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(Late):
            latch.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_warning_does_not_stand_in_its_place_either(too_late, plug):
    """As while a kernel is bound for the steps of an optimizer, which go on without."""
    kernels, bound = KernelSet("cpu"), []

    def kernel_of(name):
        def step(k, p, outs, *ins):
            compute_without("throwaway", name, k, p, outs, *ins)

        def binds(k, p, ins, outs):
            bound.append(name)
            too_late()

        step.binds = binds
        kernels.kernel(name, priority=999, out=True)(step)

    for name in ("sgd_update", "multi_sgd_update", "preloaded_multi_sgd_update"):
        kernel_of(name)
    plug(mxcore_kernels={"cpu": kernels})
    params = [mx.gluon.Parameter(f"w{i}", shape=(30, 40)) for i in range(3)]
    for p in params:
        p.initialize()
    trainer = mx.gluon.Trainer(params, "sgd")

    def steps():
        for _ in range(4):
            with mx.autograd.record():
                y = sum((p.data() * p.data()).sum() for p in params)
            y.backward()
            trainer.step(1)

    with pytest.raises(Wrong):
        steps()
    assert bound


def test_a_deadline_amid_the_start_of_a_thread_is_no_lack_of_room(too_late):
    """Python's own code tells it as an error of the lock, or of its list of threads."""

    class Locks(threading.Thread):
        def start(self):
            try:
                too_late()
            finally:
                raise RuntimeError("release unlocked lock")

    class Lists(threading.Thread):
        def start(self):
            try:
                too_late()
            except Wrong:
                raise KeyError(self)  # noqa: B904, as Python's

    class Full(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    for kind in (Locks, Lists):
        with pytest.raises(Wrong, match="too late"):
            begin(kind(), "a thread", "do without")
    try:
        too_late()
    except Wrong:  # which is told already, and has nothing to do with it
        with pytest.raises(MXNetError, match="a thread cannot be started: can't start new thread; do without"):
            begin(Full(), "a thread", "do without")


def test_ctrl_c_comes_behind_the_start_of_a_thread(ctrl_c):
    seen = []

    class Slow(threading.Thread):
        def start(self):
            signal.raise_signal(signal.SIGINT)
            super().start()
            seen.append(self.is_alive() or self.ident)

    with pytest.raises(KeyboardInterrupt):
        begin(Slow(target=int), "a thread", "do without")
    assert seen[0]


def test_a_deadline_amid_what_an_error_says(too_late, monkeypatch, tmp_path):
    class Odd(ValueError):
        def __str__(self):
            too_late()
            return "odd"

    with pytest.raises(Wrong):
        said(Odd())
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, *a, **k: too_late() if path == str(tmp_path) else stat(path, *a, **k))
    with pytest.raises(Wrong):
        mx.nd.load(str(tmp_path / "missing.params"))


@pytest.mark.skipif(not TOLD, reason="what is open cannot be seen")
def test_what_a_handler_raises_at_any_instruction_leaves_no_descriptor(tmp_path):
    ours = descriptor.__wrapped__.__code__.co_filename
    before, left = open_descriptors(), itertools.count()

    def late(frame, event, _):
        frame.f_trace_opcodes = True
        if frame.f_code.co_filename == ours and event == "opcode" and next(left) == at:
            raise TimeoutError
        return late

    for at in itertools.count():
        left = itertools.count()
        outside = sys.gettrace()
        try:
            sys.settrace(late)
            with descriptor(str(tmp_path), os.O_RDONLY) as handle:
                os.fstat(handle)
        except TimeoutError:
            pass
        else:
            break
        finally:
            sys.settrace(outside)
        assert not not_there(before), f"at instruction {at}"
    assert at > 50 and not not_there(before)
