"""Running jobs in folders of their own: what they say, which processes they have, and what is left of them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import uuid
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: mxcore[dist]")

#: The command, also where it is not on the path.
MXCORE = (sys.executable, "-c", "from mxcore.cli import main; raise SystemExit(main())")
#: How long one launch may take on a busy machine, and how long whatever it started may outlive it, in seconds.
PATIENCE, SOON = 240, 15


class Running:
    """A running command.

    Parameters
    ----------
    folder : Path
        Where it runs, and nothing else.
    temporary : str
        Where it may have temporary files.
    command : list of str
    env : dict of str to str
        What its environment has beside ours.
    """

    def __init__(self, folder: Path, temporary: str, command: list[str], env: dict[str, str]) -> None:
        name, value = "MXCORE_TEST_MARK", str(uuid.uuid4())
        self.mark = f"{name}={value}".encode()
        self.folder, self.temporary = folder, temporary
        self._out, self._err = folder / f"{value}.out", folder / f"{value}.err"
        env = {**os.environ, **env, name: value, "TMPDIR": temporary}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder, env=env)

    def said(self) -> tuple[str, str]:
        """Standard output and standard error so far."""
        out, err = (path.read_bytes().decode(errors="surrogateescape") for path in (self._out, self._err))
        return out, err

    def until(self, text: str, times: int = 1) -> None:
        """Wait until standard output holds a text so often."""
        end = time.monotonic() + PATIENCE
        while self.said()[0].count(text) < times:
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.05)

    def wait(self) -> tuple[int, str, str]:
        """Wait for its end; status and output."""
        return self.process.wait(PATIENCE), *self.said()

    def processes(self) -> dict[int, str]:
        """What runs of it: Ray's processes hide their environment, but run in its folder."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and (
                    self.mark in (entry / "environ").read_bytes() or (entry / "cwd").resolve() == self.folder.resolve()
                ):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                pass  # it has just ended
        return {pid: command for pid, command in found.items() if command}  # the others are ending

    def is_gone(self, within: float = 0.0) -> None:
        """Fail if processes, files or shared memory are left."""
        end = time.monotonic() + within
        while (left := [self.processes(), os.listdir(self.temporary)]) != [{}, []] and time.monotonic() < end:
            time.sleep(0.1)
        assert left == [{}, []]
        assert [name for name in os.listdir("/dev/shm") if re.search("plasma|mxcore", name)] == []

    def listening(self) -> set[tuple[str, int]]:
        """Address and port of each socket that waits for connections."""
        sockets = set()
        for pid in self.processes():
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                sockets.add(os.readlink(entry))
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                    address, port = fields[1].split(":")
                    found.add((str(ipaddress(address)), int(port, 16)))
        return found


def ipaddress(text: str) -> IPv4Address | IPv6Address:
    """An address as the kernel writes it: words of four bytes, the lowest byte first."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    address = ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address


def lines(text: str, prefix: str) -> list[str]:
    """What stands behind a prefix."""
    return [line.removeprefix(prefix) for line in text.split("\n") if line.startswith(prefix)]
