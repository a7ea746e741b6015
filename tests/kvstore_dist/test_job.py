"""Who a process is: what launchers say in the environment, and what is wrong with it."""

import sys

import pytest

import mxcore as mx
from mxcore.base import MXNetError, MXNetWarning
from mxcore.kvstore import launchers
from mxcore_kv_dist import job

from .running import needs_ray


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No launcher has started the tests, as far as these can see."""
    names = [n for row in launchers.NAMES for n in row]
    for name in [*names, "DMLC_ROLE", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "MXCORE_KV_SERVERS", "RAY_ADDRESS"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(job, "_said", set())


def told(monkeypatch, text: str) -> None:
    for pair in text.split():
        monkeypatch.setenv(*pair.split("=", 1))


@pytest.mark.parametrize(
    "text, place",
    [
        ("", None),
        ("RANK=1 WORLD_SIZE=4", (1, 4)),
        ("DMLC_ROLE=worker DMLC_WORKER_ID=2 DMLC_NUM_WORKER=3", (2, 3)),
        ("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", (0, 2)),
        ("SLURM_PROCID=0 SLURM_NTASKS=2", None),  # the script of a batch, of which there is one
        ("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", (0, 2)),
        ("PMI_RANK=0 PMI_SIZE=2", (0, 2)),
        ("RANK=1 DMLC_WORKER_ID=2 DMLC_NUM_WORKER=3", (2, 3)),
    ],
)
def test_place(monkeypatch, text, place):
    told(monkeypatch, text)
    assert launchers.rank_and_size() == place


@pytest.mark.parametrize(
    "text, says",
    [
        ("RANK=two WORLD_SIZE=4", "RANK must be a whole number above -1, got 'two'"),
        ("RANK=4 WORLD_SIZE=4", "RANK=4 is no rank among WORLD_SIZE=4 workers"),
        ("DMLC_ROLE=server DMLC_NUM_WORKER=2", "`mxcore launch -n WORKERS -s SERVERS python train.py` takes its place"),
        ("RANK=0 WORLD_SIZE=2 MXCORE_KV_SERVERS=here", "MXCORE_KV_SERVERS must be a JSON list of .host, port, name."),
        ("RANK=0 WORLD_SIZE=2 MXCORE_KV_SERVERS=[]", "MXCORE_KV_SERVERS must be a JSON list of .host, port, name."),
        ('RANK=0 WORLD_SIZE=2 MXCORE_KV_SERVERS=[["h",Infinity,""]]', "MXCORE_KV_SERVERS must be a JSON list"),
        (f"RANK=0 WORLD_SIZE=2 MXCORE_KV_SERVERS={'[' * 60000}", "MXCORE_KV_SERVERS must be a JSON list"),
        (
            "RANK=0 WORLD_SIZE=2 MXCORE_KV_SERVERS=[] MXCORE_KV_DEADLINE=0",
            "deadline .MXCORE_KV_DEADLINE. must be a number",
        ),
        (
            'RANK=0 WORLD_SIZE=2 MXCORE_KV_SERVERS=[["h",1,""]] MXCORE_KV_TRANSPORT=ib',
            "TRANSPORT='ib' is none of 'auto', 'tcp'",
        ),
        ("RANK=0 WORLD_SIZE=2 MXCORE_KV_DEADLINE=soon", "MXCORE_KV_DEADLINE='soon' must be a number"),
    ],
)
def test_wrong_words(monkeypatch, text, says):
    told(monkeypatch, text)
    with pytest.raises(MXNetError, match=says):
        mx.kv.create("dist_sync")


def test_alone():
    """Without a launcher there is one worker, and this is said once."""
    with pytest.warns(MXNetWarning, match="not part of a distributed job.*`mxcore launch -n WORKERS python train.py`"):
        kv = mx.kv.create("dist_sync")
    assert (kv.rank, kv.num_workers, kv.type) == (0, 1, "dist_sync")
    assert mx.kv.create("dist_sync").num_workers == 1


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    told(monkeypatch, "RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1")
    with pytest.raises(MXNetError, match=r"needs Ray, which is not installed: `pip install 'mxcore\[dist\]'`"):
        mx.kv.create("dist_sync")


@needs_ray
def test_nameless_job(monkeypatch):
    told(monkeypatch, "RANK=0 WORLD_SIZE=2")
    with pytest.raises(MXNetError, match="set MASTER_ADDR and MASTER_PORT"):
        mx.kv.create("dist_sync")


@needs_ray
def test_nobody_there(monkeypatch):
    told(monkeypatch, "RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 MXCORE_KV_DEADLINE=0.3")
    with pytest.raises(MXNetError, match="no servers were found within 0.3 s: rank 0"):
        mx.kv.create("dist_sync")
