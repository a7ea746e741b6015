"""The documentation names what there is: variables of the environment, arguments, other names."""

import importlib
import inspect

import pytest

import mxcore
import mxcore.plugin
from mxcore.plugin import Op, op

from . import environment, public
from .files import ROOT

SOURCES = [p for folder in ("core", "plugins", "benchmarks") for p in sorted((ROOT / folder).rglob("*.py"))]


def exists(name):
    """Whether ``mx.a.b`` is a module or an attribute, or below a module that is planned."""
    first, *parts = name.split(".")
    assert first in ("mx", "mxcore")
    target = mxcore._LAZY.get(parts[0], "").partition(":")[0]
    if target and importlib.util.find_spec(target) is None:
        return True
    found = mxcore
    for i, part in enumerate(parts):
        before, found = found, getattr(found, part, None)
        if not inspect.ismodule(found) and inspect.ismodule(before):
            try:
                module = importlib.import_module(".".join(["mxcore", *parts[: i + 1]]))
                found = module if found is None or i + 1 < len(parts) else found
            except ImportError:
                pass
        if found is None and not (inspect.ismodule(before) and part in vars(before)):
            return False
    return True


def test_the_page_lists_the_variables_that_are_read():
    read = set().union(*(environment.variables(p.read_text(encoding="utf-8")) for p in SOURCES))
    assert len(read) > 20
    bad = environment.check_environment(read, (ROOT / "docs" / "environment.md").read_text(encoding="utf-8"))
    assert not bad, "\n".join(bad)


def test_variables_are_found_and_compared():
    source = (
        '"""MXCORE_NOT"""\nimport os\nX = "MXCORE_A"\n'
        'os.environ.get("B_C")\nos.environ["D"]\nif "E" in os.environ: f("G")\nos.getenv("F", "H")\n'
    )
    assert environment.variables(source) == {"MXCORE_A", "B_C", "D", "E", "F"}
    page = "| `A` | x |\n| `B_C` |  |\n| `B_C` |  |\n"
    assert environment.check_environment({"A", "D"}, page) == [
        "D is read, but the page does not list it",
        "B_C is on the page, but nothing reads it",
        "B_C is on the page twice",
    ]


@pytest.mark.parametrize("name", sorted({*mxcore.plugin.__all__} - {"API_VERSION", "hookimpl", "Op"}))
def test_what_authors_use_explains_its_arguments(name):
    thing = getattr(mxcore.plugin, name)
    kinds = inspect.getmro(thing) if inspect.isclass(thing) else [thing]
    doc = (
        "\n\n".join(
            inspect.cleandoc(c.__dict__.get("__doc__") or "") for c in kinds if c.__module__.startswith("mxcore")
        )
        if inspect.isclass(thing)
        else thing.__doc__
    )
    names = public.arguments(thing)
    if inspect.isclass(thing):  # **kw goes to the base, whose docstring counts, too
        names = [n for n in names if n not in ("kw", "args", "kwargs")]
    assert not public.check_arguments(name, doc, names)


def test_the_docstring_of_op_tells_of_every_option():
    assert not public.check_arguments("op", op.__doc__, [n for n in public.arguments(Op) if n != "body"])


def test_arguments_without_a_word_are_found():
    def f(a, b, *c, d=1):
        """Add `a`.

        Parameters
        ----------
        b, *c : int
            Not `de`.
        """

    assert public.check_arguments("f", f.__doc__, public.arguments(f)) == ["f: its docstring does not tell of d"]


def test_docstrings_point_to_names_that_exist():
    bad = []
    for path in SOURCES:
        bad += public.check_pointers(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)), exists)
    assert not bad, "\n".join(bad)


def test_pointers_to_nothing_are_found():
    source = (
        '"""See `mx.nd.relu` and ``mx.metric.PairMetric``.\n\nBehaviour matched: MXNet 1.9.1 '
        '``mx.nd.gone``."""\ndef f():\n    """:func:`mxcore.nothing`"""\n'
    )
    assert public.check_pointers(source, "m", exists) == [
        "m:1 points to mx.metric.PairMetric, which does not exist",
        "m:5 points to mxcore.nothing, which does not exist",
    ]
