"""The keeper: what it runs ends with it, and says so."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mxcore_kv_dist.cluster import keep

from .running import SOON

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems tell less about lost processes")

#: Starts a process that leaves its group, its session and its parent, and says which.
_STRAY = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid, flush=True)"


def run(*command: str, folder: str = "") -> subprocess.Popen:
    return keep(folder, [*command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    "command, status", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9), ("kill -15 $$", -15), ("kill -2 $$", -2)]
)
def test_status(command, status):
    with run("sh", "-c", command) as process:
        assert process.wait(SOON) == status


def test_no_such_command():
    with run("/no/such/command") as process:
        assert process.wait(SOON) == 127
        assert process.stderr.read() == b"/no/such/command cannot be run: No such file or directory\n"


def is_there(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def test_strays_end_with_the_command():
    with run(sys.executable, "-c", _STRAY) as process:
        assert process.wait(SOON) == 0
        assert not is_there(int(process.stdout.readline()))


def test_all_end_with_the_lifeline(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    command = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_STRAY}; time.sleep(600)"
    with run(sys.executable, "-c", command, folder=str(folder)) as process:
        stray = int(process.stdout.readline())
        assert is_there(stray)
        process.stdin.close()
        assert process.wait(SOON) == -9
        assert not is_there(stray) and not folder.exists()


def test_killed_keeper():
    """The command goes as well; what that has started is lost to nobody who could end it."""
    with run("sh", "-c", "echo $$; exec sleep 600") as process:
        command = int(process.stdout.readline())
        process.kill()
        end = time.monotonic() + SOON
        while is_there(command) and time.monotonic() < end:
            time.sleep(0.01)
        assert not is_there(command)


def test_signals():
    """Signals reach the command as from a terminal, also where a parent has blocked them."""
    program = (
        "import time\ntry:\n print(1, flush=True)\n time.sleep(600)\nexcept KeyboardInterrupt: print('interrupted')"
    )
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process = run(sys.executable, "-c", program)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with process:
        process.stdout.readline()
        process.stdin.write(bytes([signal.SIGINT]))
        process.stdin.flush()
        assert process.stdout.read() == b"interrupted\n"
        assert process.wait(SOON) == 0
