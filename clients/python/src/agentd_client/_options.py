"""What clients can be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._event_queue import DEFAULT_HIGH_WATER_MARK
from ._lines import DEFAULT_MAX_LINE_BYTES
from ._questions import QuestionHandlers

if TYPE_CHECKING:
    from .protocol import Role


@dataclass(frozen=True)
class ClientOptions:
    """What both kinds of clients can be told."""

    name: str = "agentd-client"
    """The client's name, for lists and logs."""
    version: str | None = None
    """Its version."""
    role: Role | None = None
    """`observe`: only look and follow; default `control`."""
    questions: QuestionHandlers = QuestionHandlers()
    """Answers to questions."""
    high_water_mark: int = DEFAULT_HIGH_WATER_MARK
    """The number of unread events at which agentd has to wait."""
    max_line_bytes: int = DEFAULT_MAX_LINE_BYTES
    """The longest line that is read."""
    on_error: Callable[[BaseException], object] | None = None
    """Gets errors that no call can give: those of question handlers, and answers that were refused. Default: the event loop's handler."""
