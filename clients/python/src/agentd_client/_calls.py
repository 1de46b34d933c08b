"""Commands that have no answer yet."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ._error import AgentdError

OnAnswer = Callable[[Any, bool], None]
"""Gets the data of an answer before the lines after it are looked at, and whether the command was sent more than once."""

_KEYED = frozenset({"prompt", "steer", "follow_up", "bash"})
"""Commands that take a `requestKey`: with one they are done once, however often they are sent."""


def _only_reads(name: str) -> bool:
    """Whether a command only reads, so that it can be sent again."""
    return name.startswith(("get_", "list_")) or name == "daemon_status"


@dataclass
class _Call:
    command: dict[str, Any]
    is_repeatable: bool
    on_answer: OnAnswer | None
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    sends: int = 0
    connection: int = 0


class Calls:
    """The commands that have no answer yet. They outlive a connection as far as they can be sent again."""

    def __init__(self, changed: Callable[[int], None]) -> None:
        self._changed = changed
        self._open: dict[str, _Call] = {}
        self._next = 0
        self._write: Callable[[str], None] | None = None
        self._is_ready = False
        self._connection = 0

    def send(self, order: dict[str, Any], on_answer: OnAnswer | None = None, is_urgent: bool = False) -> asyncio.Future[Any]:
        """Sends a command, or keeps it until there is a connection. An urgent one goes out while that is being set up."""
        self._next += 1
        name = str(order["type"])
        key = {"requestKey": str(uuid.uuid4())} if name in _KEYED else {}
        command = {**key, **order, "id": str(self._next)}
        call = _Call(command, bool(key) or (_only_reads(name) and not is_urgent), on_answer)
        self._open[command["id"]] = call
        self._changed(len(self._open))
        if is_urgent and self._write is None:
            self._fail(call, AgentdError("connection_lost", "There is no connection to agentd."))
        elif self._is_ready or is_urgent:
            self._transmit(call)
        return call.answer

    def answer(self, response: dict[str, Any]) -> bool:
        """Takes an answer; False where none was waited for."""
        call = self._open.pop(str(response.get("id")), None)
        if call is None:
            return False
        self._changed(len(self._open))
        if response["success"]:
            data = response.get("data")
            if call.on_answer:
                call.on_answer(data, call.sends > 1)
            if not call.answer.done():
                call.answer.set_result(data)
        else:
            self._reject(call, _failure(response, call.command["type"]))
        return True

    def connected(self, write: Callable[[str], None]) -> None:
        """A connection is there, over which urgent commands go; the others wait for `ready`."""
        self._write = write
        self._connection += 1

    def ready(self) -> None:
        """The connection is set up: what waits is sent, in the order in which it was asked for."""
        self._is_ready = True
        for call in list(self._open.values()):
            self._transmit(call)

    def lost(self, error: AgentdError) -> None:
        """The connection is lost: what cannot be sent again fails."""
        self._write = None
        self._is_ready = False
        for call in list(self._open.values()):
            if call.sends and not call.is_repeatable:
                self._fail(call, error)

    def fail_all(self, error: AgentdError) -> None:
        """There will be no connection any more: everything fails."""
        self._write = None
        self._is_ready = False
        for call in list(self._open.values()):
            self._fail(call, error)

    def _fail(self, call: _Call, error: AgentdError) -> None:
        self._open.pop(call.command["id"], None)
        self._changed(len(self._open))
        self._reject(call, error.again(call.command["type"]))

    def _reject(self, call: _Call, error: AgentdError) -> None:
        # A caller that was cancelled waits no more.
        if not call.answer.done():
            call.answer.set_exception(error)
            # The caller gets it; asyncio need not report one that is never fetched.
            call.answer.exception()

    def _transmit(self, call: _Call) -> None:
        if self._write is None or call.connection == self._connection:
            return
        call.connection = self._connection
        call.sends += 1
        self._write(json.dumps(call.command))


def _failure(response: dict[str, Any], command: str | None) -> AgentdError:
    return AgentdError(response["code"], response["error"], hint=response.get("hint"), command=command)


def refusal(response: dict[str, Any]) -> AgentdError:
    """What a failure says that answers no command."""
    return _failure(response, response.get("command"))
