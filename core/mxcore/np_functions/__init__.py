"""The functions of ``mx.np`` and ``mx.npx``, written once for arrays and for graphs.

A module holds a subject. Each of its public functions takes the face `F` first, which says what an operator gives: an
array now, or a node of a graph. Functions of one subject call those of others through it, ``F.reshape(a, -1)``, and
operators by ``F.call``. What users see, ``mx.np.add``, is the function bound to a face, so that signature and
documentation are the function's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType, ModuleType
from typing import Any

from .._reexports import reexports
from . import (
    creation,
    elementwise,
    extension,
    extension_random,
    extension_shaping,
    fallback,
    joining,
    linalg,
    ordering,
    picking,
    products,
    random,
    reduction,
    shaping,
    statistics,
    windows,
)

__all__ = ["Face", "Functions", "shown"]

#: Modules whose functions are those of ``mx.np``; those of its sub-modules are attributes of the same name.
SUBJECTS: tuple[ModuleType, ...] = (
    fallback,  # first: what another module has, too, is an operator there
    elementwise,
    creation,
    shaping,
    joining,
    picking,
    reduction,
    statistics,
    ordering,
    products,
    windows,
)
#: Name of a sub-module -> the modules of its functions.
BELOW: dict[str, tuple[ModuleType, ...]] = {
    "linalg": (linalg,),
    "random": (random,),
    "npx": (extension, extension_shaping),
    "npx_random": (extension_random,),
}


class Functions:
    """The functions of some modules, bound to a face.

    Parameters
    ----------
    F : Face
    modules : sequence of module
    """

    def __init__(self, F: Face, modules: Sequence[ModuleType]) -> None:
        self._modules = {name: m for m in modules for name in m.__all__}
        self._face = F
        self.names = frozenset(self._modules)

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__.get("_modules", {}).get(name)
        if module is None:
            raise AttributeError(f"there is no function {name!r}")
        found = getattr(module, name)
        found = self.__dict__[name] = MethodType(found, self._face) if callable(found) else found
        return found

    def __dir__(self) -> list[str]:
        return sorted(self.names)


def shown(
    where: dict[str, Any], functions: Functions | Face, keep: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module that shows functions beside what it defines.

    Parameters
    ----------
    where : dict
        The module's globals.
    functions : Functions or Face
    keep : bool
        Enter a function there once it was asked for.
    """
    names = functions.names
    others = reexports(where["__name__"])

    def getattr_(name: str) -> Any:
        if name not in names:
            return others(name)
        found = getattr(functions, name)
        if keep:
            where[name] = found
        return found

    return getattr_, lambda: sorted({*where.get("__all__", ()), *names})


class Face:
    """What functions are written over: operators that give arrays, or nodes of a graph.

    Attributes
    ----------
    value : type
        What operators take and give: the class of arrays, or of symbols.
    eager : bool
        Whether operators compute now, so that shapes and values are there.
    place : str
        What the only object of the class is called in its module, where pickles look for it.
    """

    value: type
    eager = False
    place: str
    _below = ""

    def __init__(self) -> None:
        self._whole = self
        self._functions = Functions(self, SUBJECTS)
        #: Names of the functions of ``mx.np``.
        self.names = self._functions.names
        for name, modules in BELOW.items():
            # Functions below are bound to the same by an object of its own, as bound functions are pickled by what they
            # are bound to and their name, and the name alone may be that of another function.
            part: Any = object.__new__(type(type(self).__name__, (type(self),), {"_below": name}))
            part.__dict__ = self.__dict__
            setattr(self, name, Functions(part, modules))

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (getattr, (self._whole, self._below)) if self._below else self.place

    def __deepcopy__(self, memo: Any) -> Face:
        return self

    def call(self, op: str, *inputs: Any, out: Any = None, ctx: Any = None, **params: Any) -> Any:
        """What an operator gives for inputs, all of which must be values of this face.

        Parameters
        ----------
        op : str
            Name of the operator.
        *inputs : value
        out : value, optional
            Where arrays write their result, which is returned.
        ctx : Context, optional
            Where an operator without inputs runs.
        **params
            Parameters of the operator, None where its default holds.
        """
        raise NotImplementedError  # each face has its own

    def run(self, op: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """What an operator gives for arguments as its own function takes them, inputs first.

        Parameters
        ----------
        op : str
            Name of the operator.
        args, kwargs
            Its arguments, and ``out`` or ``name``.
        """
        raise NotImplementedError  # each face has its own

    def from_host(self, host: Any, ctx: Any = None) -> Any:
        """An array of NumPy's on a device, copied."""
        raise NotImplementedError  # each face has its own

    def placed(self, x: Any, ctx: Any = None) -> Any:
        """A value on the context that was asked for, or the current one."""
        raise NotImplementedError  # each face has its own

    def is_value(self, x: Any) -> bool:
        """Whether `x` is an array of this face, or a symbol of it."""
        return isinstance(x, self.value)

    def __getattr__(self, name: str) -> Any:
        if name == "_functions":
            raise AttributeError(name)  # while it is made
        if self._below and name not in self.names:  # `copy.copy` asks what a function is bound to for its name
            return getattr(getattr(self._whole, self._below), name)
        found = self.__dict__[name] = getattr(self._functions, name)
        return found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self._functions)]
