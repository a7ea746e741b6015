"""``mxcore run``."""

import subprocess
import sys

import pytest


def run(*args, cwd):
    command = [sys.executable, "-m", "mxcore", "run", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60)


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "beside.py").write_text("word = 'beside'\n")

    def write(text):
        path = folder / "train.py"
        path.write_text(text)
        return path

    return write


def test_script_runs_as_under_python(script, tmp_path):
    path = script(
        "import sys, os, mxnet as mx, beside\nfrom mxnet import nd\n"
        "print(__name__, sys.argv, sys.path[0], mx.__version__, beside.word, __file__)\n"
    )
    out = run(path, "--lr", "0.1", "-m", "--strict", cwd=tmp_path)
    assert out.stderr == "" and out.returncode == 0
    argv = [str(path), "--lr", "0.1", "-m", "--strict"]
    assert out.stdout.strip() == f"__main__ {argv} {path.parent.resolve()} 1.9.1 beside {path}"


def test_exit_status_and_traceback_are_the_scripts(script, tmp_path):
    assert run(script("raise SystemExit(7)"), cwd=tmp_path).returncode == 7
    out = run(script("import mxnet as mx\nraise mx.base.MXNetError('own error')"), cwd=tmp_path)
    assert out.returncode == 1 and "Traceback" in out.stderr and "train.py" in out.stderr
    out = run(script("1 / 0"), cwd=tmp_path)
    assert out.returncode == 1 and "ZeroDivisionError" in out.stderr


def test_a_script_may_close_its_output(script, tmp_path):
    out = run(script("import sys\nwith open('log.txt', 'w') as sys.stdout: print('logged')"), cwd=tmp_path)
    assert (out.returncode, out.stderr) == (0, "") and (tmp_path / "log.txt").read_text() == "logged\n"


def test_legacy_names_unless_strict(script, tmp_path):
    path = script("import numpy as np\nfrom collections import Mapping\nprint(np.float is float)")
    out = run(path, cwd=tmp_path)
    assert out.stdout == "True\n", out.stderr
    out = run("--strict", path, cwd=tmp_path)
    assert out.returncode == 1 and "Mapping" in out.stderr


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_stream_is_read_once(tmp_path, name):
    command = [sys.executable, "-m", "mxcore", "run", name, "-x"]
    text = "import sys, mxnet as mx\nprint(__name__, sys.argv, mx.nd.ones((2,)).asnumpy().tolist())\n"
    out = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert out.stdout == f"__main__ {[name, '-x']} [1.0, 1.0]\n", out.stderr


def test_module(script, tmp_path):
    path = script("import sys, mxnet\nprint(sys.argv[1:], sys.argv[0] == __file__)")
    out = run("-m", "train", "-x", cwd=path.parent)
    assert out.stdout == "['-x'] True\n", out.stderr


def test_children_find_mxnet(script, tmp_path):
    path = script(
        "import multiprocessing as mp, subprocess, sys\nimport numpy as np, mxnet as mx\n"
        "def work(x):\n    import mxnet\n    return x + len(mxnet.__version__), np.float is float\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n        print(pool.map(work, [1]))\n"
        "    code = 'import mxnet.base as b, numpy; print(b.__name__, numpy.float)'\n"
        "    sys.stdout.flush()\n    subprocess.run([sys.executable, '-c', code], check=True)\n"
    )
    out = run(path, cwd=tmp_path)
    assert out.stdout == "[(6, True)]\nmxnet.base <class 'float'>\n", out.stderr


def test_missing_script_is_told(tmp_path):
    out = run("absent.py", cwd=tmp_path)
    assert out.returncode == 1 and "mxcore run: there is no file 'absent.py'" in out.stderr
    assert run(cwd=tmp_path).returncode == 2
    (tmp_path / "folder").mkdir()
    out = run("folder", cwd=tmp_path)
    assert out.returncode == 1 and "'folder' is a folder without a __main__.py" in out.stderr
    assert "Traceback" not in out.stderr
