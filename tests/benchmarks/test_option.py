"""The option ``pytest --benchmark`` and its table."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from mxcore.testing.measure import pytest_sessionstart
from mxcore.testing.table import Row, lines, seconds

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "tests" / "toy_plugins" / "toy_device" / "toy_device.py"
#: A plugin of pytest: a module that benchmarks import is not there, and one benchmark fails before it has measured.
BREAKING = """
import sys
import pytest
sys.modules["benchmarks.recurrent"] = None

@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    if pyfuncitem.originalname == "test_add":
        raise RuntimeError("broken on purpose")
    return (yield)
"""


def command(*args):
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, args)]


def run(*args, cwd=ROOT, site=None, **env):
    """pytest in a child, with a folder of installed modules."""
    path = {"PYTHONPATH": str(site)} if site else {}
    return subprocess.run(
        command(*args), cwd=cwd, env=os.environ | path | env, capture_output=True, text=True, timeout=300
    )


def cells(text):
    """{(benchmark, backend): further cells} of the table in an output."""
    _, _, table = text.partition(" benchmarks =")
    _, _, table = table.partition("---\n")
    rows = [[c.strip() for c in line.split("  ") if c.strip()] for line in table.splitlines()]
    return {tuple(r[:2]): r[2:] for r in rows if len(r) > 2}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder where the toy device is installed, and a module of the name of MXNet."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "toy_device-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy_device\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mxcore]\ntoy_device = toy_device\n")
    (folder / "toy_device.py").write_text(TOY.read_text())
    (folder / "mxnet.py").write_text("import sys\nimport mxcore\nsys.modules[__name__] = mxcore\n")
    (folder / "breaking.py").write_text(BREAKING)
    return folder


def test_every_benchmark_is_collected_on_every_backend(site):
    done = run("--benchmark", "--collect-only", "-q", site=site)
    assert done.returncode == 0, done.stdout
    found = {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert found == {f"benchmarks/{p.name}" for p in (ROOT / "benchmarks").glob("test_*.py")}
    for device in ("cpu(0)", "toy_device(0)"):
        assert (
            f"benchmarks/test_eager.py::test_add[{device}]" in done.stdout
            and f"benchmarks/test_train.py::test_train[{device}]" in done.stdout
        )
    assert "test_kernel[toy" not in done.stdout


@pytest.mark.parametrize(
    "args, some, none",
    [
        (["--benchmark", "--quick", "-qm", "slow"], "test_train.py", "test_add"),
        (["--benchmark", "--quick", ROOT], "test_add", "test_train.py"),
        (["--benchmark", "-m", "not slow", ROOT / "benchmarks/test_eager.py"], "test_add", "test_memory"),
        (["benchmarks", "tests/benchmarks"], "test_option", "test_add"),
    ],
    ids=lambda a: " ".join(Path(x).name if isinstance(x, Path) else x for x in a) if isinstance(a, list) else "",
)
def test_what_is_collected(args, some, none):
    done = run(*args, "--collect-only", "-q")
    assert done.returncode == 0 and some in done.stdout and none not in done.stdout, done.stdout
    assert "--benchmark" not in args or "tests/" not in done.stdout


@pytest.mark.slow
def test_every_backend_has_its_rows_beside_mxnet(site, tmp_path):
    """Run from elsewhere, with pytest-benchmark's own options, and with ourselves in the place of MXNet."""
    file, names = tmp_path / "b.json", "test_add or mlp or (test_operator and sum)"
    own = [f"--benchmark-json={file}", "--benchmark-save=run", f"--benchmark-storage=file://{tmp_path}/saved"]
    done = run(
        "--benchmark", "--quick", ROOT, "-k", names, *own, cwd=tmp_path, site=site, MXCORE_ORACLE_PYTHON=sys.executable
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = cells(done.stdout)
    for device in ("cpu(0)", "toy_device(0)"):
        assert table["a + b, 4 x 4", device][-2] == "at most 4 x"
        assert table["mlp step, hybridised", device][1].startswith("MXNet") and table["mlp step, hybridised", device][
            2
        ].endswith((" x", "er"))
        assert table["sum, sample", device][1].startswith("reference body")
    saved = {b["name"]: b for b in json.loads(file.read_text())["benchmarks"]}
    assert {f"test_add[{d}(0)]" for d in ("cpu", "toy_device")} < set(saved) and len(saved) == len(table)
    assert all(b["extra_info"]["ratio"] > 0 for b in saved.values())
    assert len([*(tmp_path / "saved").rglob("*_run.json")]) == 1


def test_measurements_switched_off():
    done = run("--benchmark", "--quick", "-k", "test_add", "--benchmark-disable")
    assert done.returncode == 0 and ("a + b, 4 x 4", "cpu(0)") in cells(done.stdout), done.stdout


def test_what_fails_takes_nothing_with_it(site):
    done = run(
        "--benchmark",
        "--quick",
        "-p",
        "breaking",
        "-k",
        "test_add or test_record or test_rnn",
        site=site,
        MXCORE_DISABLE_PLUGINS="toy_device",
    )
    assert done.returncode == 1 and "broken on purpose" in done.stdout and "ERROR benchmarks/test_rnn.py" in done.stdout
    assert done.stdout.count("FAILED ") == 1, done.stdout
    assert {("record + backward of (x*2+b).sum()", "cpu(0)")} <= set(cells(done.stdout))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_prints_the_table_so_far(number):
    args = command("--benchmark", "-v", "-k", "test_add or test_memory_of_many_steps")
    with subprocess.Popen(
        args, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    ) as process:
        seen = ""
        while "many_steps" not in seen:
            seen += process.stdout.read(1)
            assert process.poll() is None, seen
        process.send_signal(number)
        rest = process.communicate(timeout=100)[0]
    assert process.returncode == pytest.ExitCode.INTERRUPTED and list(cells(rest)) == [("a + b, 4 x 4", "cpu(0)")], rest


def test_a_signal_where_code_has_no_line_ends_a_run_a_moment_later():
    """Where pytest rewrites a module there are such places, of which it cannot tell."""
    before, undo = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)], []
    session = types.SimpleNamespace(shouldstop=False, config=types.SimpleNamespace(add_cleanup=undo.append))
    try:
        pytest_sessionstart(session)
        signal.getsignal(signal.SIGTERM)(signal.SIGTERM, types.SimpleNamespace(f_lineno=None))
        assert session.shouldstop == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)
    finally:
        for call in undo:
            call()
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_quick_alone_says_what_it_belongs_to():
    done = run("--quick", "tests/benchmarks")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "pytest --benchmark --quick" in done.stderr


@pytest.mark.parametrize("s, text", [(2, "2 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (7e-9, "7 ns")])
def test_durations_are_readable(s, text):
    assert seconds(s) == text


def test_the_table_judges_figures_and_puts_them_first():
    rows = [
        Row("plain", seconds=1e-3, median=2e-3, against="x", ratio=2.0),
        Row("same", seconds=1e-3, ratio=1.001),
        Row("better", seconds=1e-3, ratio=0.25),
        Row("good", ratio=1.5, at_most=2),
        Row("bad", ratio=2.5, at_most=2),
        Row("said", value="0 MB", wanted="none", met=True),
    ]
    head, rule, *body = lines(rows)
    assert head.split() == ["benchmark", "backend", "ours", "against", "result", "wanted", "met"] and set(rule) == {
        "-",
        " ",
    }
    assert [line.split()[0] for line in body] == ["good", "bad", "said", "plain", "same", "better"]
    assert [line.split()[-1] for line in body] == ["yes", "NO", "yes", "slower", "x", "faster"]
    assert "at most 2 x" in body[1] and "2.50 x" in body[1]
    assert "1 ms .. 2 ms" in body[3] and "2.00 x, slower" in body[3]
