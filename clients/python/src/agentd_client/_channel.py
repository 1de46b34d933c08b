"""The events of one session on their way from the connection to whom they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ._error import AgentdError

if TYPE_CHECKING:
    from ._events import SessionEvent

Ended = Callable[["AgentdError | None"], None]


class Channel:
    """Hands on the events of a session in their order, and knows the number of the last one."""

    def __init__(self, session_id: str, epoch: str, seq: int) -> None:
        self.session_id = session_id
        self.epoch = epoch
        """The epoch of the daemon that numbered the events."""
        self.seq = seq
        """The number of the last event that came."""
        self.has_ended = False
        self._error: AgentdError | None = None
        self._listeners: dict[object, tuple[Callable[[SessionEvent], None], Ended]] = {}

    def listen(self, event: Callable[[SessionEvent], None], ended: Ended) -> Callable[[], None]:
        """Begins to listen; the function that comes back stops it."""
        if self.has_ended:
            ended(self._error)
            return lambda: None
        key = object()
        self._listeners[key] = (event, ended)

        def stop() -> None:
            self._listeners.pop(key, None)

        return stop

    def deliver(self, event: SessionEvent) -> None:
        """Hands an event on, unless it came before."""
        seq = event.get("seq")
        if isinstance(seq, int):
            if seq <= self.seq:
                return
            self.seq = seq
        for listener, _ in list(self._listeners.values()):
            listener(event)

    def move_to(self, epoch: str, seq: int) -> None:
        """Goes on from another position."""
        self.epoch = epoch
        self.seq = seq

    def end(self, error: AgentdError | None = None) -> None:
        """Ends all listening; without an error, because this client left or the session was closed."""
        if self.has_ended:
            return
        self.has_ended = True
        self._error = error
        listeners, self._listeners = self._listeners, {}
        for _, ended in listeners.values():
            ended(error)

