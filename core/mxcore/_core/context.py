"""Contexts: where an array lives. One object per (device type, index), so identity is equality."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .errors import MXNetError, error
from .state import state

if TYPE_CHECKING:
    from .call import OpContext
    from .device import Device

__all__ = [
    "INTERNED",
    "Context",
    "context_named",
    "current_context",
    "declare_types",
    "set_default_context",
    "HINTS",
    "TYPE_IDS",
]

#: Types of device that are known before a plugin brings them -> numbers, which files hold. Plugins may bring further
#: types.
TYPE_IDS: dict[str, int] = {}
#: Type -> what to do where no plugin provides it.
HINTS: dict[str, str] = {}

INTERNED: dict[tuple[str, int], Context] = {}


class _Outermost(type):
    """Metaclass for ``Context.default_ctx``, which programs read and write on the class."""

    default_ctx = property(
        lambda cls: current_context(),
        lambda cls, ctx: set_default_context(ctx),
        doc="The context of this thread, as `current_context`.",
    )


class Context(metaclass=_Outermost):
    """A device type and an index, e.g. ``Context('cpu', 1)``; usable as ``with ctx:``.

    Parameters
    ----------
    device_type : str or Context or int
        ``'cpu'``, ``'gpu'``, ``'cpu_pinned'``, ``'cpu_shared'``, the type of a plugin device, MXNet's number for one
        of them, or a context to take over, itself or as it prints (``'cpu(1)'``).
    device_id : int
        Index of the device, from 0.

    Raises
    ------
    MXNetError
        If the index is negative or no int. An unknown type is noticed at first use, when plugins are loaded.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.Context('cpu', 1) is mx.cpu(1)
    True
    """

    __slots__ = ("device_type", "device_id", "_device", "op_contexts", "__weakref__")

    devtype2str: ClassVar[dict[int, str]] = {}
    devstr2type = TYPE_IDS
    #: The table of devices, which enters itself.
    devices: ClassVar[Any]

    device_type: str
    device_id: int
    _device: Device | None
    #: Training mode -> what bodies may know of a call here.
    op_contexts: dict[bool, OpContext]

    def __new__(cls, device_type: Any = None, device_id: int = 0) -> Context:
        if isinstance(device_type, Context):
            return device_type
        if isinstance(device_type, int):
            if device_type not in cls.devtype2str:
                Context.devices.names()  # a plugin may bring it
            device_type = cls.devtype2str.get(device_type, device_type)
        try:
            self = INTERNED.get((device_type, device_id))
        except TypeError:  # what cannot be looked up is no name or no number, as is said below
            self = None
        if self is None:
            if isinstance(device_type, str) and device_type[-1:] == ")":
                return Context(*device_type[:-1].split("(", 1))  # type: ignore[arg-type]  # a number as text
            if not isinstance(device_type, str) or not device_type:
                hint = " (as from MXNet's pickles: save .params there)" if device_type is None else ""
                raise error(
                    TypeError, f"Context: device_type must be a device name such as 'cpu', got {device_type!r}{hint}"
                )
            try:
                index = int(device_id)
            except (TypeError, ValueError, OverflowError):
                raise error(TypeError, f"Context: device_id must be an int, got {device_id!r}") from None
            if index < 0:
                raise error(ValueError, f"Context: device_id must be 0 or more, got {device_id!r}")
            self = object.__new__(cls)
            self.device_type, self.device_id = device_type, index
            self._device, self.op_contexts = None, {}
            # setdefault: two threads may race to the first use of a context.
            self = INTERNED.setdefault((device_type, index), self)
        return self

    @property
    def device(self) -> Device:
        """The device object of this context; loads plugins on first use and raises if none provides it."""
        if (device := self._device) is None:  # read once: another thread may register a plugin
            kept, device = self.op_contexts, Context.devices.get(self.device_type)
            if self.device_id >= (n := device.count()):
                raise error(
                    ValueError,
                    f"{self}: device '{self.device_type}' "
                    + (
                        f"has {n} device(s); use an index below {n}"
                        if n
                        else f"cannot be used here: {device.absence()}"
                    ),
                )
            if kept is self.op_contexts:  # else plugins have come or gone meanwhile
                self._device = device
        return device

    def activate(self) -> None:
        """Make it what the calling thread allocates and computes on, if its device has a queue of its own."""
        device = self._device or self.device
        if device.async_:
            device.activate(self.device_id)

    @property
    def device_typeid(self) -> int:
        """MXNet's number of the device type (1 cpu, 2 gpu, 3 cpu_pinned, 5 cpu_shared; plugins choose theirs)."""
        return TYPE_IDS.get(self.device_type) or self.device.type_id

    def empty_cache(self) -> None:
        """Give memory that the device holds in reserve back to the system."""
        self.device.empty_cache(self.device_id)

    def __enter__(self) -> Context:
        # Here nothing comes between entering and returning, and where Ctrl-C comes first when it is left, that is done
        # all the same: a line for each, as each line may be interrupted.
        state.ctx += [self]; return self  # fmt: skip  # noqa: E702

    def __exit__(self, *exc: object) -> None:
        try: del state.ctx[-1]  # fmt: skip  # noqa: E701
        except BaseException: del state.ctx[-1]; raise  # fmt: skip  # noqa: E701, E702

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Context, (self.device_type, self.device_id))


_default: Context | None = None


def declare_types(ids: dict[str, int], hints: dict[str, str]) -> None:
    """Make types of device known, with numbers and what to do where one is missing; the first is the default's."""
    global _default
    TYPE_IDS.update(ids)
    HINTS.update(hints)
    Context.devtype2str.update({number: name for name, number in ids.items()})
    _default = _default or Context(next(iter(ids)))


def reset_devices() -> None:
    """Forget resolved devices and everything cached from them; called when the set of plugins changes."""
    for ctx in list(INTERNED.values()):
        ctx._device, ctx.op_contexts = None, {}


def current_context() -> Context:
    """The context of the innermost ``with ctx:`` block of this thread, else index 0 of the first type that is known."""
    stack = state.ctx
    if not stack and _default is None:
        raise error(
            RuntimeError,
            "there is no default context: no type of device is known; compute inside of `with Context(type):`",
        )
    return stack[-1] if stack else _default  # type: ignore[return-value]


def context_named(where: str, given: Any) -> Context:
    """The context that the parameter 'ctx' of `where` names, on a device that is there."""
    try:
        ctx = Context(given if isinstance(given, Context) else str(given))
        _ = ctx.device
    except MXNetError as e:
        raise error(
            type(e), f"{where}: parameter 'ctx' must be a context such as 'cpu(0)', got {str(given)!r}: {e}"
        ) from None
    return ctx


def set_default_context(ctx: Any) -> None:
    """Make a context, or a type of device, that of this thread outside all ``with ctx:`` blocks."""
    # The lowest of the stack, under those of blocks.
    state.ctx[: state.extra.get("default_context", 0)] = [Context(ctx)]
    state.extra["default_context"] = 1
