"""A session that this client follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._calls import OnAnswer
from ._channel import Channel
from ._error import AgentdError
from ._event_queue import EventQueue, Flow
from ._run import Run, RunHost
from ._tools import Tool
from ._typed_calls import AsyncCalls

if TYPE_CHECKING:
    from ._events import SessionEvent
    from .protocol import AbortScope, BudgetLimits, Image, Message, PermissionRule, SessionState, StreamingBehavior

_ANSWER_TOOL = "submit_answer"
"""The tool by which the model gives an answer of a schema; `agentctl prompt --output-schema` calls it so, too."""

_MORE_ATTEMPTS = 2
"""How often the model is asked again for such an answer."""

_ASK_AGAIN = (
    f"You have to give your answer by the tool {_ANSWER_TOOL}: call it now, with the answer as its arguments. "
    "Text outside of the call is not read."
)


@dataclass
class SessionHost:
    """What a session needs of its client."""

    flow: Flow
    high_water_mark: int
    call: Callable[[dict[str, Any], OnAnswer | None], Awaitable[Any]]
    add_tool: Callable[[str, Tool], None]
    remove_tool: Callable[[str, str], None]
    left: Callable[[str], None]
    """The client does not follow the session any more."""


class Session(AsyncCalls):
    """A session that this client follows. Made by `Agentd`."""

    def __init__(self, channel: Channel, host: SessionHost) -> None:
        self.id = channel.session_id
        """Its id."""
        self._channel = channel
        self._host = host

    def prompt(
        self,
        message: str,
        *,
        images: list[Image] | None = None,
        streaming_behavior: StreamingBehavior | None = None,
        budget: BudgetLimits | None = None,
    ) -> Run:
        """Sends a message. The run that comes back has its events and its outcome; a refusal is there, too.

        `streaming_behavior` says where the message goes while a run is active: to its next turn (`steer`), or after it (`followUp`).
        Without it such a prompt fails with `busy`. `budget` limits the run, beside the settings.
        """
        fields = {"images": images, "streamingBehavior": streaming_behavior, "budget": budget}
        order = {"type": "prompt", "message": message, "sessionId": self.id, **_given(fields)}

        async def abort() -> None:
            await self.abort()

        host = RunHost(
            channel=self._channel,
            flow=self._host.flow,
            high_water_mark=self._host.high_water_mark,
            send=lambda on_answer: self._host.call(order, on_answer),
            abort=abort,
            state=self.state,
            messages=self.messages,
        )
        return Run(host)

    async def ask(
        self, message: str, *, images: list[Image] | None = None, budget: BudgetLimits | None = None
    ) -> str:
        """Sends a message, and gives the text of the last answer. Cancelling it stops the run."""
        async with self.prompt(message, images=images, budget=budget) as run:
            return (await run.result()).text

    async def ask_for(
        self, schema: dict[str, Any], message: str, *, images: list[Image] | None = None, budget: BudgetLimits | None = None
    ) -> Any:
        """Sends a message, and gives an answer that fits a JSON Schema.

        The model gives it by calling a tool, whose arguments agentd checks; where it does not, it is asked again, twice at most.
        Raises `bad_answer` when that does not help.
        """
        # The arguments of a tool are an object: any other answer is one of them.
        is_argument = schema.get("type") != "object"
        answers: list[Any] = []

        async def execute(args: dict[str, Any], _: object) -> Any:
            answers.append(args["answer"] if is_argument else args)
            return {"content": [{"type": "text", "text": "The answer was taken."}], "terminate": True}

        tool = Tool(
            name=_ANSWER_TOOL,
            description="Takes the final answer to the request. Only its arguments are read. Call it once, when the work is done.",
            parameters=_in_an_argument(schema) if is_argument else schema,
            guidelines=[f"When the work is done, call {_ANSWER_TOOL} with the answer."],
            execute=execute,
        )
        rules = await self._allow_answers()
        try:
            await self.register_tool(tool)
            try:
                for text in (message, *[_ASK_AGAIN] * _MORE_ATTEMPTS):
                    await self.ask(text, images=images if text is message else None, budget=budget)
                    if answers:
                        return answers[-1]
            finally:
                await self.unregister_tool(_ANSWER_TOOL)
        finally:
            if rules is not None:
                await self.call("set_permissions", rules=rules)
        raise AgentdError(
            "bad_answer",
            f"The model gave no answer that fits the schema, though it was asked {_MORE_ATTEMPTS + 1} times.",
            command="prompt",
        )

    def events(self) -> EventQueue[SessionEvent]:
        """The events from now on. A reader that lags behind lets agentd wait. The iterator ends with the session."""
        stops: list[Callable[[], None]] = []
        queue: EventQueue[SessionEvent] = EventQueue(
            self._host.flow, self._host.high_water_mark, lambda: [stop() for stop in stops]
        )
        stops.append(self._channel.listen(queue.push, queue.finish))
        return queue

    async def steer(self, message: str, images: list[Image] | None = None) -> None:
        """A message for the next turn of the run."""
        await self.call("steer", message=message, images=images or [])

    async def follow_up(self, message: str, images: list[Image] | None = None) -> None:
        """A message for the time after the run."""
        await self.call("follow_up", message=message, images=images or [])

    async def abort(self, scope: AbortScope | None = None) -> None:
        """Stops work, also of other clients; returns when it has stopped."""
        await self.call("abort", **_given({"scope": scope}))

    async def state(self) -> SessionState:
        """The state: model, thinking level, what is at work."""
        return await self.call("get_state")

    async def messages(self) -> list[Message]:
        """The messages that the model gets to read."""
        return (await self.call("get_messages"))["messages"]

    async def register_tool(self, tool: Tool) -> None:
        """Gives the model a tool."""
        self._host.add_tool(self.id, tool)
        try:
            await self.call("register_tools", tools=[tool.declaration()])
        except AgentdError as error:
            # After a lost connection it is registered with the others.
            if error.code != "connection_lost" or self._channel.has_ended:
                self._host.remove_tool(self.id, tool.name)
                raise

    async def unregister_tool(self, name: str) -> None:
        """Takes a tool away."""
        self._host.remove_tool(self.id, name)
        if not self._channel.has_ended:
            await self.call("unregister_tools", tools=[name])

    async def _called(self, type: str, fields: dict[str, Any]) -> Any:
        return await self._host.call({"type": type, **fields, "sessionId": self.id}, None)

    async def detach(self) -> None:
        """Leaves the session, which goes on."""
        await self.call("detach_session")
        self._host.left(self.id)

    async def close(self, mode: str = "drain") -> None:
        """Ends the session's work (`drain` finishes it, `abort` stops it), and unloads it."""
        await self.call("close_session", mode=mode)
        self._host.left(self.id)

    async def _allow_answers(self) -> list[PermissionRule] | None:
        """Lets the model give its answer where the session has permissions; what comes back are the rules to restore."""
        permissions = (await self.state()).get("permissions")
        if not permissions:
            return None
        before = permissions.get("sessionRules", [])
        await self.call("set_permissions", rules=[*before, {"tool": _ANSWER_TOOL, "action": "allow"}])
        return before


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _in_an_argument(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for an object with one field of this schema. Definitions stay at the top, where references look for them."""
    kept = ("$schema", "$defs", "definitions")
    return {
        **{key: schema[key] for key in kept if key in schema},
        "type": "object",
        "properties": {"answer": {key: value for key, value in schema.items() if key not in kept}},
        "required": ["answer"],
        "additionalProperties": False,
    }
