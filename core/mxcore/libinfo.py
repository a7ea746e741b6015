"""Where the library is, as ``mxnet.libinfo``."""

from __future__ import annotations

import os

from ._core.errors import error

__all__ = ["__version__", "find_conf_path", "find_include_path", "find_lib_path"]


#: The version whose interface this is.
__version__ = "1.9.1"


def find_lib_path(prefix: str = "libmxnet") -> list[str]:
    """The files of MXNet's compiled library: there is none, the library is Python.

    Returns
    -------
    list of str
        The folder of the package, for scripts that look where the library lies.
    """
    return [os.path.dirname(os.path.abspath(__file__))]


def find_include_path() -> str:
    """The folder of MXNet's C++ headers.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) There are none: nothing is compiled.
    """
    raise error(
        FileNotFoundError,
        "find_include_path: mxcore is Python and has no C++ headers; "
        "operators are written as Python plugins (docs/plugins.md)",
    )


def find_conf_path(prefix: str = "tvmop") -> str:
    """The configuration of operators compiled by TVM.

    Raises
    ------
    MXNetError
        (also FileNotFoundError) There is none: nothing is compiled.
    """
    raise error(
        FileNotFoundError,
        f"find_conf_path: mxcore has no {prefix} operators: it compiles its own kernels when they are first used",
    )
