"""The same without asyncio: every method waits for its answer.

An event loop runs in a thread of each client. Handlers and tools are plain functions, which run in threads and may block; they may
be coroutine functions, too. A client may be used from several threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from . import _client, _event_queue, _run, _session
from ._error import AgentdError
from ._options import ClientOptions
from ._questions import Denied, QuestionHandlers
from ._results import RunResult, RunUsage, text_of
from ._tools import Tool, ToolCall
from ._typed_calls import SyncCalls

if TYPE_CHECKING:
    from types import TracebackType

    from ._events import ClientEvent, SessionEvent
    from .protocol import (
        AbortScope,
        BudgetLimits,
        DaemonInfo,
        Disposition,
        Image,
        Message,
        SessionState,
        StreamingBehavior,
    )

__all__ = [
    "Agentd",
    "AgentdError",
    "ClientOptions",
    "Denied",
    "Events",
    "QuestionHandlers",
    "Run",
    "RunResult",
    "RunUsage",
    "Session",
    "Tool",
    "ToolCall",
    "text_of",
]

T = TypeVar("T")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(thread_name_prefix="agentd-client")
        self._loop.set_default_executor(self._executor)
        self._thread = threading.Thread(target=self._loop.run_forever, name="agentd-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine and waits for it; an interrupt (Ctrl-C) cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("A coroutine of this client cannot wait for it: use a plain function.")
        if self.is_closed:
            work.close()
            raise AgentdError("closed", "The client was closed.")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_closed(self) -> bool:
        """Whether the loop has ended."""
        return self._loop.is_closed()

    def do(self, function: Callable[[], T]) -> T:
        """Calls a function in the loop."""

        async def work() -> T:
            return function()

        return self.run(work())

    def stop(self) -> None:
        """Ends the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        # A handler may block for long: it is not waited for.
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._loop.close()


class Events(Generic[T]):
    """Events as they come: an iterator."""

    def __init__(self, loop: _Loop, queue: _event_queue.EventQueue[T]) -> None:
        self._loop = loop
        self._queue = queue

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._loop.is_closed:
            raise StopIteration
        try:
            return self._loop.run(_next(self._queue))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """Leaves the events; those that wait are dropped."""
        self._loop.do(self._queue.close)


async def _next(events: AsyncIterator[T]) -> T:
    return await events.__anext__()


class Run:
    """A prompt and the work that it begins; see `agentd_client.Run`."""

    def __init__(self, loop: _Loop, run: _run.Run) -> None:
        self._loop = loop
        self._run = run

    def accepted(self) -> Disposition:
        """Whether the prompt has begun a run or waits in a queue; raises when it was refused."""
        return self._loop.run(self._run.accepted())

    def result(self) -> RunResult:
        """The outcome, once the session has settled; raises AgentdError where there is none."""
        return self._loop.run(self._run.result())

    def text(self) -> Iterator[str]:
        """The additions to the text of all answers, as they come."""
        for event in self:
            if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta":
                yield event["assistantMessageEvent"]["delta"]

    def abort(self) -> None:
        """Stops the work, and returns when the session has settled."""
        self._loop.run(self._run.abort())

    def __iter__(self) -> Iterator[SessionEvent]:
        return Events(self._loop, self._loop.do(self._run.__aiter__))

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the work, if it is not over."""
        self._loop.run(self._run.__aexit__(kind, error, trace))


class Session(SyncCalls):
    """A session that this client follows; see `agentd_client.Session`."""

    def __init__(self, loop: _Loop, session: _session.Session) -> None:
        self.id = session.id
        """Its id."""
        self._loop = loop
        self._session = session

    def prompt(
        self,
        message: str,
        *,
        images: list[Image] | None = None,
        streaming_behavior: StreamingBehavior | None = None,
        budget: BudgetLimits | None = None,
    ) -> Run:
        """Sends a message. The run that comes back has its events and its outcome."""
        begin = self._session.prompt
        run = self._loop.do(
            lambda: begin(message, images=images, streaming_behavior=streaming_behavior, budget=budget)
        )
        return Run(self._loop, run)

    def ask(self, message: str, *, images: list[Image] | None = None, budget: BudgetLimits | None = None) -> str:
        """Sends a message, and gives the text of the last answer. An interrupt (Ctrl-C) stops the run."""
        return self._loop.run(self._session.ask(message, images=images, budget=budget))

    def ask_for(
        self, schema: dict[str, Any], message: str, *, images: list[Image] | None = None, budget: BudgetLimits | None = None
    ) -> Any:
        """Sends a message, and gives an answer that fits a JSON Schema."""
        return self._loop.run(self._session.ask_for(schema, message, images=images, budget=budget))

    def events(self) -> Events[SessionEvent]:
        """The events from now on."""
        return Events(self._loop, self._loop.do(self._session.events))

    def steer(self, message: str, images: list[Image] | None = None) -> None:
        """A message for the next turn of the run."""
        self._loop.run(self._session.steer(message, images))

    def follow_up(self, message: str, images: list[Image] | None = None) -> None:
        """A message for the time after the run."""
        self._loop.run(self._session.follow_up(message, images))

    def abort(self, scope: AbortScope | None = None) -> None:
        """Stops work, also of other clients; returns when it has stopped."""
        self._loop.run(self._session.abort(scope))

    def state(self) -> SessionState:
        """The state: model, thinking level, what is at work."""
        return self._loop.run(self._session.state())

    def messages(self) -> list[Message]:
        """The messages that the model gets to read."""
        return self._loop.run(self._session.messages())

    def register_tool(self, tool: Tool) -> None:
        """Gives the model a tool."""
        self._loop.run(self._session.register_tool(tool))

    def unregister_tool(self, name: str) -> None:
        """Takes a tool away."""
        self._loop.run(self._session.unregister_tool(name))

    def _called(self, type: str, fields: dict[str, Any]) -> Any:
        return self._loop.run(self._session._called(type, fields))

    def detach(self) -> None:
        """Leaves the session, which goes on."""
        self._loop.run(self._session.detach())

    def close(self, mode: str = "drain") -> None:
        """Ends the session's work, and unloads it."""
        self._loop.run(self._session.close(mode))


class Agentd(SyncCalls):
    """A connection to agentd; see `agentd_client.Agentd`."""

    def __init__(self, loop: _Loop, client: _client.Agentd) -> None:
        """Not for callers: `spawn` and `connect` make clients."""
        self._loop = loop
        self._client = client
        self._is_closed = False

    @classmethod
    def spawn(
        cls,
        *,
        program: str = "agentd",
        args: list[str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        options: ClientOptions = ClientOptions(),
    ) -> Agentd:
        """Starts `agentd --stdio`, which ends with this client."""
        return cls._begin(
            lambda: _client.Agentd.spawn(
                program=program, args=args, cwd=cwd, env=env, on_stderr=on_stderr, options=options
            )
        )

    @classmethod
    def connect(
        cls,
        *,
        socket: str | None = None,
        start: bool = False,
        agentctl: str = "agentctl",
        env: Mapping[str, str] | None = None,
        reconnect_attempts: int = 10,
        options: ClientOptions = ClientOptions(),
    ) -> Agentd:
        """Connects to the user's daemon, and starts it with `start`."""
        return cls._begin(
            lambda: _client.Agentd.connect(
                socket=socket,
                start=start,
                agentctl=agentctl,
                env=env,
                reconnect_attempts=reconnect_attempts,
                options=options,
            )
        )

    @classmethod
    def _begin(cls, begin: Callable[[], Coroutine[Any, Any, _client.Agentd]]) -> Agentd:
        loop = _Loop()
        try:
            return cls(loop, loop.run(begin()))
        except BaseException:
            loop.stop()
            raise

    @property
    def daemon(self) -> DaemonInfo:
        """The daemon: its version, its process."""
        return self._client.daemon

    def open_session(self, *, env: Mapping[str, str] | Literal["daemon"] | None = None, **fields: Any) -> Session:
        """Opens a new or stored session, or joins an open one; the arguments are those of `agentd_client.Agentd.open_session`."""
        return Session(self._loop, self._loop.run(self._client.open_session(env=env, **fields)))

    def attach_session(self, session_id: str) -> Session:
        """Joins a session by its id."""
        return Session(self._loop, self._loop.run(self._client.attach_session(session_id)))

    def current_session(self) -> Session:
        """The session that `agentd --stdio` has opened by its flags."""
        return Session(self._loop, self._loop.run(self._client.current_session()))

    def events(self) -> Events[ClientEvent]:
        """All events of this client, from now on."""
        return Events(self._loop, self._loop.do(self._client.events))

    def _called(self, type: str, fields: dict[str, Any]) -> Any:
        return self._loop.run(self._client._called(type, fields))

    def close(self) -> None:
        """Ends the connection, and the thread."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.run(self._client.close())
            self._loop.stop()

    def __enter__(self) -> Agentd:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
