"""The house rules, applied to this tree."""

import importlib
import re
import runpy
import subprocess
import sys

import pytest

from . import asserts, budgets, docs, faces, files, imports, names
from .files import ROOT
from .test_examples import python_blocks

CORE = ROOT / "core"
PLUGINS = sorted(p for p in (ROOT / "plugins").glob("*/mxcore_*") if p.is_dir())
TOYS = [p for p in sorted((ROOT / "tests" / "toy_plugins").rglob("*.py")) if "tests" not in p.parts[-2:]]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def read(path):
    return path.read_text(encoding="utf-8")


def modules(*packages):
    """(import name, file) of the modules of packages that lie directly in a source root."""
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            yield imports.module_name(path, package.parent), path


def expect_none(complaints):
    """Fail with all complaints in full, one a line."""
    assert not complaints, "\n" + "\n".join(complaints)


def test_imports_point_downwards():
    bad = []
    for name, path in modules(CORE / "mxcore"):
        bad += imports.check_core(read(path), name, path.name == "__init__.py")
    expect_none(bad)


def test_plugins_use_the_public_door():
    page = read(ROOT / "docs" / "plugins.md")
    bad, listed = [], faces.listed(page)
    assert "mxcore.plugin" in listed
    for name, path in [*modules(*PLUGINS), *((p.stem, p) for p in TOYS)]:
        bad += faces.check_plugin(read(path), name, path.name == "__init__.py", listed)
    for block in python_blocks(page):
        bad += faces.check_plugin(block, "plugins.md", listed=listed)
    expect_none(bad)


def test_modules_take_no_underscored_names_from_one_another():
    found = {n: (read(p), p.name == "__init__.py") for n, p in modules(CORE / "mxcore", *PLUGINS)}
    bad, used = [], set()
    for name, (source, is_package) in found.items():
        uses = [*imports.private_uses(source, name, found, is_package)]
        bad += imports.check_private(name, uses)
        used |= {t.rpartition(".")[2] for _, t in uses}
    expect_none(bad + [f"nobody takes {name}" for name in sorted(imports.SHARED_PRIVATE.keys() - used)])


def test_few_modules_import_one_another():
    found = {n: (read(p), p.name == "__init__.py") for n, p in modules(CORE / "mxcore", *PLUGINS)}
    expect_none(imports.check_circles(found))


def test_line_budgets():
    core = {p.name: budgets.code_lines(read(p)) for p in (CORE / "mxcore" / "_core").rglob("*.py")}
    face = len(read(CORE / "mxcore" / "__init__.py").splitlines())
    assert core
    expect_none(budgets.check_budgets(core, face))


def _registered():
    """All names of operators and devices."""
    from mxcore import kinds
    from mxcore._core import tables

    kinds.names("iterator")  # loads the plugins
    return {*tables.ops.items, *tables.devices.items}


def test_the_core_knows_no_operator_and_no_device_by_name():
    known, bad = _registered(), []
    for path in sorted((CORE / "mxcore" / "_core").glob("*.py")):
        bad += names.check_core_names(read(path), path.stem, known)
    expect_none(bad)


def test_passes_know_no_operator_by_name():
    from mxcore._core.op import FACETS

    bad, known = [], _registered() - {*FACETS}
    for path in [*sorted((CORE / "mxcore" / "executor").rglob("*.py")), CORE / "mxcore" / "symbol" / "outputs.py"]:
        bad += names.check_passes(read(path), str(path.relative_to(CORE / "mxcore")), known)
    expect_none(bad)


def test_hooks_are_documented_and_tested():
    spec = read(CORE / "mxcore" / "_core" / "hookspecs.py")
    elsewhere = "\n".join(read(p) for p in TESTS)
    assert len(docs.hooks(spec)) >= 14
    expect_none(docs.check_hooks(spec, elsewhere))


def test_operators_are_documented_and_sampled():
    from mxcore import kinds
    from mxcore._core import tables

    kinds.names("iterator")  # loads the plugins
    bad = []
    for op in {id(op): op for op in tables.ops.items.values()}.values():
        bad += docs.check_op(op.name, op.doc, [*op.input_names, *op.params], len(op.samples))
    assert tables.ops.items
    expect_none(sorted(bad))


def test_tables_of_samples_hold_the_operators_of_their_family():
    from mxcore import builtin, ops
    from mxcore.declarations import declarations

    tables = {family: (family, ops.declared(family)) for family in ops.FAMILIES}
    tables["builtin"] = "common", declarations(builtin)
    bad = []
    for family, (folder, declared) in tables.items():
        table = importlib.import_module(f"mxcore.ops.{folder}.samples").SAMPLES
        bad += [f"{family}: there is no operator {name}" for name in table.keys() - {op.name for op in declared}]
    expect_none(sorted(bad))


def test_operators_use_no_gradients_by_name():
    bad = []
    for name, path in modules(CORE / "mxcore"):
        for line, origin in imports.imported(read(path), name, path.name == "__init__.py"):
            package, _, last = origin.partition(".gradients.")
            if last and package.startswith("mxcore.ops.") and package != "mxcore.ops.common":
                bad.append(f"{name}, line {line}: {package}.gradients stands on operators, not below them")
    expect_none(bad)


def test_operators_are_declared_without_their_samples():
    check = (
        "import sys; from mxcore import nd; nd.ones(2); print([m for m in sys.modules if 'samples' in m.split('.')])"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout.strip() == "[]"


def test_public_names_have_docstrings():
    public = {
        name: read(path)
        for name, path in modules(CORE / "mxcore", *PLUGINS)
        if not any(part.startswith("_") for part in name.split("."))
    }
    assert public
    expect_none(docs.check_docstrings(public))


def test_every_test_can_fail():
    bad = []
    for path in TESTS:
        if path.name.startswith("test_"):
            bad += asserts.check_tests(read(path), str(path.relative_to(ROOT)))
    expect_none(bad)


def test_files_speak_of_the_project_only():
    bad = []
    for path in files.tracked():
        try:
            text = read(path)
        except UnicodeDecodeError:
            continue  # not a text
        bad += files.check_words(text, str(path.relative_to(ROOT)))
    expect_none(bad)


def test_versions_agree():
    import mxcore

    def found(pattern, path):
        return re.search(pattern, read(ROOT / path), re.M).group(1)

    versions = {
        "pyproject.toml": found(r'^version = "(.+)"', "pyproject.toml"),
        "mxcore.__version__": mxcore.__version__,
        "CHANGELOG.md": found(r"^## (?:Unreleased: )?(\d[\w.]*)", "CHANGELOG.md"),
    }
    expect_none(files.check_versions(versions))


def test_warnings_are_errors(pytestconfig):
    assert pytestconfig.getini("filterwarnings")[0] == "error"


def test_readme_has_exactly_the_two_commands():
    setup_commands = runpy.run_path(str(ROOT / "tools" / "readme_commands.py"))["setup_commands"]
    assert setup_commands(read(ROOT / "README.md")) == [
        "pip install . && mxcore train",
        "pip install -e '.[test]' && pytest -n 2 --dist worksteal",
    ]
    with pytest.raises(ValueError, match="Set-up"):
        setup_commands("# x\n")


def test_ci_takes_its_commands_from_the_readme():
    ci = read(ROOT / ".ci" / "run")
    assert "tools/readme_commands.py" in ci and "mxcore train" not in ci


@pytest.mark.parametrize("heavy", ["numba", "cv2", "ray", "cupy", "matplotlib", "fsspec", "tqdm"])
def test_import_stays_light(heavy, loaded_by_import):
    assert "mxcore" in loaded_by_import and heavy not in loaded_by_import


@pytest.fixture(scope="module")
def loaded_by_import():
    """Names of the modules that `import mxcore` loads in a fresh interpreter."""
    python = [sys.executable, "-W", "error", "-c", "import sys, mxcore; print(*sys.modules)"]
    return set(subprocess.run(python, capture_output=True, text=True, check=True).stdout.split())
