"""With-blocks that change what a thread has switched on: shared by threads, nested, interrupted."""

import sys
import threading

import pytest

import mxcore as mx
from mxcore import autograd, gluon, profiler, util
from mxcore._core.state import state
from mxcore.gluon.rnn.modifiers import Unwrapped
from mxcore.gluon.rnn.recurrent_cell import FREE

BLOCKS = [gluon.nn.HybridSequential(prefix=prefix) for prefix in ("in_", "out_")]
CELLS = [gluon.rnn.GRUCell(2), gluon.rnn.GRUCell(3)]


def _modes():
    return autograd.is_recording(), autograd.is_training()


def _attributes():
    return mx.sym.Variable("v").list_attr()


def _name():
    return mx.sym.exp(mx.sym.Variable("v")).name.rstrip("0123456789")


def _kept(key):
    """What the thread keeps, without times."""

    def seen():
        kept = state.extra.get(key)
        return [x for x in kept or () if not isinstance(x, (int, float))]

    return seen


#: Name -> scope, a scope around it, what of the thread it changes.
SCOPES = {
    "record": (autograd.record, autograd.train_mode, _modes),
    "record, not trained": (lambda: autograd.record(False), autograd.train_mode, _modes),
    "pause": (autograd.pause, autograd.record, _modes),
    "predict_mode": (autograd.predict_mode, autograd.record, _modes),
    "off": (autograd.off, autograd.record, _modes),
    "train_section": (mx.contrib.autograd.train_section, autograd.train_mode, _modes),
    "Context": (lambda: mx.cpu(1), lambda: mx.cpu(2), mx.current_context),
    "np_shape": (util.np_shape, lambda: util.np_shape(False), util.is_np_shape),
    "np_array": (util.np_array, lambda: util.np_array(False), util.is_np_array),
    "AttrScope": (lambda: mx.AttrScope(g="1"), lambda: mx.AttrScope(a="2"), _attributes),
    "Prefix": (lambda: mx.name.Prefix("in_"), lambda: mx.name.Prefix("out_"), _name),
    "profiler": (lambda: profiler.scope("in"), lambda: profiler.scope("out"), _kept("profiler_scope")),
    "name_scope": (
        lambda: BLOCKS[0].name_scope(),
        lambda: BLOCKS[1].name_scope(),
        lambda: (_name(), gluon.nn.Dense(2).prefix.rstrip("0123456789_")),
    ),
    "modified cell": (lambda: Unwrapped(CELLS[0]), lambda: Unwrapped(CELLS[1]), _kept(FREE)),
}


@pytest.fixture(params=SCOPES)
def case(request):
    make, around, seen = SCOPES[request.param]
    yield make(), around(), lambda: (seen(), state.record, state.train)


def test_threads_share_an_object(case):
    shared, around, seen = case
    turn, found, alone = [threading.Event() for _ in range(3)], {}, {}
    with around:
        alone["around"] = seen()
        with shared:
            pass
        assert seen() == alone["around"]

    def first():
        with around:
            with shared:
                turn[0].set()
                turn[1].wait(10)
            found["around"] = seen()
            turn[2].set()

    def second():
        turn[0].wait(10)
        found["before"] = seen()
        with shared:
            turn[1].set()
            turn[2].wait(10)
        found["after"] = seen()

    threads = [threading.Thread(target=f) for f in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    assert found["around"] == alone["around"] and found["before"] == found["after"]


def test_an_object_is_entered_within_itself(case):
    shared, around, seen = case
    before = seen()
    with shared:
        once = seen()
        with around:
            between = seen()
            with shared:
                pass
            assert seen() == between
        assert seen() == once
    assert seen() == before


class _Lines:
    """Raises KeyboardInterrupt at the n-th line of Python that the package runs from `name` on."""

    def __init__(self, name, n):
        self.name, self.left, self.within = name, n, False

    def __call__(self, frame, event, arg):
        code = frame.f_code
        if "mxcore" not in code.co_filename or not (self.within or code.co_name == self.name):
            return None
        self.within = True
        return self.line

    def line(self, frame, event, arg):
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.line


def _interrupted(scope, name, n):
    """Whether the n-th line of `name` was reached."""
    lines = _Lines(name, n)
    before = sys.gettrace()
    try:
        if name == "__enter__":
            sys.settrace(lines)
        with scope:
            sys.settrace(lines if name == "__exit__" else before)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("name", ["__enter__", "__exit__"])
def test_an_interrupt_at_any_line_leaves_nothing_behind(case, name):
    scope, around, seen = case
    with around:
        before, stack, entered = seen(), [*state.ctx], state.entered
        # Before 3.11 no handler is set up where the first line of a function is told.
        n = first = 2 if name == "__exit__" and sys.version_info < (3, 11) else 1
        while _interrupted(scope, name, n):
            assert (seen(), state.ctx, state.entered) == (before, stack, entered), n
            n += 1
        assert n > first and seen() == before


def test_a_scope_left_by_another_thread_changes_nothing_there():
    def steps():
        with autograd.record():
            yield

    went = steps()
    next(went)
    thread = threading.Thread(target=went.close)
    thread.start()
    thread.join()
    assert autograd.is_recording()
    autograd.set_recording(False)
    autograd.set_training(False)
    state.entered = None


@pytest.mark.parametrize("name", ["record", "np_shape", "np_array"])
def test_tasks_that_take_turns_leave_no_mode_behind(name):
    """As in MXNet: who found what he would have switched on switches nothing off."""
    make, _, seen = SCOPES[name]

    def steps():
        with make():
            yield

    before, tasks = seen(), [steps() for _ in range(3)]
    for task in tasks:
        next(task)
    for task in tasks:
        task.close()
    assert seen() == before and state.entered is None
