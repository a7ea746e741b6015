"""``mxcore run``: run a script written for MXNet as it is."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import types

from .._core.errors import MXNetError, error
from ..compat import install_as_mxnet, legacy_names
from ..urls import is_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "mxcore run [--strict] (SCRIPT | -m MODULE) [ARGUMENT ...]"
    parser.description = (
        "Run a script as `python` would, with `import mxnet` answered by mxcore, and with names that newer "
        "Python and NumPy removed put back (np.float, distutils, collections.Mapping, …)."
    )
    parser.add_argument("--strict", action="store_true", help="put no removed name back")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT names a module, not a file")
    parser.add_argument(
        "script", help="a Python file, - for standard input, or a folder or zip file with a __main__.py"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")


def _share_with_children(legacy: bool) -> None:
    """Let processes that the script starts find ``mxnet`` too: spawned workers and further scripts."""
    doorway = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compat", "path")
    sys.path.insert(1, doorway)  # spawned workers take over sys.path, other children the environment
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([doorway, *([others] if others else [])])
    os.environ["MXCORE_LEGACY_NAMES"] = "1" if legacy else "0"


def _run_stream(name: str) -> None:
    """Run what comes from standard input or a pipe, which can be read once only; `runpy` opens a file twice."""
    if name == "-":
        source, name = sys.stdin.buffer.read(), "<stdin>"
    else:
        with open(name, "rb") as file:
            source = file.read()
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(source, name, "exec"), vars(module))


def main(args: argparse.Namespace) -> int:
    """Run the script or module; what it raises, `SystemExit` included, goes through as under ``python``."""
    standard_input = args.script == "-" and not args.module
    if not args.module and is_url(args.script):
        raise error(ValueError, f"{args.script!r} is a URL; a script on this machine is needed here")
    if not (args.module or standard_input or os.path.exists(args.script)):
        raise error(FileNotFoundError, f"there is no file {args.script!r}; a module is run with -m")
    mains = [os.path.join(args.script, name) for name in ("__main__.py", "__main__.pyc")]
    if not args.module and os.path.isdir(args.script) and not any(map(os.path.exists, mains)):
        raise error(IsADirectoryError, f"{args.script!r} is a folder without a __main__.py; a script is needed")
    install_as_mxnet()
    if not args.strict:
        legacy_names()
    sys.argv[:] = [args.script, *args.arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if args.module or standard_input else os.path.dirname(os.path.realpath(args.script))
    _share_with_children(not args.strict)
    try:
        if args.module:
            runpy.run_module(args.script, run_name="__main__", alter_sys=True)
        elif not standard_input and (os.path.isfile(args.script) or os.path.isdir(args.script)):
            runpy.run_path(args.script, run_name="__main__")
        else:
            _run_stream(args.script)
    except MXNetError as e:
        # `mxcore` prints its own errors in one line; a script's error comes with its traceback.
        sys.excepthook(type(e), e, e.__traceback__)
        return 1
    return 0
