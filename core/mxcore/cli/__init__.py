"""The command ``mxcore``: a table of sub-commands, each imported when it is called.

A sub-command is an object with ``add_arguments(parser)`` and ``main(args)``, which returns an exit status
(None means 0); the stock ones are modules. Plugins add theirs through the hook ``mxcore_cli``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from .._commands import COMMANDS

# Not from `base`, which needs NumPy: scripts should not wait for it twice.
from .._core.errors import MXNetError, caught, error, in_a_line


def _plugin_help(name: str) -> str:
    """The line of a plugin's command; one that cannot be imported must not hide the others."""
    from .. import kinds

    try:
        return str(kinds.lookup("cli", name).help)
    except BaseException as e:  # of whatever kind: it is another's code
        return f"cannot be loaded: {in_a_line(caught(e))}"


def _usage() -> str:
    from .. import kinds

    rows = {name: text for name, (text, _) in COMMANDS.items()}
    rows |= {name: _plugin_help(name) for name in kinds.names("cli") if name not in rows}
    width = max(map(len, rows))
    lines = [f"  {name:{width}}  {text}" for name, text in rows.items()]
    return "\n".join(["usage: mxcore [--version] COMMAND [ARGUMENT ...]", "", *lines, "", _HINT])


_HINT = "`mxcore COMMAND --help` says more."


def _find(name: str) -> tuple[str, Any] | None:
    """Help line and object of a sub-command, or None."""
    text, module = COMMANDS.get(name, ("", ""))
    # Stock commands work whatever plugins do, and must not load them: scripts may yet set what decides about plugins.
    if module and "MXCORE_PREFER" not in os.environ:
        return text, importlib.import_module(module)
    from .. import kinds
    from .._core import tables

    kinds.names("cli")
    if module and tables.by_kind["cli"].owners.get(name, "stock") == "stock":
        return text, importlib.import_module(module)
    if name in kinds.names("cli"):
        command = kinds.lookup("cli", name)
        if lacking := [a for a in ("help", "add_arguments", "main") if not hasattr(command, a)]:
            raise error(
                TypeError,
                f"it is {command!r} of plugin '{tables.by_kind['cli'].owners[name]}', which has no "
                f"{' and no '.join(lacking)}",
            )
        return str(command.help), command
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``mxcore``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; default: those of the process.

    Returns
    -------
    int
        The exit status: 0 when all went well, 1 after an error, 2 for a command line that makes no sense.

    Examples
    --------
    >>> from mxcore.cli import main
    >>> main(["--version"])
    mxcore 0.1.0
    0
    """
    args = list(sys.argv[1:] if argv is None else argv)
    name = args[0] if args else "--help"
    # A script that is run has Python's own output.
    if argv is None and name != "run" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names in files and of files may be anything
    try:
        status = _run(name, args[1:]) if args else _run(name, []) or 2
        if sys.stdout is not None and not sys.stdout.closed:  # a script may have closed it
            sys.stdout.flush()
        return status
    except MXNetError as e:
        print(f"mxcore {name}: {e}", file=sys.stderr)
        return 1
    except OSError as e:
        broken = isinstance(e, BrokenPipeError)  # as of `mxcore summary … | head`
        if argv is not None or sys.stdout is None or e.filename is not None or name == "run" and not broken:
            raise
        # Standard output cannot be written: without this the interpreter fails at its end as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if broken:
            return 141  # as a program that the signal ends
        print(f"mxcore {name}: {e.strerror or e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"mxcore {name}: interrupted", file=sys.stderr)
        return 130


def _run(name: str, args: Sequence[str]) -> int:
    """Do what a command line asks for."""
    if name in ("-h", "--help", "help"):
        print(_usage())
    elif name == "--version":
        from .. import __version__

        print(f"mxcore {__version__}")
    else:
        return _call(name, args)
    return 0


def _call(name: str, args: Sequence[str]) -> int:
    """Call a sub-command."""
    found = _find(name)
    if found is None:
        from .._core.errors import suggest
        from .._core.tables import why
        from ..kinds import names

        near = suggest(name, [*COMMANDS, *names("cli")])
        print(f"mxcore: there is no command {name!r}{near}{why()}\n\n{_usage()}", file=sys.stderr)
        return 2
    text, command = found
    parser = argparse.ArgumentParser(prog=f"mxcore {name}", description=text[:1].upper() + text[1:] + ".")
    command.add_arguments(parser)
    return int(command.main(parser.parse_args(args)) or 0)
