"""Write which names the modules of MXNet 1.9.1 show, and where each comes from: `core/mxcore/compat/namespace.json`.

Run in MXNet's own environment: ``python tests/golden/make_namespace.py``. A module's entry holds, as names with blanks
between them, ``here`` (what it defines), ``from`` (what others define: module -> names, ``shown=defined`` where they
differ), ``modules`` (likewise), and ``all`` (its ``__all__``) where there is one.
"""

import importlib
import json
import pathlib
import sys
import types
import warnings

import mxnet

TARGET = pathlib.Path(__file__).resolve().parents[2] / "core" / "mxcore" / "compat" / "namespace.json"
#: Where values that do not say where they come from are looked for first.
OWNERS = ["mxnet.base", "mxnet.ndarray.ndarray", "mxnet.symbol.symbol", "numpy"]


def modules():
    """Every module that can be imported without further packages."""
    root = pathlib.Path(mxnet.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if path.name == "setup.py" or not (path.parent / "__init__.py").exists():  # scripts
            continue
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        try:
            yield importlib.import_module(name)
        except Exception as e:
            print("left out:", name, type(e).__name__, e)


def origin(module, name, value):
    """(module, name there) of a value, the module itself where it is defined or nobody knows."""
    here = module.__name__, name
    source, defined = (
        getattr(value, "__module__", None),
        getattr(value, "__qualname__", None) or getattr(value, "__name__", None),
    )
    if source in ("ndarray", "symbol"):  # functions of operators
        return here if here[0].startswith("mxnet." + source) else ("mxnet." + source, defined)
    if source and defined:
        defined = name if "<" in defined else defined
        if source in sys.modules and getattr(sys.modules[source], defined, None) is value:
            return source, defined
        return here
    for owner in OWNERS[: OWNERS.index(here[0])] if here[0] in OWNERS else OWNERS:
        if value is not None and not isinstance(value, bool) and vars(sys.modules[owner]).get(name) is value:
            return owner, name
    return here


def entry(module):
    """What a module shows."""
    here, sources, inner = [], {}, []
    for name, value in sorted(vars(module).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, types.ModuleType):
            inner.append(name if value.__name__ == name else f"{name}={value.__name__}")
            continue
        source, defined = origin(module, name, value)
        if source == module.__name__:
            here.append(name)
        else:
            sources.setdefault(source, []).append(name if defined == name else f"{name}={defined}")
    made = {
        "here": " ".join(here),
        "from": {s: " ".join(n) for s, n in sorted(sources.items())},
        "modules": " ".join(inner),
    }
    if hasattr(module, "__all__"):
        made["all"] = " ".join(sorted(set(module.__all__)))
    return {k: v for k, v in made.items() if v or k == "all"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # NumPy's on what it has removed
    found = {m.__name__: m for m in modules()}
    lines = [f"{json.dumps(name)}: {json.dumps(entry(found[name]), sort_keys=True)}" for name in sorted(found)]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
