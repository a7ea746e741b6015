"""Nobody waits for a compiler: reference bodies compute until a helper has compiled, and nothing that ends it hurts."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")

START = """
import os, sys, time
import numpy as np
import mxcore as mx
from mxcore_cpu import background
from mxcore_cpu.native import COUNTS
x = mx.nd.array(np.linspace(-2, 2, 1 << 14))
def compiled():
    return sorted(n for n in os.listdir(background.CODE.folder) if "kernel" in n and n.endswith(".code"))
def until(found, seconds=100):
    end = time.time() + seconds
    while not found():
        assert time.time() < end, "the helper did not do it"
        time.sleep(0.05)
def close():
    np.testing.assert_allclose(mx.nd.exp(x).asnumpy(), np.exp(x.asnumpy()), rtol=3e-7)
"""


def run(folder, source, mode="background", **more):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MXCORE_CACHE_DIR": str(folder)}
    env |= {"MXCORE_COMPILE": mode, "MXCORE_BODIES": "0", **more}
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(source)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_bodies_compute_until_the_next_process(tmp_path):
    first = run(
        tmp_path,
        """
        close()
        assert "numba" not in sys.modules and not COUNTS["compiled"]
        before = mx.nd.exp(x).asnumpy()
        until(compiled)
        assert (mx.nd.exp(x).asnumpy() == before).all() and not COUNTS["loaded"], "a run keeps its bits"
        y = mx.nd.exp(mx.nd.concat(x, x, dim=0))  # other shapes are decided anew
        print(COUNTS["loaded"], background._helper.pid)
        """,
    ).split()
    assert int(first[0]) >= 1
    end = time.time() + 20  # the helper ends with its parent
    while os.path.exists(f"/proc/{first[1]}") and time.time() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{first[1]}")
    assert (
        run(tmp_path, "close(); print(background._helper, COUNTS['loaded'] >= 1, COUNTS['compiled'])") == "None True 0"
    )


def test_the_helper_may_be_killed_and_what_it_wrote_damaged(tmp_path):
    run(
        tmp_path,
        """
        close()
        background._helper.kill()
        background._helper.wait()
        y = mx.nd.tanh(x)  # asked of another helper
        until(compiled)
        close()
        """,
    )
    for path in tmp_path.rglob("*.code"):
        path.write_bytes(path.read_bytes()[:-7])
    assert run(tmp_path, "mx.nd.tanh(x); close(); print(COUNTS['loaded'], COUNTS['compiled'])") == "0 0"


LATE = """
import os, sys, time
end = time.time() + 200
while not os.path.exists("go") and time.time() < end:
    time.sleep(0.02)
with open("read", "wb", buffering=0) as out:
    for line in sys.stdin.buffer:
        out.write(line)
"""


@pytest.mark.parametrize("long", [False, True])
def test_a_helper_that_does_not_read_is_not_waited_for(long, tmp_path):
    run(
        tmp_path,
        f"""
        import json, subprocess
        os.chdir(os.environ["MXCORE_CACHE_DIR"])
        plain = subprocess.Popen
        subprocess.Popen = lambda args, **kw: plain([sys.executable, "-c", {LATE!r}], **kw)
        def ask(n):
            background.ask({{"n": n}})
            return len(background._asked)
        if {long}:
            assert ask("x" * (1 << 17)) == 1 and background._rest  # it is begun
        for i in range(6000):
            ask(i)
        n = len(background._asked)
        assert ask(5999) == n and n < 5900  # what has no place is dropped
        open("go", "w").close()
        until(lambda: ask(5999) > n)
        assert not background._rest
        def read():
            return [json.loads(line)["n"] for line in open("read") if line.endswith("\\n")]
        until(lambda: os.path.exists("read") and len(read()) == n + 1)
        assert read() == ["x" * (1 << 17)] * {long} + [*range(n - {long})] + [5999]
        """,
    )


def test_a_forked_child_has_no_helper_and_waits(tmp_path):
    out = run(
        tmp_path,
        """
        close()
        pid = os.fork()
        if not pid:
            try:
                assert background._helper is None and not background.enabled()
                y = mx.nd.log1p(mx.nd.abs(x)).asnumpy()
                assert background._helper is None
                os._exit(7)
            finally:
                os._exit(8)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), background._helper.poll())
        """,
    )
    assert out == "7 None"


def test_in_place_updates_are_those_of_the_kernel(tmp_path):
    """The call that decides is tried on copies: what it updates is written once."""
    source = """
    w, g, m = (mx.nd.array(np.linspace(i, i + 1, 1 << 12)) for i in range(3))
    for i in range(3):
        mx.nd.sgd_mom_update(w, g, m, out=w, lr=0.1, momentum=0.9)
    np.save(sys.argv[1] if len(sys.argv) > 1 else os.environ["OUT"], np.stack([w.asnumpy(), m.asnumpy()]))
    """
    import numpy as np

    found = []
    for i, mode in enumerate(("background", "wait", "background")):
        run(tmp_path / "cache", source, mode, OUT=str(tmp_path / f"{i}.npy"))
        found.append(np.load(tmp_path / f"{i}.npy"))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    np.testing.assert_array_equal(found[1], found[2])


def test_where_nothing_can_be_written_there_is_a_wait(tmp_path):
    out = run(
        tmp_path,
        """
        from mxcore.codecache import Places
        vars(background.CODE)["places"] = Places((), None)
        close()
        print(background.enabled(), background._helper, COUNTS["compiled"] >= 1)
        """,
    )
    assert out == "False None True"


def test_a_mode_that_there_is_not(tmp_path):
    env = {**os.environ, "MXCORE_COMPILE": "sometimes", "MXCORE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "import mxcore as mx; mx.nd.exp(mx.nd.ones((20000,)))"],
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "MXCORE_COMPILE must be one of wait, background, got 'sometimes'" in done.stderr


def test_one_process_makes_what_two_want(tmp_path):
    source = "import time; t = time.time(); close(); print(COUNTS['compiled'], COUNTS['loaded'])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MXCORE_CACHE_DIR": str(tmp_path)}
    env["MXCORE_COMPILE"] = "wait"
    two = [
        subprocess.Popen([sys.executable, "-c", START + source], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    counts = sorted(tuple(map(int, p.communicate(timeout=200)[0].split())) for p in two)
    assert [p.returncode for p in two] == [0, 0]
    assert counts[0][0] + counts[1][0] == counts[0][1] + counts[1][1], "each entry is made once, and loaded once"
    assert not [p for p in tmp_path.rglob("*") if p.suffix == ".lock"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits are the system's")
def test_where_the_cache_is_full_new_calls_wait_and_old_ones_keep_their_bits(tmp_path):
    said = run(
        tmp_path,
        """
        import resource, warnings
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
        warnings.simplefilter("ignore")  # what is compiled here cannot be kept either
        before = mx.nd.exp(x).asnumpy()
        assert not COUNTS["compiled"]
        until(lambda: background._helper.poll() == background.FULL)
        mx.nd.tanh(x).wait_to_read()  # asks, and so learns
        assert background._full and background._helper is None
        mx.nd.sigmoid(x).wait_to_read()
        assert COUNTS["compiled"]
        counted = COUNTS["compiled"]
        assert (mx.nd.exp(x).asnumpy() == before).all() and COUNTS["compiled"] == counted
        print("right")
        """,
    )
    assert said == "right"
