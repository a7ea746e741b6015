"""`Block`: a layer, a loss or a whole network that runs eagerly."""

from __future__ import annotations

import copy
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...base import MXNetError, error
from ..parameter import Parameter, ParameterDict
from ..utils import HookHandle
from . import files
from .depth import explained, too_deep
from .naming import NameScope

if TYPE_CHECKING:
    from ...context import Context
    from ...initializer import Initializer

__all__ = ["Block"]


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


class Block:
    """Base of all layers and networks.

    Write ``__init__``, where layers and parameters assigned to attributes are registered, and ``forward``.

    Parameters
    ----------
    prefix : str, optional
        Goes before the names of all parameters inside. By default the class name in lower case and a number.
    params : ParameterDict, optional
        Parameters to share, e.g. ``other.params``.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.Block``, its names, printed form and files included.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Net(mx.gluon.Block):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         with self.name_scope():
    ...             self.out = mx.gluon.nn.Dense(2)
    ...     def forward(self, x):
    ...         return mx.nd.relu(self.out(x))
    >>> net = Net(prefix='net_')
    >>> net.initialize()
    >>> net(mx.nd.ones((1, 3))).shape
    (1, 2)
    """

    #: Whether it is a row of a summary, which containers are not.
    _in_summary = True

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        self._empty_prefix = prefix == ""
        self._prefix, self._params = NameScope.create(prefix, params, self._alias())
        self._name = self._prefix[:-1] if self._prefix.endswith("_") else self._prefix
        self._scope = NameScope(self)
        self._children: OrderedDict[str, Block] = OrderedDict()
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._forward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def __repr__(self) -> str:
        with explained(self):
            parts = "\n".join(
                f"  ({key}): {_indent(repr(block))}"
                for key, block in [*self.__dict__.items()]
                if isinstance(block, Block)
            )
        return f"{type(self).__name__}(\n{parts}\n)"

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Block, Parameter)) or name in self.__dict__:
            existing = self.__dict__.get(name)
            if isinstance(existing, (Block, Parameter)) and not isinstance(value, type(existing)):
                raise error(
                    TypeError,
                    f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed.",
                )
            if isinstance(value, Block):
                self.register_child(value, name)
            elif isinstance(value, Parameter):
                if name in self._reg_params:
                    raise error(
                        AssertionError,
                        f"Overriding Parameter attribute {name} is not allowed. If you want to share "
                        "parameters between blocks, please set 'params' at Block construction instead.",
                    )
                self._reg_params[name] = value
        super().__setattr__(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with explained(self):
            return copy._reconstruct(self, memo, *self.__reduce_ex__(4))  # type: ignore[attr-defined]  # as for any other object

    def _alias(self) -> str:
        """What names of this kind of block begin with."""
        return type(self).__name__.lower()

    # -- names and parameters --------------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """Goes before the names of everything inside."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without its last underscore."""
        return self._name

    def name_scope(self) -> NameScope:
        """Give the names of this block to what is made inside a ``with`` statement."""
        return self._scope

    @property
    def params(self) -> ParameterDict:
        """This block's own parameters, without those of its children; see `collect_params`."""
        return self._params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Parameters of this block and of everything inside.

        Parameters
        ----------
        select : str, optional
            Regular expression that a name must match from its start, e.g. ``'.*weight|.*bias'``.

        Returns
        -------
        ParameterDict
        """
        self._warn_of_containers()
        pattern = None if select is None else re.compile(select)
        found = ParameterDict(self.params.prefix)
        found.update({name: p for name, p in self.params.items() if pattern is None or pattern.match(name)})
        with explained(self):
            for child in self._children.values():
                found.update(child.collect_params(select))
        return found

    def _warn_of_containers(self) -> None:
        registered = set(map(id, self._children.values()))
        for key, value in [*self.__dict__.items()]:  # a first call in another thread adds some
            if not isinstance(value, (list, tuple, dict)) or key.startswith("_"):
                continue
            if not _all_registered(value, registered):
                warnings.warn(
                    f'"{type(self).__name__}.{key}" is an unregistered container with Blocks. '
                    "Note that Blocks inside the list, tuple or dict will not be registered automatically. "
                    "Make sure to register them using register_child() or switching to nn.Sequential or "
                    "nn.HybridSequential instead.",
                    UserWarning,
                    stacklevel=4,
                )

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by structural name, e.g. ``features.0.weight``."""
        prefix = prefix + "." if prefix else ""
        found = {prefix + name: p for name, p in self._reg_params.items()}
        with explained(self):
            for name, child in self._children.items():
                found.update(child._collect_params_with_prefix(prefix + name))
        return found

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make a block a child: its parameters become part of this block's."""
        self._children[str(len(self._children)) if name is None else name] = block

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Call ``fn(block)`` on every block inside, children first, then on this one; returns this block."""
        with explained(self):
            for child in self._children.values():
                child.apply(fn)
        fn(self)
        return self

    def initialize(
        self,
        init: Initializer | str | None = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialise all parameters inside; arguments as for `ParameterDict.initialize`."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def cast(self, dtype: Any) -> None:
        """Cast all parameters inside to another dtype."""
        with explained(self):
            for child in self._children.values():
                child.cast(dtype)
        for p in self.params.values():
            p.cast(dtype)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridise the hybrid blocks inside; see `HybridBlock.hybridize`."""
        with explained(self):
            for child in self._children.values():
                child.hybridize(active, **kwargs)

    # -- running ---------------------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        if self._forward_pre_hooks:
            for hook in tuple(self._forward_pre_hooks.values()):
                hook(self, args)
        try:
            out = self.forward(*args)
        except RecursionError as e:
            if isinstance(e, MXNetError):  # from a block inside, which has said it
                raise
            raise too_deep(self) from None
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def forward(self, *args: Any) -> Any:
        """Compute the output. Every block defines its own."""
        raise error(
            NotImplementedError,
            f"{type(self).__name__} does not say what it computes: define forward(self, x, ...), or "
            "hybrid_forward(self, F, x, ...) in a HybridBlock.",
        )

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(block, inputs)`` called before every `forward`; returns a `HookHandle`."""
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(block, inputs, output)`` called after every `forward`; returns a `HookHandle`."""
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Watch the operators of the hybridised blocks inside.

        Parameters
        ----------
        callback : callable
            Called as ``callback(name, operator, array)`` for every output, e.g. with name
            ``'dense0_fwd_output'``.
        monitor_all : bool, default False
            Show the operators' inputs too.
        """
        with explained(self):
            for child in self._children.values():
                child.register_op_hook(callback, monitor_all)

    def summary(self, *inputs: Any) -> None:
        """Run once on `inputs` and print a table of layers, output shapes and numbers of parameters.

        Parameters
        ----------
        *inputs : NDArray
            What the block is called with.

        Raises
        ------
        MXNetError (AssertionError)
            If something inside is hybridised.
        """
        from .summary import summary

        with explained(self):
            summary(self, inputs)

    # -- files -----------------------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write the parameters in MXNet's format, under structural names such as ``features.0.weight``.

        Parameters
        ----------
        filename : str
        deduplicate : bool, default False
            Write a shared parameter once only.
        """
        files.save_parameters(self, filename, deduplicate)

    def load_parameters(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read parameters from a file that MXNet or mxcore wrote.

        Parameters
        ----------
        filename : str
            File of `save_parameters`, `HybridBlock.export` or `ParameterDict.save`.
        ctx : Context or list of Context, optional
            Where to put parameters that are not initialised yet. By default the CPU.
        allow_missing : bool, default False
            Leave parameters that the file lacks as they are.
        ignore_extra : bool, default False
            Skip what the file has and the block lacks.
        cast_dtype : bool, default False
            Permit a dtype in the file that differs from the parameter's.
        dtype_source : {'current', 'saved'}
            Which dtype the parameter has afterwards, if they differ.

        Raises
        ------
        MXNetError
            Also an AssertionError if parameters are missing or shapes or dtypes differ, a ValueError if the
            file has parameters that the block lacks. The message lists the differences.
        """
        files.load_parameters(self, filename, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)

    def save_params(self, filename: str) -> None:
        """Write the parameters under full names without the prefix. Deprecated: use `save_parameters`."""
        warnings.warn(
            "save_params is deprecated. Please use save_parameters. Note that if you want load from "
            "SymbolBlock later, please use export instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> None:
        """Read parameters from a file. Deprecated: use `load_parameters`."""
        warnings.warn("load_params is deprecated. Please use load_parameters.", DeprecationWarning, stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write ``prefix-model.params`` and, describing the structure, ``prefix-model.json``."""
        files.save(self, prefix)

    def load(self, prefix: str) -> None:
        """Read what `save` wrote into a block of the same structure, and hybridise what was hybridised."""
        files.load(self, prefix)


def _all_registered(x: Any, registered: set[int]) -> bool:
    """Whether every block in nested containers is among the ids `registered`."""
    if isinstance(x, (list, tuple)):
        return all(_all_registered(item, registered) for item in x)
    if isinstance(x, dict):
        return all(_all_registered(item, registered) for item in x.values())
    return not isinstance(x, Block) or id(x) in registered
