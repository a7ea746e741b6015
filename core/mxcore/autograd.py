"""Automatic differentiation for arrays, as ``mxnet.autograd``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core import frontend, reverse, tape
from ._core.array import Array, ruled
from ._core.call import op_context
from ._core.errors import error
from ._core.op import Op
from ._core.params import Params
from ._core.state import state
from ._heads import check_arrays
from ._noting import check_not_noted
from ._reexports import reexports
from ._scopes import Restoring, without

__all__ = [
    "set_recording",
    "set_training",
    "is_recording",
    "is_training",
    "record",
    "pause",
    "train_mode",
    "predict_mode",
    "mark_variables",
    "backward",
    "grad",
    "Function",
    "get_symbol",
]


def is_recording() -> bool:
    """Whether operators are written on the tape of this thread."""
    record = state.record
    return bool(getattr(record, "recording", record))


def is_training() -> bool:
    """Whether operators run in training mode in this thread."""
    return state.train


def set_recording(is_recording: bool) -> bool:
    """Switch recording; returns the former state."""
    old: bool = state.record  # or who stands in the place of the tape
    state.record = is_recording if callable(is_recording) else bool(is_recording)
    return old


def set_training(train_mode: bool) -> bool:
    """Switch training mode; returns the former state."""
    old, state.train = state.train, bool(train_mode)
    return old


class RecordingScope(Restoring):
    """A with-block that sets recording and training mode; None leaves one as it is."""

    __slots__ = ("_record", "_train")

    def __init__(self, record: bool | None, train: bool | None) -> None:
        self._record, self._train = record, train

    def _inside(self, record: Any) -> Any:
        """What records inside, where `record` does outside: the tape, or a graph in its place."""
        noting = getattr(record, "within", None)
        return self._record if noting is None else noting(self._record)

    # A `Scope` that takes half of the time.
    def __enter__(self) -> None:
        mode = state.__dict__
        record, train, entered = mode["record"], mode["train"], mode["entered"]
        try:
            mode["entered"] = self, record, train, entered
            if (inside := self._record) is not None:
                mode["record"] = inside if record is False or record is True else self._inside(record)
            if (inside := self._train) is not None:
                mode["train"] = inside
        except BaseException:
            mode["record"], mode["train"], mode["entered"] = record, train, entered
            raise

    def _leave(self) -> None:
        # What it did not change stays, as in MXNet: tasks of one thread that take turns do not leave a mode behind that
        # was another's.
        mode = state.__dict__
        entry = mode["entered"]
        if entry is None or entry[0] is not self:
            entry, rest = without(entry, self)
            if entry is None:
                return
            entry = *entry[:-1], rest
        _, record, train, rest = entry
        if (inside := self._record) is not record and inside is not None:
            mode["record"] = record
        if (inside := self._train) is not train and inside is not None:
            mode["train"] = train
        mode["entered"] = rest


class _Recorded(RecordingScope):
    """What every step enters: ``RecordingScope(True, True)``, made without a call of Python's."""

    __slots__ = ()
    _record = _train = True
    __init__ = object.__init__


def record(train_mode: bool = True) -> RecordingScope:
    """A with-block in which operators are recorded, by default in training mode.

    >>> import mxcore as mx
    >>> x = mx.nd.array([1, 2])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [2.0, 4.0]
    """
    return _Recorded() if train_mode is True else RecordingScope(True, train_mode)


def pause(train_mode: bool = False) -> RecordingScope:
    """A with-block in which nothing is recorded, by default in predict mode."""
    return RecordingScope(False, train_mode)


class _Off(RecordingScope):
    """A with-block whose operators are neither recorded nor noted for a graph."""

    __slots__ = ()

    def _inside(self, record: Any) -> Any:
        return False


def off() -> RecordingScope:
    """A with-block that does what no graph is to hold: initialising parameters, say."""
    return _Off(False, False)


def train_mode() -> RecordingScope:
    """A with-block in training mode."""
    return RecordingScope(None, True)


def predict_mode() -> RecordingScope:
    """A with-block in predict mode."""
    return RecordingScope(None, False)


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def mark_variables(variables: Any, gradients: Any, grad_reqs: Any = "write") -> None:
    """Make arrays variables whose gradients are written to the given arrays.

    Parameters
    ----------
    variables, gradients : NDArray or list of NDArray
        Of equal shapes, pair by pair.
    grad_reqs : str or list of str
        'write', 'add' or 'null'.
    """
    variables, gradients = _listed(variables), _listed(gradients)
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise error(
            ValueError, f"mark_variables: {len(variables)} variables, {len(gradients)} gradients, {len(reqs)} grad_reqs"
        )
    for v, g, r in zip(variables, gradients, reqs):
        if tuple(v.shape) != tuple(g.shape):
            raise error(ValueError, f"mark_variables: a variable of shape {v.shape} with a gradient of shape {g.shape}")
        tape.mark(v, g, r)


def _heads(heads: Any, head_grads: Any) -> tuple[list[Any], list[Any] | None]:
    check_not_noted("gradients are computed")
    heads = _listed(heads)
    if not heads:
        raise error(
            ValueError, "there are no heads to begin with: give the array, or the arrays, whose gradients are wanted"
        )
    check_arrays("head", heads)
    if head_grads is None:
        return heads, None
    head_grads = _listed(head_grads)
    if len(heads) != len(head_grads):
        raise error(ValueError, f"{len(heads)} heads but {len(head_grads)} head gradients")
    check_arrays("head gradient", head_grads, optional=True)
    return heads, head_grads


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Compute gradients of `heads` and write them to the marked variables.

    Parameters
    ----------
    heads : NDArray or list of NDArray
    head_grads : NDArray, list of NDArray or None
        Incoming gradients; None, also as an item, means ones.
    retain_graph : bool
        Keep the graph for another backward.
    train_mode : bool
        Mode for operators that behave differently in training.
    """
    heads, head_grads = _heads(heads, head_grads)
    reverse.backward(heads, head_grads, retain_graph=retain_graph, train_mode=train_mode)


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[Any]:
    """Return the gradients of `heads` with respect to `variables`; nothing is written to their ``.grad``.

    Parameters
    ----------
    heads, variables : NDArray or list of NDArray
        A head must depend on each variable.
    head_grads : NDArray, list of NDArray or None
        Incoming gradients; None, also as an item, means ones.
    retain_graph : bool, optional
        Keep the graph; as `create_graph` unless told.
    create_graph : bool
        Record the computation of the gradients, so that they can be differentiated again. Of those that are the same
        wherever the variables are, the gradients are zeros.
    train_mode : bool

    Returns
    -------
    list of NDArray
        One per variable, also for a single one.

    Examples
    --------
    >>> import mxcore as mx
    >>> x = mx.nd.array([3.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * x * x
    ...     (g,) = mx.autograd.grad(y, x, create_graph=True)
    >>> g.backward()
    >>> float(x.grad.asscalar())
    18.0
    """
    heads, head_grads = _heads(heads, head_grads)
    variables = _listed(variables)
    if not variables:
        raise error(ValueError, "there are no variables: give the array, or the arrays, whose gradients are wanted")
    check_arrays("variable", variables)
    found = reverse.backward(
        heads,
        head_grads,
        retain_graph=create_graph if retain_graph is None else retain_graph,
        train_mode=train_mode,
        create_graph=create_graph,
        variables=variables,
    )
    assert found is not None
    if create_graph and (constant := [g for g in found if g._entry is None]):
        _depend(constant, variables)
    return found


#: What makes gradients that are the same wherever the variables are; its own gradients are zeros.
_CONSTANT = Op("_constant_gradient", None, inputs="x*", grad=None)


def _depend(constant: list[Array], variables: Sequence[Array]) -> None:
    """Write on the tape that gradients, of a straight line, come from variables: they can be differentiated again."""
    was = set_recording(True)
    try:
        tape.record(_CONSTANT, _CONSTANT.parse({"num_args": len(variables)}), variables, constant)
    finally:
        set_recording(was)


def get_symbol(x: Array) -> Any:
    """The recorded computation of an array as a Symbol; variables are named ``var0``, ``var1`` …"""
    from .symbol import from_tape

    return from_tape(x)


class Function:
    """A differentiable function written in Python: define `forward` and `backward`, call an instance.

    `forward` runs unrecorded; inside it `save_for_backward` keeps arrays for `backward`, which gets the gradients of
    the outputs and returns those of the inputs. An instance may be called once.

    Examples
    --------
    >>> import mxcore as mx
    >>> class sigmoid(mx.autograd.Function):
    ...     def forward(self, x):
    ...         y = 1 / (1 + mx.nd.exp(-x))
    ...         self.save_for_backward(y)
    ...         return y
    ...     def backward(self, dy):
    ...         y, = self.saved_tensors
    ...         return dy * y * (1 - y)
    >>> float(sigmoid()(mx.nd.zeros((1,))).asscalar())
    0.5
    """

    def __init__(self) -> None:
        self._used = False
        self.saved_tensors: Sequence[Any] = ()

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for `backward`, as `self.saved_tensors`."""
        self.saved_tensors = args

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs from the inputs."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def backward(self, *output_grads: Any) -> Any:
        """Compute the gradients of the inputs from those of the outputs."""
        raise NotImplementedError(f"{type(self).__name__} must define backward()")

    def __call__(self, *inputs: Any) -> Any:
        if self._used:
            raise error(
                RuntimeError, f"{type(self).__name__}: each Function instance can be called only once; make another one"
            )
        self._used = True
        was = set_recording(False)
        try:
            outputs = self.forward(*inputs)
        finally:
            set_recording(was)
        listed = _arrays_of(outputs, f"{type(self).__name__}.forward")
        if was and inputs:
            # An output that is an input, or a view of one, gets a handle of its own to carry its place on the tape.
            listed = [
                y.__class__(y._data, y._st) if y._entry is not None or any(y is x for x in inputs) else y
                for y in listed
            ]
            self._cls = inputs[0].dense
            op = _function_op(type(self).__name__, len(inputs), len(listed))
            tape.record(op, op.parse({}), inputs, listed, (op_context(inputs[0].context, state.train), self))
        return listed[0] if not isinstance(outputs, (list, tuple)) else type(outputs)(listed)


def _arrays_of(found: Any, where: str) -> Any:
    """What the user's code returned, as a list of arrays."""
    for x in (listed := _listed(found)):
        if not isinstance(x, Array):
            raise error(TypeError, f"{where} must return arrays (mx.nd.array makes one), got {type(x).__name__}")
    return listed


def _filled(g: Any, x: Any, where: str) -> Any:
    """A gradient as it arrives where `x` is: repeated along what it lacks, in the dtype of `x`, as by ``dx[:] = g``.

    By operators, so that gradients of gradients go through.
    """
    a, b = g._data, x._data
    if g.stype != "default" or a.shape == b.shape and a.dtype == b.dtype:
        return g
    F, more = frontend.eager, len(b.shape) - len(a.shape)
    shape = (1,) * more + tuple(a.shape[max(-more, 0) :])
    if set(a.shape[: max(-more, 0)]) > {1} or any(n not in (1, m) for n, m in zip(shape, b.shape)):
        raise error(
            ValueError, f"{where}: a gradient of shape {tuple(a.shape)} does not fit the input, {tuple(b.shape)}"
        )
    if x.size == 0:
        return F.roles["zero gradient"](x)
    g = g if a.dtype == b.dtype else F.roles["other dtype"](g, dtype=b.dtype)
    return g if a.shape == b.shape else F.broadcast_to(F.reshape(g, shape=shape), shape=tuple(b.shape))


def _function_op(name: str, n_in: int, n_out: int) -> Op:
    def run(k: Any, p: Params, fn: Function, dys: list[Any], ins: Any, outs: Any) -> list[Any]:
        # Copies: the same gradient may be on its way to other operators, and `backward` may write to what it gets.
        cls, where = fn._cls, f"{name}.backward"
        grads = _listed(fn.backward(*[frontend.eager._copy(g).of(cls) if g.stype == "default" else g for g in dys]))
        _arrays_of([g for g in grads if g is not None], where)
        if len(grads) != n_in:
            raise error(ValueError, f"{where} returned {len(grads)} gradients for {n_in} inputs")
        return [
            _filled(ruled(g), x, f"{where}, input {i}") if wanted and g is not None else None
            for i, (g, x, wanted) in enumerate(zip(grads, ins, k.wanted))
        ]

    op = Op(
        f"_Function_{name}",
        None,
        inputs=" ".join(f"x{i}" for i in range(n_in)),
        outputs=lambda p: [f"y{i}" for i in range(n_out)],
        stateful=True,
    )
    op.backward(run)
    return op


__getattr__ = reexports(__name__)
