"""A connection to agentd."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from ._calls import Calls, OnAnswer, refusal
from ._channel import Channel
from ._error import AgentdError
from ._event_queue import EventQueue, Flow
from ._lines import LineSplitter
from ._options import ClientOptions
from ._questions import Questions
from ._session import Session, SessionHost
from ._tools import Tools
from ._transport import Transport, open_socket, start_process
from ._typed_calls import AsyncCalls
from ._wire import parsed, utf8_only

if TYPE_CHECKING:
    from types import TracebackType

    from ._events import ClientEvent, ResyncEvent
    from .protocol import DaemonInfo, ThinkingLevel

_PROTOCOL = 1


@dataclass
class _Followed:
    """A session, and what opens it again in another daemon."""

    channel: Channel
    session: Session
    opened: dict[str, Any] | None


class Agentd(AsyncCalls):
    """A connection to agentd: its own process (`spawn`), or the daemon that all clients of the user share (`connect`)."""

    def __init__(self, options: ClientOptions, opener: Callable[[], Awaitable[Transport]], reconnect_attempts: int) -> None:
        """Not for callers: `spawn` and `connect` make clients."""
        self._options = options
        self._opener = opener
        self._reconnect_attempts = reconnect_attempts
        self._flow = Flow()
        self._calls = Calls(self._flow.set_open_calls)
        self._tools = Tools(self._send, self._report)
        self._questions = Questions(options.questions, self._send, self._send_line, self._report)
        self._host = SessionHost(
            flow=self._flow,
            high_water_mark=options.high_water_mark,
            call=self._send,
            add_tool=self._tools.add,
            remove_tool=self._tools.remove,
            left=self._forget,
        )
        self._followed: dict[str, _Followed] = {}
        self._queues: dict[EventQueue[ClientEvent], None] = {}
        self._transport: Transport | None = None
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._daemon: DaemonInfo | None = None
        self._refusal: AgentdError | None = None
        self._is_reconnecting = False
        self._end: AgentdError | None = None

    @classmethod
    async def spawn(
        cls,
        *,
        program: str = "agentd",
        args: list[str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        options: ClientOptions = ClientOptions(),
    ) -> Agentd:
        """Starts `agentd --stdio`, which ends with this client. `current_session()` is the session that its flags opened."""
        return await cls(options, lambda: start_process(program, args or [], cwd, env, on_stderr), 0)._begin()

    @classmethod
    async def connect(
        cls,
        *,
        socket: str | None = None,
        start: bool = False,
        agentctl: str = "agentctl",
        env: Mapping[str, str] | None = None,
        reconnect_attempts: int = 10,
        options: ClientOptions = ClientOptions(),
    ) -> Agentd:
        """Connects to the user's daemon, and starts it (`agentctl up`) with `start`.

        A lost connection is tried again, with growing pauses of at most 2 seconds.
        """
        return await cls(options, lambda: open_socket(socket, start, agentctl, env), reconnect_attempts)._begin()

    @property
    def daemon(self) -> DaemonInfo:
        """The daemon: its version, its process."""
        if self._daemon is None:
            raise AgentdError("closed", "There is no connection yet.")
        return self._daemon

    async def open_session(
        self,
        *,
        cwd: str | None = None,
        path: str | None = None,
        session_id: str | None = None,
        continue_last: bool = False,
        ephemeral: bool = False,
        name: str | None = None,
        model: str | None = None,
        thinking_level: ThinkingLevel | None = None,
        tools: list[str] | None = None,
        system_prompt: str | None = None,
        append_system_prompt: str | None = None,
        if_idle: bool = False,
        args: list[str] | None = None,
        env: Mapping[str, str] | Literal["daemon"] | None = None,
    ) -> Session:
        """Opens a new or stored session, or joins an open one.

        `env` is the environment of the session, with the keys of providers: default this process's, `"daemon"` for the daemon's.
        `args` are session flags of the command line, such as `["--permissions", "workspace"]`.
        """
        variables = os.environ if env is None else env
        fields = {
            "path": path,
            "sessionId": session_id,
            "continue": continue_last or None,
            "ephemeral": ephemeral or None,
            "name": name,
            "model": model,
            "thinkingLevel": thinking_level,
            "tools": tools,
            "systemPrompt": system_prompt,
            "appendSystemPrompt": append_system_prompt,
            "ifIdle": if_idle or None,
            "args": args,
            "env": None if variables == "daemon" else utf8_only(variables),
        }
        opened = {"cwd": cwd or os.getcwd(), **{key: value for key, value in fields.items() if value is not None}}
        found: list[Session] = []

        def on_answer(data: Any, _: bool) -> None:
            # The session's events follow the answer at once.
            found.append(self._follow(data["sessionId"], data, opened))

        await self._send({"type": "open_session", **opened}, on_answer)
        return found[0]

    async def attach_session(self, session_id: str) -> Session:
        """Joins a session by its id."""
        found: list[Session] = []
        order = {"type": "attach_session", "sessionId": session_id}
        await self._send(order, lambda data, _: found.append(self._follow(session_id, data, None)))
        return found[0]

    async def current_session(self) -> Session:
        """The session that `agentd --stdio` has opened by its flags."""
        session_id = (await self.call("get_state"))["sessionId"]
        followed = self._followed.get(session_id)
        return followed.session if followed else await self.attach_session(session_id)

    def events(self) -> EventQueue[ClientEvent]:
        """All events of this client, from now on: of its sessions, of `watch_sessions`, and of the connection."""
        queue: EventQueue[ClientEvent] = EventQueue(
            self._flow, self._options.high_water_mark, lambda: self._queues.pop(queue, None)
        )
        self._queues[queue] = None
        if self._end:
            queue.finish(self._end)
        return queue

    async def _called(self, type: str, fields: dict[str, Any]) -> Any:
        return await self._send({"type": type, **fields})

    async def close(self) -> None:
        """Ends the connection. An agentd of one's own ends with it, sessions of the daemon go on."""
        transport, reading = self._transport, self._reading
        self._conclude(AgentdError("closed", "The client was closed."), is_orderly=True)
        if transport:
            await transport.finish()
        if reading and reading is not asyncio.current_task():
            reading.cancel()
            await asyncio.wait([reading])

    async def __aenter__(self) -> Agentd:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _begin(self) -> Agentd:
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def _send(self, order: dict[str, Any], on_answer: OnAnswer | None = None) -> Any:
        if self._end:
            raise self._end.again(order["type"])
        answer = self._calls.send(order, on_answer)
        if self._transport:
            await self._transport.drain()
        return await answer

    def _send_line(self, line: dict[str, Any]) -> None:
        if self._transport:
            self._transport.write(json.dumps(line))

    def _report(self, error: BaseException) -> None:
        if self._options.on_error:
            self._options.on_error(error)
        else:
            message = "agentd_client: a handler failed, or its answer was refused"
            asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})

    async def _connect(self) -> None:
        """Connects, introduces this client, and takes up the sessions again."""
        transport = await self._opener()
        if self._end:
            await transport.finish()
            raise self._end.again()
        self._transport = transport
        self._reading = asyncio.create_task(self._read(transport))
        self._calls.connected(transport.write)
        options = self._options
        client = {"name": options.name, **({"version": options.version} if options.version else {})}
        hello = {
            "type": "hello",
            "protocol": _PROTOCOL,
            "client": client,
            "capabilities": {"sessions": True, **options.questions.capabilities},
            **({"role": options.role} if options.role else {}),
        }
        daemon: DaemonInfo = (await self._calls.send(hello, is_urgent=True))["daemon"]
        is_other = self._daemon is not None and self._daemon["epoch"] != daemon["epoch"]
        self._daemon = daemon
        for followed in list(self._followed.values()):
            await self._take_up(followed, is_other)
        self._calls.ready()

    async def _take_up(self, followed: _Followed, is_other: bool) -> None:
        """Follows a session again from where it was lost."""
        channel, opened = followed.channel, followed.opened
        session_id = channel.session_id
        order: dict[str, Any]
        if is_other and opened:
            # Another daemon has to open it with the flags and the environment that it had. It is known by its id.
            left_out = ("path", "continue", "name", "ifIdle")
            fields = {key: value for key, value in opened.items() if key not in left_out}
            order = {"type": "open_session", **fields, "sessionId": session_id}
        else:
            since = {"epoch": channel.epoch, "seq": channel.seq}
            order = {"type": "attach_session", "sessionId": session_id, "since": since}
        try:
            if is_other and opened and opened.get("ephemeral"):
                raise AgentdError("session_not_found", "The session was kept in memory, and is gone.")
            await self._calls.send(order, lambda data, _: self._resume(channel, data, is_other), is_urgent=True)
            registration = self._tools.registration(session_id)
            if registration:
                await self._calls.send(registration, is_urgent=True)
        except AgentdError as error:
            if error.code == "connection_lost":
                raise
            self._forget(session_id, error)

    def _resume(self, channel: Channel, data: dict[str, Any], is_other: bool) -> None:
        """The answer to `attach_session` or `open_session` after a loss."""
        channel.move_to(data["epoch"], data["seq"])
        if not data.get("replayed"):
            event: ResyncEvent = {
                "type": "resync",
                "sessionId": channel.session_id,
                "state": data.get("state", data),
                "inFlight": data.get("inFlight"),
                "isOtherDaemon": is_other,
            }
            channel.deliver(event)
            for queue in list(self._queues):
                queue.push(event)
        for question in data.get("pendingUi", []):
            self._questions.ask(question, channel.session_id)

    def _follow(self, session_id: str, data: dict[str, Any], opened: dict[str, Any] | None) -> Session:
        followed = self._followed.get(session_id)
        if followed:
            followed.opened = followed.opened or opened
        else:
            channel = Channel(session_id, data["epoch"], data["seq"])
            followed = _Followed(channel, Session(channel, self._host), opened)
            self._followed[session_id] = followed
        for question in data.get("pendingUi", []):
            self._questions.ask(question, session_id)
        return followed.session

    def _forget(self, session_id: str, error: AgentdError | None = None) -> None:
        followed = self._followed.pop(session_id, None)
        self._tools.forget(session_id)
        if followed:
            followed.channel.end(error)

    async def _read(self, transport: Transport) -> None:
        """Reads a connection to its end."""
        lines = LineSplitter(self._options.max_line_bytes)
        error: AgentdError | None = None
        try:
            while True:
                await self._flow.readable()
                chunk = await transport.reader.read(65536)
                if not chunk:
                    break
                for line in lines.push(chunk):
                    if self._transport is transport:
                        self._take(line)
        except AgentdError as fault:
            error = fault
            transport.writer.close()
        except ConnectionError as fault:
            error = AgentdError("connection_lost", f"The connection broke: {fault}")
        except Exception as fault:
            error = AgentdError("protocol", f"agentd sent a line that is not understood: {fault!r}")
            error.__cause__ = fault
            transport.writer.close()
        reason = error or await transport.reason()
        if self._transport is transport:
            self._lost(reason)

    def _take(self, text: str) -> None:
        line = parsed(text)
        kind, session_id = line["type"], line.get("sessionId")
        if kind == "response":
            # A failure without an `id` is about the connection, such as the limit of clients; the end of it follows.
            if not self._calls.answer(line) and not line["success"]:
                self._refusal = refusal(line)
            return
        if kind == "tool_request":
            self._tools.request(cast(Any, line))
        elif kind == "tool_cancel":
            self._tools.cancel(cast(Any, line))
        elif kind == "extension_ui_request":
            self._questions.ask(line, session_id or "")
        elif kind == "ui_request_resolved":
            self._questions.resolved(line["id"])
        elif kind == "lagged":
            self._spawn(self._catch_up(line["sessionId"]))
        event = cast("ClientEvent", line)
        followed = self._followed.get(session_id or "")
        if followed:
            followed.channel.deliver(cast(Any, line))
        for queue in list(self._queues):
            queue.push(event)
        if kind == "session_closed" and followed:
            self._forget(line["sessionId"])

    async def _catch_up(self, session_id: str) -> None:
        """Attaches again after this client was too slow for its session."""
        followed = self._followed.get(session_id)
        if not followed:
            return
        channel = followed.channel
        since = {"epoch": channel.epoch, "seq": channel.seq}
        order = {"type": "attach_session", "sessionId": session_id, "since": since}
        try:
            await self._send(order, lambda data, _: self._resume(channel, data, False))
        except AgentdError as error:
            # With a lost connection it is taken up again in any case.
            if error.code not in ("connection_lost", "closed"):
                self._forget(session_id, error)

    def _lost(self, end: AgentdError) -> None:
        error = self._refusal or end
        self._refusal = None
        self._transport = None
        self._tools.cancel_all()
        self._calls.lost(error)
        if self._reconnect_attempts == 0 or self._end:
            self._conclude(error, is_orderly=False)
        elif self._daemon and not self._is_reconnecting:
            # Otherwise the caller of `connect` gets the error.
            self._is_reconnecting = True
            self._spawn(self._reconnect(error))

    async def _reconnect(self, lost: AgentdError) -> None:
        self._tell("lost")
        last = lost
        for attempt in range(self._reconnect_attempts):
            if self._end:
                return
            if attempt:
                await asyncio.sleep(min(0.05 * 2**attempt, 2.0))
            try:
                await self._connect()
            except AgentdError as error:
                last = error
            else:
                self._is_reconnecting = False
                self._tell("restored")
                return
        text = f"{lost.message} It could not be reached again: {last.message}"
        self._conclude(AgentdError("connection_lost", text, hint=last.hint), is_orderly=False)

    def _tell(self, state: Literal["lost", "restored"]) -> None:
        for queue in list(self._queues):
            queue.push({"type": "connection", "state": state})

    def _conclude(self, error: AgentdError, is_orderly: bool) -> None:
        """Ends everything that waits; in order, iterators end without an error."""
        if self._end:
            return
        self._end = error
        self._transport = None
        self._calls.fail_all(error)
        self._tools.cancel_all()
        self._questions.close_all()
        for session_id in list(self._followed):
            self._forget(session_id, None if is_orderly else error)
        for queue in list(self._queues):
            queue.finish(None if is_orderly else error)

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        # asyncio keeps no tasks alive by itself.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
