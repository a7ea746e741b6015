"""Streams that run as late as somebody waits: a wait that is missing shows.

Work that was launched is done when the host, or another stream, waits for it. Everything runs under one lock, in the
thread that waits; where a signal's handler might come amid it, and wait itself, in one beside that.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxcore.plugin import Clerk

__all__ = ["EmulatedError", "Event", "Meeting", "Stream", "whole"]

_clerk = Clerk("mxcore-emulated-gpu")
#: Work is run, and memory noted, by one thread at a time, and in no signal's handler amid the same.
whole = _clerk.do

Work = Callable[[], Any]
#: Pieces of work that a stream puts off at most.
LONGEST = 4096


class EmulatedError(RuntimeError):
    """What the driver would say, with its status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Stream:
    """Work in order of launch."""

    __slots__ = ("work", "failed", "recording")

    def __init__(self) -> None:
        self.work: deque[Work] = deque()
        self.failed: Exception | None = None
        #: What is launched in which thread while a graph is captured.
        self.recording: tuple[int, list[Work]] | None = None

    def launch(self, work: Work) -> None:
        """Add work to what is to be done, or to the graph that this thread captures."""
        recording = self.recording
        if recording is not None and recording[0] == threading.get_ident():
            recording[1].append(work)
        else:
            self.enqueue(work)

    def enqueue(self, work: Work) -> None:
        """Add work to what is to be done, whatever is captured."""
        self.work.append(work)
        if len(self.work) > LONGEST:  # nobody waits: what is dropped would never be given back
            whole(self._go, LONGEST // 2)

    def refuse_capture(self, what: str) -> None:
        """Raise if this thread captures a graph, of which `what` cannot be part."""
        recording = self.recording
        if recording is not None and recording[0] == threading.get_ident():
            raise RuntimeError(
                f"cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing: {what}"
            )

    def run(self, until: Event | None = None) -> None:
        """Go on to an event, or to the end; raises what failed on the way."""
        self.refuse_capture("waiting")
        failed = whole(self._run, until)
        if failed is not None:
            raise failed

    def _run(self, until: Event | None) -> Exception | None:
        while self.work and not (until is not None and until.reached):
            self._go(len(self.work), until)
        failed, self.failed = self.failed, None
        return failed

    def advance(self) -> None:
        """Go on to the end; what failed is raised to who waits next."""
        whole(self._go, LONGEST)

    @np.errstate(all="ignore")
    def _go(self, n: int, until: Event | None = None) -> None:
        for _ in range(n):
            if not self.work or until is not None and until.reached:
                return
            work = self.work.popleft()
            try:
                work()
            except Exception as e:
                self.failed = self.failed or e

    def wait(self, event: Event) -> None:
        """What is launched from now on runs after an event, of any stream."""
        self.refuse_capture("waiting for another stream")
        self.launch(event.reach)


class Event:
    """A place in a stream; its time is that of getting there."""

    __slots__ = ("stream", "reached", "time")

    def __init__(self, stream: Stream) -> None:
        stream.refuse_capture("an event that others wait for")
        self.stream, self.reached, self.time = stream, False, 0.0
        stream.launch(self._pass)

    def _pass(self) -> None:
        self.reached, self.time = True, time.perf_counter()

    def reach(self) -> None:
        """Let its stream run so far."""
        if not self.reached:
            self.stream.run(self)


class Meeting:
    """Work that several streams do together: whichever gets there waits for the others to get there, too."""

    __slots__ = ("streams", "call", "places")

    def __init__(self, streams: Sequence[Stream], call: Work) -> None:
        for stream in streams:
            stream.refuse_capture("what several devices do together")
        self.streams, self.call, self.places = streams, call, list[Event]()

    def launch(self) -> None:
        """Add it to what each stream has to do."""
        whole(self._launch)

    def _launch(self) -> None:
        self.places = [Event(stream) for stream in self.streams]
        for stream in self.streams:
            stream.launch(self._meet)

    def _meet(self) -> None:
        places, self.places = self.places, []
        if places:  # the first to get there
            for place in places:
                place.reach()
            self.call()
