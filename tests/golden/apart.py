"""Work in a process of its own, which may end before it is done: how golden files survive what MXNet does not."""

import os
import pickle
import signal

#: Seconds that a process may take.
LIMIT = 60


def apart(function, jobs, limit=LIMIT):
    """Results of a function for each tuple of arguments; a line of text where its process aborts or takes too long.

    All run in one process. If that does not come to its end, each runs again in one of its own.
    """
    if not jobs:
        return []
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it does
        signal.alarm(limit)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump([function(*job) for job in jobs], pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status == 0:
        return pickle.loads(data)
    if len(jobs) > 1:
        return [found for job in jobs for found in apart(function, [job], limit)]
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if ended == signal.SIGALRM:
        return [f"the process does not end within {limit} seconds"]
    return [f"the process ends with {signal.Signals(ended).name}" if ended else "the process ends early"]
