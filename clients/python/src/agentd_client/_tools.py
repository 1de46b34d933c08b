"""Tools that this client gives the model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ._callbacks import called
from ._error import AgentdError

if TYPE_CHECKING:
    from typing import TypeAlias

    from .protocol import ClientTool, ClientToolResult, ToolCancelEvent, ToolExecution, ToolRequestEvent

    ToolOutput: TypeAlias = str | ClientToolResult

_OVER = ("not_found", "connection_lost", "closed")
"""The codes of an answer that came too late: the call has ended, and the model has been told."""


class ToolCall:
    """A call of a tool."""

    def __init__(self, session_id: str, tool_call_id: str, progress: Callable[[ToolOutput], None]) -> None:
        self.session_id = session_id
        """The session that calls."""
        self.tool_call_id = tool_call_id
        """The id of the call in the session."""
        self.cancelled = threading.Event()
        """Set when the result is not wanted any more. A coroutine is cancelled as well; a plain function looks here."""
        self._progress = progress

    def progress(self, partial: ToolOutput) -> None:
        """Shows a result so far to the clients that watch; it replaces the previous one. May be called from any thread."""
        self._progress(partial)


@dataclass
class Tool:
    """A tool. `execute` gets the arguments and the call; a string is a text for the model, what it raises is told as the failure."""

    name: str
    """1 to 64 letters, digits, `_` and `-`."""
    description: str
    """For the model: what it is for, and what it gives."""
    parameters: dict[str, Any]
    """JSON Schema of the arguments: an object with `"type": "object"`. What does not fit never comes to `execute`."""
    execute: Callable[[Any, ToolCall], ToolOutput | Awaitable[ToolOutput]]
    """Does the work: a coroutine function, or a plain one, which runs in a thread."""
    label: str | None = None
    """The name that people see."""
    snippet: str | None = None
    """A line for the list of tools in the system prompt."""
    guidelines: list[str] = field(default_factory=list)
    """Advice for the system prompt, a sentence each."""
    execution: ToolExecution | None = None
    """`parallel` (the default) or `sequential`."""
    timeout_ms: int | None = None
    """The time limit of a call; 0 for none. Default: agentd's setting `clientTools.timeoutMs`."""

    def declaration(self) -> ClientTool:
        """What the daemon gets to know of it."""
        declared: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": self.parameters}
        more = {"label": self.label, "snippet": self.snippet, "execution": self.execution, "timeoutMs": self.timeout_ms}
        declared.update({key: value for key, value in more.items() if value is not None})
        if self.guidelines:
            declared["guidelines"] = self.guidelines
        return cast("ClientTool", declared)


class Tools:
    """The tools of this client, by session, and their calls."""

    def __init__(
        self, call: Callable[[dict[str, Any]], Awaitable[Any]], report: Callable[[BaseException], None]
    ) -> None:
        self._call = call
        self._report = report
        self._by_session: dict[str, dict[str, Tool]] = {}
        self._calls: dict[str, tuple[asyncio.Task[None], ToolCall]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    def add(self, session_id: str, tool: Tool) -> None:
        """Keeps a tool. It has to be there before the daemon hears of it."""
        self._by_session.setdefault(session_id, {})[tool.name] = tool

    def remove(self, session_id: str, name: str) -> None:
        self._by_session.get(session_id, {}).pop(name, None)

    def forget(self, session_id: str) -> None:
        """The session has ended for this client."""
        self._by_session.pop(session_id, None)

    def registration(self, session_id: str) -> dict[str, Any] | None:
        """The command that registers the tools of a session; None where there are none."""
        tools = [tool.declaration() for tool in self._by_session.get(session_id, {}).values()]
        return {"type": "register_tools", "sessionId": session_id, "tools": tools} if tools else None

    def cancel(self, event: ToolCancelEvent) -> None:
        self._end(event["requestId"])

    def cancel_all(self) -> None:
        """The connection is lost: no call can be answered any more."""
        for request_id in list(self._calls):
            self._end(request_id)

    def request(self, event: ToolRequestEvent) -> None:
        """Runs a call, and answers it."""
        loop = asyncio.get_running_loop()
        request_id = event["requestId"]

        def send_progress(result: ToolOutput) -> None:
            if request_id in self._calls:
                self._spawn(self._answer(event, {"type": "tool_progress", "partialResult": _result(result)}))

        def progress(result: ToolOutput) -> None:
            loop.call_soon_threadsafe(send_progress, result)

        call = ToolCall(event["sessionId"], event["toolCallId"], progress)
        self._calls[request_id] = (self._spawn(self._run(event, call)), call)

    async def _run(self, event: ToolRequestEvent, call: ToolCall) -> None:
        outcome: dict[str, Any]
        try:
            tool = self._by_session.get(event["sessionId"], {}).get(event["toolName"])
            if tool is None:
                raise LookupError(f"this client has no tool {event['toolName']} any more")
            outcome = {"result": _result(await called(tool.execute, event["args"], call))}
        except Exception as error:
            outcome = {"error": str(error) or type(error).__name__}
        if self._calls.pop(event["requestId"], None):
            await self._answer(event, {"type": "tool_response", **outcome})

    async def _answer(self, event: ToolRequestEvent, order: dict[str, Any]) -> None:
        try:
            await self._call({**order, "requestId": event["requestId"], "sessionId": event["sessionId"]})
        except AgentdError as error:
            if error.code not in _OVER:
                self._report(error)

    def _end(self, request_id: str) -> None:
        task, call = self._calls.pop(request_id, (None, None))
        if task and call:
            call.cancelled.set()
            task.cancel()

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        # asyncio keeps no tasks alive by itself.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _result(output: ToolOutput) -> ClientToolResult:
    return {"content": [{"type": "text", "text": output}]} if isinstance(output, str) else output
