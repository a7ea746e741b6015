"""A process of servers: ``serve.py SERVERS WORKERS`` says their addresses, and ends with whoever has started it."""

import sys

from mxcore_kv_dist.server import Server
from tests.kvstore_dist.processes import TOKEN, say

number, workers = map(int, sys.argv[1:])
servers = [Server(i, number, workers, TOKEN.encode()) for i in range(number)]
say([server.address for server in servers])
sys.stdin.read()
for server in servers:
    server.close()
