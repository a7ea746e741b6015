"""The plugin of pytest: options without `-p`, and nothing at all for who merely has mxcore installed."""

import os
import subprocess
import sys

import pytest

ENTRY = "[pytest11]\nmxcore.testing.plugin = mxcore.testing.plugin\n"
THEIRS = """
def pytest_addoption(parser):
    parser.addoption("--device", choices=["tpu", "none"], default="none")
    parser.addoption("--benchmark", action="store_true")
    parser.addoption("--ops", type=int)
"""
MINE = """
import sys

def test_theirs(pytestconfig):
    assert (pytestconfig.getoption("--device"), pytestconfig.option.benchmark, pytestconfig.option.ops) == {wanted}

def test_nothing_is_loaded():
    found = {{m for m in sys.modules if m.partition(".")[0] in ("mxcore", "mxcore_cpu", "numpy", "numba")}}
    testing = {{"mxcore.testing", "mxcore.testing.options", "mxcore.testing.plugin"}}
    assert found == {{"mxcore", "mxcore._importing", "mxcore._forks", *testing}}
"""


@pytest.fixture
def run(tmp_path):
    """pytest in a child, in an empty folder, with the entry point of this tree."""
    info = tmp_path / "site" / "mxcore_entry-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mxcore_entry\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY)
    here = tmp_path / "here"
    here.mkdir()

    def call(*args, **files):
        for name, text in files.items():
            path = here / (name.replace("__", "/") + ".py")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args],
            cwd=here,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            timeout=300,
        )

    return call


def test_options_are_known_without_further_ado(run):
    done = run("--pyargs", "mxcore.testing.conformance", "--ops", "relu", "--device=cpu(1)")
    assert done.returncode == 0 and " passed" in done.stdout and "no tests" not in done.stdout, (
        done.stdout + done.stderr
    )
    again = run(
        "--pyargs", "mxcore.testing.conformance", "-p", "mxcore.testing.plugin", "--ops=relu", "--device=cpu(1)"
    )
    assert (
        again.returncode == 0
        and again.stdout.splitlines()[-1].split(" in ")[0] == done.stdout.splitlines()[-1].split(" in ")[0]
    )


def test_options_are_told_by_help(run):
    out = run("--help").stdout
    assert all(
        f"  {name}" in out
        for name in ("--device=DEVICE", "--ops=PATTERNS", "--xfails-file=FILE", "--benchmark ", "--quick")
    )


@pytest.mark.parametrize(
    "args, wanted",
    [((), ("none", False, None)), (("--device=tpu", "--benchmark", "--ops=3"), ("tpu", True, 3))],
    ids=["none given", "theirs given"],
)
def test_options_of_others_are_theirs(run, args, wanted):
    done = run(*args, conftest=THEIRS, test_mine=MINE.format(wanted=wanted))
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    assert run("--help").returncode == 0


def test_a_conftest_that_is_found_late_may_declare_them(run):
    done = run(deep__deeper__conftest="", deep__conftest="", test_mine="def test(): pass\n")
    assert done.returncode == 0
    done = run(conftest="", sub__conftest=THEIRS, sub__test_sub="def test(): pass\n")
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


def test_options_that_nobody_knows_are_still_refused(run):
    done = run("--opz=3", test_mine="def test(): pass\n")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "--opz=3" in done.stderr


def test_benchmarks_of_operators_are_skipped_as_tests(run):
    done = run("--pyargs", "mxcore.testing.benchmark", "-rs")
    assert done.returncode == 0 and "pytest --benchmark runs it" in done.stdout, done.stdout + done.stderr
    done = run("--quick")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "pytest --benchmark --quick" in done.stderr
    done = run("--benchmark", "-p", "no:benchmark")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "pip install pytest-benchmark" in done.stderr


BENCHMARK = """
def test_measured(compare):
    compare("sum", lambda: sum(range(9)), lambda: sum(range(9)), rounds=2, against="itself")
"""
OWN = """
import pytest

@pytest.fixture
def row():
    return 7

def test_of_their_own(row):
    assert row == 7
"""


def test_a_folder_of_benchmarks_is_skipped_as_tests(run):
    files = {"benchmarks__test_mine": BENCHMARK, "benchmarks__test_own": OWN}
    done = run("-rs", **files)
    assert done.returncode == 0 and "1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "a benchmark: pytest --benchmark runs it" in done.stdout
    done = run("--benchmark")
    assert done.returncode == 0 and "against" in done.stdout and "itself" in done.stdout, done.stdout + done.stderr
