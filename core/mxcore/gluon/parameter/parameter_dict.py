"""`ParameterDict`: parameters by full name, with a common prefix."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import initializer
from ... import ndarray as nd
from ...base import error
from ...ndarray.files import load_named, without_kinds
from .constant import Constant
from .pairing import likely_pairs
from .parameter import Parameter, dtype_name

if TYPE_CHECKING:
    from ...context import Context
    from ...initializer import Initializer
    from ...ndarray import NDArray

__all__ = ["ParameterDict"]

_HINT = (
    "Make sure that source and target networks have the same prefix, and that children are made inside name_scope()."
)


def brief(names: Iterable[str], most: int = 40) -> str:
    """Quoted names for a message, shortened in the middle if there are many."""
    quoted = [f"'{n}'" for n in names]
    if len(quoted) > most:
        quoted = [*quoted[: most // 2], "...", *quoted[-most // 2 :]]
    return ", ".join(quoted) or "none"


def _merge_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """What two partial shapes say together, None if they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(i > 0 and j > 0 and i != j for i, j in zip(a, b)):
        return None
    return tuple(i if i > 0 else j for i, j in zip(a, b))


class ParameterDict:
    """Parameters by full name, in order of creation.

    Parameters
    ----------
    prefix : str, default ''
        Goes before the names given to `get`.
    shared : ParameterDict, optional
        Where `get` looks before it makes a new parameter.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.ParameterDict``.

    Examples
    --------
    >>> import mxcore as mx
    >>> params = mx.gluon.ParameterDict('net_')
    >>> params.get('weight', shape=(2, 3))
    Parameter net_weight (shape=(2, 3), dtype=<class 'numpy.float32'>)
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared

    def __repr__(self) -> str:
        name = self._prefix + " " if self._prefix else ""
        content = "\n".join(f"  {p!r}".replace("\n", "\n  ") for p in self.values())
        return f"{name}(\n{content}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __contains__(self, key: str) -> bool:
        return key in self._params

    def items(self) -> ItemsView[str, Parameter]:
        """(full name, parameter) pairs."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """Full names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """Parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """Prefix of this dict; it goes before the names given to `get`."""
        return self._prefix

    def _find(self, name: str) -> Parameter | None:
        if name not in self._params and self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
        return self._params.get(name)

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """Find a parameter, here or in the shared dict, or make it.

        Parameters
        ----------
        name : str
            Name without the prefix.
        **kwargs
            Arguments of `Parameter`. A parameter found must agree with them; unknown dimensions are filled
            in.

        Returns
        -------
        Parameter

        Raises
        ------
        MXNetError (AssertionError)
            If the parameter exists and differs.
        """
        name = self._prefix + name
        found = self._find(name)
        if found is None:
            found = self._params[name] = Parameter(name, **kwargs)
            return found
        for key, wanted in kwargs.items():
            if key == "shape" and isinstance(wanted, int):
                wanted = (wanted,)
            have = getattr(found, key, None)
            if have is None:
                setattr(found, key, wanted)
                continue
            if key == "shape":
                merged = _merge_shapes(wanted, have)
                if merged is not None:
                    found.shape = merged
                    continue
            elif wanted is None or (key == "dtype" and dtype_name(wanted) == dtype_name(have)):
                continue
            if wanted != have:
                raise error(
                    AssertionError,
                    f"Cannot retrieve Parameter '{name}' because desired attribute does not match with "
                    f"stored for attribute '{key}': desired '{wanted}' vs stored '{have}'.",
                )
        return found

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """Find a constant, here or in the shared dict, or make it.

        Parameters
        ----------
        name : str
            Name without the prefix.
        value : NDArray or array_like, optional
            Needed to make it; a constant found must have this value.

        Raises
        ------
        MXNetError (KeyError)
            If there is none of that name and no value either.
        MXNetError (AssertionError)
            If the name stands for something else.
        """
        name = self._prefix + name
        found = self._find(name)
        if found is None:
            if value is None:
                raise error(
                    KeyError, f"No constant named '{name}'. Please specify value if you want to create a new constant."
                )
            made = self._params[name] = Constant(name, value)
            return made
        if value is not None:
            if not isinstance(found, Constant):
                raise error(AssertionError, f"Parameter '{name}' already exists but it is not a constant.")
            wanted = value.asnumpy() if isinstance(value, nd.NDArray) else np.asarray(value)
            have = found.value.asnumpy()
            if wanted.shape != have.shape or not (wanted == have).all():
                raise error(AssertionError, f"Constant '{name}' already exists but it has a different value.")
        return found

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Add all parameters of another dict; a name in both must stand for the same parameter."""
        clashes = [k for k, v in other.items() if self._params.get(k, v) is not v]
        if clashes:
            raise error(
                AssertionError,
                "Cannot update self with other "
                f"because they have different Parameters with the same name {brief(clashes)}",
            )
        self._params.update(other.items())

    def initialize(
        self,
        init: Initializer | str | None = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialise all parameters; see `Parameter.initialize`.

        Parameters
        ----------
        init : Initializer or str, optional
            For parameters without one of their own. By default ``Uniform()``.
        ctx : Context or list of Context, optional
            By default the current context.
        verbose : bool, default False
            Report what the initializer does.
        force_reinit : bool, default False
            Fill initialised parameters again.
        """
        init = initializer.Uniform() if init is None else init
        if verbose and isinstance(init, initializer.Initializer):
            init.set_verbosity(verbose=verbose)
        for p in self.values():
            p.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for p in self.values():
            p.zero_grad()

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to a context or list of contexts."""
        for p in self.values():
            p.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """All contexts on which any of the parameters is."""
        return list(dict.fromkeys(c for p in self.values() for c in p.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters, e.g. ``setattr('grad_req', 'null')``."""
        for p in self.values():
            setattr(p, name, value)

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Write all values to a file in MXNet's format.

        Parameters
        ----------
        filename : str
        strip_prefix : str, default ''
            Taken off the names.

        Raises
        ------
        MXNetError (ValueError)
            If a name does not start with `strip_prefix`.
        """
        for name in self.keys():
            if not name.startswith(strip_prefix):
                raise error(
                    ValueError,
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{name}' "
                    "does not start with it. This may be due to your Block shares parameters from other "
                    "Blocks or you forgot to use 'with name_scope()' when creating child blocks.",
                )
        nd.save(filename, {name[len(strip_prefix) :]: p._reduce() for name, p in self.items()})

    def load(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read values from a file in MXNet's format.

        Parameters
        ----------
        filename : str
        ctx : Context or list of Context, optional
            Where to put parameters that are not initialised yet. By default the CPU.
        allow_missing : bool, default False
            Leave parameters that the file lacks as they are.
        ignore_extra : bool, default False
            Skip what the file has and this dict lacks.
        restore_prefix : str, default ''
            Put before the names in the file.
        cast_dtype : bool, default False
            Permit a dtype in the file that differs from the parameter's.
        dtype_source : {'current', 'saved'}
            Which dtype the parameter has afterwards, if they differ.

        Raises
        ------
        MXNetError (AssertionError)
            If names, shapes or dtypes do not match.
        """
        loaded = load_named(filename, "parameters are loaded by name.")
        self.load_dict(loaded, ctx, allow_missing, ignore_extra, restore_prefix, filename, cast_dtype, dtype_source)

    def load_dict(
        self,
        param_dict: dict[str, NDArray],
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Take values over from a dict of arrays; arguments as for `load`.

        Parameters
        ----------
        param_dict : dict of str to NDArray
            Names may start with ``arg:`` or ``aux:``, as in the checkpoints of Module.
        filename : str, optional
            Named in error messages.
        """
        source = f"file: {filename}" if filename else "param_dict"
        for name in self.keys():
            if not name.startswith(restore_prefix):
                raise error(
                    AssertionError,
                    f"restore_prefix is '{restore_prefix}' "
                    f"but Parameters name '{name}' does not start with it. {_HINT}",
                )
        values = {restore_prefix + name: value for name, value in without_kinds(param_dict, source).items()}
        missing = [] if allow_missing else [n for n in self.keys() if n not in values]
        extra = [n for n in values if n not in self._params]
        if missing:
            strangers = f" Unknown here: {brief(extra)}." if extra else ""
            raise error(
                AssertionError,
                f"Parameter {brief(missing)} is missing in {source}, which contains parameters: "
                f"{brief(values)}.{strangers} Set allow_missing to ignore. {_HINT}{likely_pairs(missing, extra)}",
            )
        if extra and not ignore_extra:
            raise error(
                AssertionError,
                f"Parameter {brief(extra)} loaded from {source} is not present in ParameterDict, choices "
                f"are: {brief(self.keys())}. Set ignore_extra to True to ignore. {_HINT}"
                + likely_pairs([n for n in self.keys() if n not in values], extra),
            )
        load_matching(
            {n: self._params[n] for n in values if n in self._params}, values, source, ctx, cast_dtype, dtype_source
        )


def load_matching(
    params: Mapping[str, Parameter],
    values: Mapping[str, Any],
    source: str,
    ctx: Context | Sequence[Context] | None,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """Load arrays into parameters of the same names, after a check of all at once.

    A file for another network is then refused with one list of differences, and nothing is half loaded.
    """
    empty = [name for name in params if values[name] is None]
    if empty:
        raise error(
            ValueError,
            f"{source} has no array under {brief(empty)}, only the name; "
            "the file is damaged or was saved before initialize()",
        )
    wrong = {name: why for name, p in params.items() if (why := p._misfit(values[name], ctx, cast_dtype))}
    if len(wrong) == 1:
        ((name, why),) = wrong.items()
        raise error(
            AssertionError, f"Failed loading Parameter '{params[name].name}' from saved params: {why} ({source})"
        )
    if wrong:
        raise error(
            AssertionError,
            f"{len(wrong)} parameters of the network and {source} do not fit:\n"
            + "\n".join(f"  {name}: {why}" for name, why in wrong.items()),
        )
    for name, p in params.items():
        p._load_init(values[name], ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
