"""The library's own events, beside those of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from .protocol import Event, InFlight, SessionState


class ResyncEvent(TypedDict):
    """Events of the session were missed and cannot be sent any more.

    The connection was lost for too long, the daemon was started again, or this client was too slow. Read the messages again, if
    you show them.
    """

    type: Literal["resync"]
    sessionId: str
    state: SessionState
    """The state from which the next events go on."""
    inFlight: InFlight | None
    """The answer and the tool calls in progress."""
    isOtherDaemon: bool
    """Whether it is another daemon: what was at work in the former one has ended."""


class ConnectionEvent(TypedDict):
    """The connection was lost, or is there again."""

    type: Literal["connection"]
    state: Literal["lost", "restored"]


if TYPE_CHECKING:
    from typing import TypeAlias

    SessionEvent: TypeAlias = Event | ResyncEvent
    ClientEvent: TypeAlias = Event | ResyncEvent | ConnectionEvent
