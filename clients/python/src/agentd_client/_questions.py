"""Questions of sessions to the user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ._callbacks import called
from ._error import AgentdError

if TYPE_CHECKING:
    from typing import TypeAlias

    from .protocol import (
        ConfirmExtensionUiRequestEvent,
        EditorExtensionUiRequestEvent,
        InputExtensionUiRequestEvent,
        PermissionAnswer,
        PermissionQuestion,
        SelectExtensionUiRequestEvent,
    )

    Q = TypeVar("Q")
    A = TypeVar("A")
    Handler: TypeAlias = Callable[[Q], A | None | Awaitable[A | None]]

_OVER = ("not_found", "connection_lost", "closed")
"""Another client was first, or the answer is sent again when the question is listed on the next connection."""


@dataclass(frozen=True)
class Denied:
    """The answer to a question about a call: no, with words to the model."""

    message: str


@dataclass(frozen=True)
class QuestionHandlers:
    """Answers to the questions of sessions: coroutine functions, or plain ones, which run in a thread.

    Each may be left out: then the question is left to other clients. None as the answer closes a dialog without an answer, and
    leaves a question about a call to others or to its time limit. A coroutine is cancelled when an answer is not wanted any more.
    """

    on_permission: Handler[PermissionQuestion, PermissionAnswer | Denied] | None = None
    """Whether a call may run: `once`, `session`, `always`, `deny`, or `Denied(words)`."""
    on_select: Handler[SelectExtensionUiRequestEvent, str] | None = None
    """One of several options."""
    on_confirm: Handler[ConfirmExtensionUiRequestEvent, bool] | None = None
    """Yes or no."""
    on_input: Handler[InputExtensionUiRequestEvent, str] | None = None
    """A line of text."""
    on_editor: Handler[EditorExtensionUiRequestEvent, str] | None = None
    """A longer text."""

    def of(self, method: str) -> Callable[[Any], Any] | None:
        """The handler of a kind of question."""
        handlers: dict[str, Callable[[Any], Any] | None] = {
            "permission": self.on_permission,
            "select": self.on_select,
            "confirm": self.on_confirm,
            "input": self.on_input,
            "editor": self.on_editor,
        }
        return handlers.get(method)

    @property
    def capabilities(self) -> dict[str, bool]:
        """The capabilities of `hello` that the handlers stand for."""
        dialogs = (self.on_select, self.on_confirm, self.on_input, self.on_editor)
        return {"ui": any(dialogs), "permissions": self.on_permission is not None}


class _Open:
    """A question without an answer that counts."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.reply: dict[str, Any] | None = None


class Questions:
    """The questions that are open, and their answers."""

    def __init__(
        self,
        handlers: QuestionHandlers,
        call: Callable[[dict[str, Any]], Awaitable[Any]],
        send_line: Callable[[dict[str, Any]], None],
        report: Callable[[BaseException], None],
    ) -> None:
        self._handlers = handlers
        self._call = call
        self._send_line = send_line
        self._report = report
        self._open: dict[str, _Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, question: Any, session_id: str) -> None:
        """A question, or a notice: those need no answer. After a lost connection the same question can come again."""
        known = self._open.get(question["id"])
        if known:
            # The answer may have been lost with the connection.
            if known.reply:
                self._send(known.reply)
            return
        handler = self._handlers.of(question["method"])
        if handler is None:
            return
        entry = self._open[question["id"]] = _Open()
        entry.task = self._spawn(self._answer(entry, handler, question, session_id))

    def resolved(self, question_id: str) -> None:
        """A question is answered or closed."""
        entry = self._open.pop(question_id, None)
        if entry and entry.task:
            entry.task.cancel()

    def close_all(self) -> None:
        """The client is closed: nobody waits for answers any more."""
        for question_id in list(self._open):
            self.resolved(question_id)

    async def _answer(self, entry: _Open, handler: Callable[[Any], Any], question: Any, session_id: str) -> None:
        try:
            value = await called(handler, question)
        except Exception as error:
            self._open.pop(question["id"], None)
            self._report(error)
            return
        entry.reply = _reply(question, session_id, value)
        if entry.reply and question["id"] in self._open:
            self._send(entry.reply)

    def _send(self, reply: dict[str, Any]) -> None:
        if reply["type"] == "extension_ui_response":
            self._send_line(reply)
        else:
            self._spawn(self._decide(reply))

    async def _decide(self, reply: dict[str, Any]) -> None:
        try:
            await self._call(reply)
        except AgentdError as error:
            if error.code not in _OVER:
                self._report(error)

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _reply(question: Any, session_id: str, value: Any) -> dict[str, Any] | None:
    """The line that answers a question."""
    if question["method"] == "permission":
        if value is None:
            return None
        decision = {"decision": "deny", "message": value.message} if isinstance(value, Denied) else {"decision": value}
        return {"type": "permission_response", "requestId": question["id"], "sessionId": session_id, **decision}
    answer: dict[str, Any]
    if value is None:
        answer = {"cancelled": True}
    elif isinstance(value, bool):
        answer = {"confirmed": value}
    else:
        answer = {"value": value}
    return {"type": "extension_ui_response", "id": question["id"], "sessionId": session_id, **answer}
