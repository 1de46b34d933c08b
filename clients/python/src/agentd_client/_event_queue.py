"""Events that wait for their reader, and what that means for the connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from ._error import AgentdError

T = TypeVar("T")

DEFAULT_HIGH_WATER_MARK = 1024
"""The number of unread events from which on the connection is not read any further."""

_HARD_LIMIT = 100_000
"""The number of unread events at which they are dropped, where the connection has to be read for other reasons."""


class Flow:
    """Decides whether the connection is read.

    It is not while a queue of events is full, so that the daemon waits and memory stays bounded. While a command has no answer, or the
    result of a run is awaited, it is read in any case: the caller may be the reader of that queue.
    """

    def __init__(self) -> None:
        self._full: set[object] = set()
        self._open_calls = 0
        self._holds = 0
        self._readable = asyncio.Event()
        self._readable.set()

    async def readable(self) -> None:
        """Waits until the connection may be read."""
        await self._readable.wait()

    def set_full(self, queue: object, is_full: bool) -> None:
        if is_full:
            self._full.add(queue)
        else:
            self._full.discard(queue)
        self._decide()

    def set_open_calls(self, count: int) -> None:
        self._open_calls = count
        self._decide()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Something is awaited that comes over the connection."""
        self._holds += 1
        self._decide()
        try:
            yield
        finally:
            self._holds -= 1
            self._decide()

    def _decide(self) -> None:
        if self._full and not self._open_calls and not self._holds:
            self._readable.clear()
        else:
            self._readable.set()


class EventQueue(Generic[T]):
    """Events that wait for their reader: an async iterator, for one `async for`."""

    def __init__(self, flow: Flow, high_water_mark: int, left: Callable[[], object] = lambda: None) -> None:
        self._items: deque[T] = deque()
        self._flow = flow
        self._high_water_mark = high_water_mark
        self._left = left
        self._arrived = asyncio.Event()
        self._has_ended = False
        self._error: AgentdError | None = None

    def push(self, item: T) -> None:
        """Adds an event."""
        if self._has_ended:
            return
        self._items.append(item)
        self._arrived.set()
        if len(self._items) >= _HARD_LIMIT:
            self._items.clear()
            self.finish(AgentdError("too_slow", f"{_HARD_LIMIT} events were not read, and are dropped."))
        elif len(self._items) >= self._high_water_mark:
            self._flow.set_full(self, True)

    def finish(self, error: AgentdError | None = None) -> None:
        """Ends the queue after the events that it holds; with an error, by raising that."""
        if self._has_ended:
            return
        self._has_ended = True
        self._error = error
        self._arrived.set()
        self._flow.set_full(self, False)
        self._left()

    def close(self) -> None:
        """Leaves the queue; its events are dropped."""
        self._items.clear()
        self.finish()
        self._error = None

    def __aiter__(self) -> EventQueue[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._has_ended:
                # An error is raised once; the iterator has ended after that.
                error, self._error = self._error, None
                if error:
                    raise error.again()
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        item = self._items.popleft()
        if len(self._items) <= self._high_water_mark // 2:
            self._flow.set_full(self, False)
        return item

    async def aclose(self) -> None:
        """The same as `close`, for `contextlib.aclosing`."""
        self.close()
