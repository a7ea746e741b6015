"""Several hosts: network namespaces of this machine, with a wire between them that can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.kvstore_dist.processes import reaped, said, spawn, tell, worker

#: Host -> its address.
HOSTS = {f"mxkv{os.getpid() % 10000}{x}": f"10.213.77.{i}" for i, x in enumerate("ab", 1)}


def ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True, timeout=20)


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """The names of two hosts that reach each other."""
    if shutil.which("ip") is None:
        pytest.skip("the command ip is not installed")
    first, second = HOSTS
    try:
        try:
            for name in HOSTS:
                ip("netns", "add", name)
            ip("link", "add", "wire", "netns", first, "type", "veth", "peer", "name", "wire", "netns", second)
            for name, address in HOSTS.items():
                ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
                for device in ("lo", "wire"):
                    ip("-n", name, "link", "set", device, "up")
        except subprocess.CalledProcessError as e:
            pytest.skip(f"this machine lets nobody make network namespaces: {e.stderr.decode().strip()}")
        yield [first, second]
    finally:
        for name in HOSTS:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dist_sync", "allreduce"])
def test_workers_on_two_hosts_until_the_wire_is_cut(hosts: list[str], kind: str) -> None:
    with reaped() as made:
        within = [["ip", "netns", "exec", name] for name in hosts]
        address = HOSTS[hosts[0]]
        made.append(spawn("serve.py", "2", "2", address, within=within[0]))
        addresses = said(made[0])
        assert all(host == address for host, _, _ in addresses)
        for rank, name in enumerate(hosts):
            more = {"MXCORE_KV_TRANSPORT": "tcp", "MXCORE_KV_HOST": HOSTS[name], "MXCORE_KV_DEADLINE": 5}
            made.append(worker(addresses, rank, 2, "hosting.py", kind, within=within[rank], **more))
        workers = made[1:]
        for step in range(3):
            for process in workers:
                tell(process, "step")
            assert [said(process) for process in workers] == [{"value": 3.0 * 2**step} for _ in workers]
        ip("-n", hosts[1], "link", "set", "wire", "down")
        for process in workers:
            tell(process, "step")
        for process in workers:
            answer = said(process)
            assert "waited" in answer["error"] or "has not answered" in answer["error"], answer
            assert answer["seconds"] < 20
