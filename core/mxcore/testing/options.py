"""The options that mxcore adds to pytest. Nothing of mxcore is imported here: whoever has it installed runs this."""

from __future__ import annotations

from typing import Any

__all__ = ["OPTIONS", "add_options", "given"]

#: Option -> how it is declared.
OPTIONS: dict[str, dict[str, Any]] = {
    "--device": {
        "metavar": "DEVICE",
        "help": "where the kit runs, e.g. cpu or gpu(1); with --benchmark: all devices that are present unless told",
    },
    "--ops": {"metavar": "PATTERNS", "help": "patterns of operator names, separated by blanks or commas"},
    "--xfails-file": {"metavar": "FILE", "help": "expected failures of the kit, a line each: operator check reason"},
    "--benchmark": {
        "action": "store_true",
        "help": "run benchmarks/ if there is such a folder, else operators and kernels on their samples, on "
        "every device that is present, and print one table; `-m 'not slow'` leaves the long ones out",
    },
    "--quick": {
        "action": "store_true",
        "help": "with --benchmark: fewer rounds of each and none of the long ones, two minutes at most on two cores",
    },
}


def destination(name: str) -> str:
    """Where pytest keeps the value of an option."""
    return "mxcore_" + name.lstrip("-").replace("-", "_")


def add_options(parser: Any, names: Any = tuple(OPTIONS)) -> None:
    """Make options known, as from ``pytest_addoption`` of a ``conftest.py``.

    Parameters
    ----------
    parser : pytest.Parser
    names : iterable of str
        Which; all unless told.
    """
    group = parser.getgroup("mxcore", "mxcore: conformance kit and benchmarks")
    for name in names:
        group.addoption(name, dest=destination(name), **OPTIONS[name])


def given(config: Any, name: str, default: Any = None) -> Any:
    """The value of an option of ours; a default where it was not given, or is another's.

    Parameters
    ----------
    config : pytest.Config
    name : str
    default : object
    """
    return config.getoption(destination(name), None) or default
