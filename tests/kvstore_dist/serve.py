"""Servers: ``serve.py SERVERS WORKERS [HOST]`` says their addresses, and ends with whoever has started it."""

import sys

from mxcore_kv_dist.server import Server
from tests.kvstore_dist.processes import TOKEN, say

number, workers = map(int, sys.argv[1:3])
host = (sys.argv[3:] or ["127.0.0.1"])[0]
servers = [Server(i, number, workers, TOKEN.encode(), host) for i in range(number)]
say([server.address for server in servers])
sys.stdin.read()
for server in servers:
    server.close()
