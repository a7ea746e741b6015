"""Starting a cluster: what is read of Ray while it starts."""

import subprocess
import sys

import pytest

from mxcore_kv_dist import cluster

pytest.importorskip("ray")
SLOWLY = """
import sys, time
with open(sys.argv[1] + "/ray_current_cluster", "w") as f:
    time.sleep(0.5)
    f.write("127.0.0.1:6379")
time.sleep(30)
"""


def test_the_address_is_read_once_it_is_written(monkeypatch, tmp_path):
    started = []

    def keep(folder, command, **streams):
        started.append(subprocess.Popen([sys.executable, "-c", SLOWLY, folder]))
        return started[0]

    monkeypatch.setattr(cluster, "keep", keep)
    monkeypatch.setattr(cluster.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cluster, "_LONGEST_FOLDER", 1 << 10)
    for name in (*cluster._SETTINGS, "RAY_AUTH_TOKEN", *cluster._OTHERS):
        monkeypatch.setenv(name, "")
    try:
        assert cluster.Cluster()._start() == "127.0.0.1:6379"
    finally:
        started[0].kill()
        started[0].wait()


def test_what_ray_says_is_told_where_it_does_not_start(monkeypatch, tmp_path):
    """Also once its keeper has removed its folder."""

    def keep(folder, command, **streams):
        fails = "import shutil, sys; print('no room'); shutil.rmtree(sys.argv[1]); sys.exit(1)"
        return subprocess.Popen([sys.executable, "-c", fails, folder], **streams)

    monkeypatch.setattr(cluster, "keep", keep)
    monkeypatch.setattr(cluster.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cluster, "_LONGEST_FOLDER", 1 << 10)
    for name in (*cluster._SETTINGS, "RAY_AUTH_TOKEN", *cluster._OTHERS):
        monkeypatch.setenv(name, "")
    with pytest.raises(RuntimeError, match="Ray does not start; it says\nno room"):
        cluster.Cluster()._start()
