"""A prompt and the work that it begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._channel import Channel
from ._error import AgentdError
from ._event_queue import EventQueue, Flow
from ._results import RunResult

if TYPE_CHECKING:
    from types import TracebackType

    from ._events import SessionEvent
    from .protocol import Disposition, Message, SessionState


@dataclass
class RunHost:
    """What a run needs of its session."""

    channel: Channel
    flow: Flow
    high_water_mark: int
    send: Callable[[Callable[[Any, bool], None]], Awaitable[Any]]
    """Sends the prompt; its argument is called before the events after the answer."""
    abort: Callable[[], Awaitable[None]]
    state: Callable[[], Awaitable[SessionState]]
    messages: Callable[[], Awaitable[list[Message]]]


class Run:
    """A prompt and the work that it begins.

    Iterate over it for its events, until the session has settled; await `result()`, or the run itself, for the outcome. The events
    wait for their reader, and let agentd wait when there are many: `result()` without an iterator gives them up. Leaving the
    loop early does not stop the work; `abort()` does, and so does leaving `async with session.prompt(…) as run`.
    """

    def __init__(self, host: RunHost) -> None:
        self._host = host
        self._queue: EventQueue[SessionEvent] = EventQueue(host.flow, host.high_water_mark)
        self._tally = RunResult()
        self._outcome: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()
        self._is_iterated = False
        self._is_accepted = False
        self._is_stopped = False
        # What came before the answer, from the begin of a run on; of use only if the prompt had to be sent again.
        self._early: list[SessionEvent] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._unlisten = host.channel.listen(self._take, self._ended)
        self._sending = asyncio.ensure_future(self._send())
        # `result()` raises the same; asyncio need not report it.
        self._sending.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def accepted(self) -> Disposition:
        """Whether the prompt has begun a run or waits in a queue; raises when it was refused."""
        return await asyncio.shield(self._sending)

    async def result(self) -> RunResult:
        """The outcome, once the session has settled.

        Raises AgentdError when the prompt is refused, the model fails (`model_failed` or a closer code), a budget is used up
        (`limit_reached`) or the run is stopped (`aborted`); its `result` then holds what came.
        """
        if not self._is_iterated:
            self._queue.close()
        with self._host.flow.hold():
            return await asyncio.shield(self._outcome)

    async def text(self) -> AsyncIterator[str]:
        """The additions to the text of all answers, as they come."""
        async for event in self:
            if event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta":
                yield event["assistantMessageEvent"]["delta"]

    async def abort(self) -> None:
        """Stops the work, and returns when the session has settled.

        A prompt that is refused stops nothing: the work is another one's.
        """
        self._is_stopped = True
        try:
            await self.accepted()
        except AgentdError:
            # `result()` tells why.
            return
        while not self._outcome.done():
            try:
                await self._host.abort()
                return
            except AgentdError as error:
                # Lost with the connection: the next one takes it, unless the run is over.
                if error.code != "connection_lost" or self._host.channel.has_ended:
                    raise

    def __aiter__(self) -> EventQueue[SessionEvent]:
        if self._is_iterated:
            raise RuntimeError("A run can be iterated over once.")
        self._is_iterated = True
        return self._queue

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self.result().__await__()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the work, if it is not over."""
        if not self._outcome.done():
            await self.abort()
        await asyncio.wait([self._outcome])

    async def _send(self) -> Disposition:
        try:
            accepted = await self._host.send(self._on_accepted)
        except AgentdError as error:
            self._fail(error)
            raise
        disposition: Disposition = accepted["disposition"]
        return disposition

    def _ended(self, error: AgentdError | None) -> None:
        self._fail(error.again() if error else AgentdError("closed", "The session was closed."))

    def _take(self, event: SessionEvent) -> None:
        if self._is_accepted:
            self._use(event)
        elif event["type"] == "agent_start":
            self._early = [event]
        elif self._early is not None:
            self._early.append(event)

    def _on_accepted(self, accepted: Any, was_repeated: bool) -> None:
        self._is_accepted = True
        early = (self._early or []) if was_repeated else []
        self._early = None
        for event in early:
            self._use(event)
        if accepted["disposition"] == "handled":
            self._settle(False)
        elif was_repeated:
            # The run that the first sending began may be over.
            self._look_again()

    def _use(self, event: SessionEvent) -> None:
        if self._outcome.done():
            return
        self._queue.push(event)
        if event["type"] == "message_end":
            message = event["message"]
            if message["role"] == "assistant":
                self._tally.add_answer(message)
        elif event["type"] == "tool_execution_start":
            self._tally.tool_calls += 1
        elif event["type"] == "agent_settled":
            self._settle(event["aborted"])
        elif event["type"] == "resync":
            if event["isOtherDaemon"]:
                self._fail(self._interrupted())
            elif not event["state"]["isStreaming"]:
                self._look_again()

    def _look_again(self) -> None:
        self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        """Asks whether the run is over, where its last events may be lost, and takes the outcome from the messages."""
        try:
            state = await self._host.state()
            if self._outcome.done() or state["isStreaming"]:
                return
            messages = await self._host.messages()
        except AgentdError as error:
            self._fail(error)
            return
        if self._outcome.done():
            return
        for message in reversed(messages):
            if message["role"] == "user":
                break
            if message["role"] == "assistant":
                known = self._tally.message
                if known is None or known["timestamp"] != message["timestamp"]:
                    self._tally.add_answer(message)
                self._settle(message["stopReason"] == "aborted")
                return
        self._fail(self._interrupted())

    def _settle(self, is_aborted: bool) -> None:
        self._queue.finish()
        result = self._tally.copy()
        message = result.message
        if is_aborted or self._is_stopped:
            self._conclude(AgentdError("aborted", "The run was stopped.", command="prompt", result=result))
        elif message and message["stopReason"] == "error":
            code = message.get("code", "model_failed")
            text = message.get("errorMessage", "The model failed.")
            self._conclude(AgentdError(code, text, command="prompt", result=result))
        else:
            self._conclude(result)

    def _interrupted(self) -> AgentdError:
        return AgentdError(
            "connection_lost",
            "The daemon ended while it was at work.",
            hint="What was finished is in the session: read its messages.",
            command="prompt",
            result=self._tally.copy(),
        )

    def _fail(self, error: AgentdError) -> None:
        self._queue.finish(error)
        self._conclude(error)

    def _conclude(self, outcome: RunResult | AgentdError) -> None:
        if self._outcome.done():
            return
        self._unlisten_now()
        if isinstance(outcome, AgentdError):
            self._outcome.set_exception(outcome)
            # A caller that only iterates learns of it by the events; asyncio need not report it.
            self._outcome.exception()
        else:
            self._outcome.set_result(outcome)

    def _unlisten_now(self) -> None:
        # A channel that has ended calls back before `listen` returns.
        unlisten = getattr(self, "_unlisten", None)
        if unlisten:
            unlisten()
