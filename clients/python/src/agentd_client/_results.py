"""The outcome of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .protocol import AssistantMessage, StopReason


@dataclass
class RunUsage:
    """Tokens and US dollars of all answers of a run."""

    input: int = 0
    """Input tokens that were not in the provider's cache."""
    output: int = 0
    """Output tokens, reasoning included."""
    cache_read: int = 0
    """Input tokens read from the cache."""
    cache_write: int = 0
    """Input tokens written to the cache."""
    cost_usd: float = 0.0
    """US dollars."""


@dataclass
class RunResult:
    """The outcome of a run."""

    message: AssistantMessage | None = None
    """The last answer; None where none came."""
    turns: int = 0
    """The number of answers, those that failed included."""
    tool_calls: int = 0
    """The number of tool calls that began."""
    usage: RunUsage = field(default_factory=RunUsage)
    """Tokens and cost of all answers."""

    @property
    def text(self) -> str:
        """The text of the last answer."""
        return text_of(self.message)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the last answer ended; None where none came."""
        return self.message["stopReason"] if self.message else None

    def add_answer(self, message: AssistantMessage) -> None:
        """Counts an answer."""
        usage = message["usage"]
        self.message = message
        self.turns += 1
        self.usage.input += usage["input"]
        self.usage.output += usage["output"]
        self.usage.cache_read += usage["cacheRead"]
        self.usage.cache_write += usage["cacheWrite"]
        self.usage.cost_usd += usage["cost"]["total"]

    def copy(self) -> RunResult:
        """What was counted so far."""
        return replace(self, usage=replace(self.usage))


def text_of(message: AssistantMessage | None) -> str:
    """The text of an answer: its text blocks, without thinking and tool calls."""
    if message is None:
        return ""
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")
