"""What the Python package promises, with the real agentd."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import unittest
from typing import Any

from agentd_client import Agentd, AgentdError, Denied, QuestionHandlers, Session, Tool, ToolCall, socket_path, sync

from support import Home, Proxy, connected, first, is_delta, spawned

PARAMETERS = {"type": "object", "properties": {"times": {"type": "integer"}}}


def coin(execute: Any) -> Tool:
    return Tool(name="coin", description="Throws a coin.", parameters=PARAMETERS, execute=execute)


class Conversations(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.place = Home(self)

    async def asyncSetUp(self) -> None:
        # The loop of a test tells of slow callbacks, which say something of the machine alone.
        asyncio.get_running_loop().slow_callback_duration = 60

    async def fails(self, work: Any, code: str) -> AgentdError:
        with self.assertRaises(AgentdError) as caught:
            await work
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception

    async def opened(self, agentd: Agentd, **fields: Any) -> Session:
        return await agentd.open_session(cwd=self.place.project, env=self.place.env, **fields)

    async def test_a_prompt_streams_its_events_and_has_a_result(self) -> None:
        session = await spawned(self, self.place)
        run = session.prompt("How many files are there?")
        types = [event["type"] async for event in run]
        self.assertEqual(await run.accepted(), "started")
        self.assertEqual((types[0], types[-1]), ("agent_start", "agent_settled"))
        result = await run
        self.assertEqual((result.text, result.stop_reason), ("There is one.", "stop"))
        self.assertEqual((result.turns, result.tool_calls, result.usage.input, result.usage.output), (2, 1, 30, 7))
        text = [delta async for delta in session.prompt("What is in this folder?").text()]
        self.assertEqual(text, ["A README ", "and a test."])
        self.assertEqual([message["role"] for message in await session.messages()].count("user"), 2)

    async def test_failures_have_codes_and_what_came(self) -> None:
        session = await spawned(self, self.place)
        error = await self.fails(session.ask("Fail."), "model_failed")
        self.assertEqual(error.result and error.result.turns, 1)
        await self.fails(session.call("set_model", provider="none", modelId="none"), "no_model")
        async with session.prompt("Hang.") as run:
            await first(run.__aiter__(), is_delta)
            await self.fails(session.ask("Again?"), "busy")
        error = await self.fails(run.result(), "aborted")
        self.assertEqual(error.result and error.result.text, "Thinking")
        self.assertEqual(await session.ask("Hi."), "Well.")

    async def test_cancelling_a_question_stops_its_run(self) -> None:
        session = await spawned(self, self.place)
        events = session.events()
        asking = asyncio.create_task(session.ask("Hang."))
        await first(events, is_delta)
        asking.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await asking
        self.assertFalse((await session.state())["isStreaming"])

    async def test_steering_follow_ups_and_a_prompt_that_waits_belong_to_the_run(self) -> None:
        session = await spawned(self, self.place)
        run = session.prompt("Wait.")
        await first(run.__aiter__(), is_delta)
        await session.steer("What is in this folder?")
        queued = session.prompt("Hi.", streaming_behavior="followUp")
        self.assertEqual(await queued.accepted(), "queued")
        await asyncio.to_thread(self.place.open_gate)
        self.assertEqual((await queued).text, "Well.")
        self.assertEqual((await run).turns, 3)

    async def test_a_slow_reader_loses_nothing_and_commands_are_answered_meanwhile(self) -> None:
        session = await spawned(self, self.place, high_water_mark=8)
        run, events = session.prompt("Count."), session.events()
        deltas: list[str] = []
        async for delta in run.text():
            deltas.append(delta)
            if len(deltas) == 5000:
                self.assertTrue((await session.state())["isStreaming"])
            # The other reader is as slow.
            while not is_delta(await events.__anext__()):
                pass
        self.assertEqual(deltas, [f"{number} " for number in range(20000)])

    async def test_an_iterator_that_nobody_reads_does_not_keep_a_result_away(self) -> None:
        session = await spawned(self, self.place, high_water_mark=8)
        unread = session.events()
        self.assertEqual(len(await session.ask("Count.")), 108890)
        self.assertEqual((await unread.__anext__())["type"], "agent_start")

    async def test_a_client_that_is_too_slow_for_the_others_catches_up(self) -> None:
        slow = await connected(self, self.place, high_water_mark=8)
        session = await self.opened(slow)
        fast = (await (await connected(self, self.place)).attach_session(session.id)).events()
        run = session.prompt("Count.")
        await run.accepted()
        await first(fast, lambda event: event["type"] == "agent_settled")
        types = {event["type"] async for event in run}
        self.assertIn("lagged", types)
        self.assertEqual(len((await run).text), 108890)
        self.assertEqual(await session.ask("Hi."), "Well.")

    async def test_a_prompt_that_is_refused_does_not_stop_the_work_of_others(self) -> None:
        session = await spawned(self, self.place)
        run = session.prompt("Wait.")
        await first(run.__aiter__(), is_delta)
        refused = session.prompt("Again?")
        await refused.abort()
        await self.fails(refused.result(), "busy")
        await asyncio.to_thread(self.place.open_gate)
        self.assertEqual((await run).text, "Before. While away.")

    async def test_tools_progress_failures_and_cancellation(self) -> None:
        session = await spawned(self, self.place)

        def throw(args: Any, call: ToolCall) -> str:
            call.progress("spinning")
            return f"heads, {args['times']}"

        await session.register_tool(coin(throw))
        run = session.prompt("Throw the coin three times.")
        updates = [event["partialResult"]["content"][0]["text"] async for event in run if event["type"] == "tool_execution_update"]  # type: ignore[typeddict-item]
        self.assertEqual(updates, ["spinning"])
        self.assertEqual((await run).text, "It was thrown.")

        async def fail(args: Any, call: ToolCall) -> str:
            raise ValueError("no coin")

        await session.register_tool(coin(fail))
        self.assertEqual(await session.ask("Throw the coin three times."), "It could not be thrown.")

        called, cancelled = asyncio.Event(), asyncio.Event()

        async def wait(args: Any, call: ToolCall) -> str:
            called.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return ""

        await session.register_tool(coin(wait))
        stopped = session.prompt("Throw the coin three times.")
        await called.wait()
        await stopped.abort()
        await cancelled.wait()
        await session.unregister_tool("coin")
        names = [tool["name"] for tool in (await session.call("get_tools"))["tools"]]
        self.assertNotIn("coin", names)

    async def test_permission_questions(self) -> None:
        asked: list[Any] = []
        answers: list[Any] = ["once", Denied("I do not want it."), None]
        waiting, gone = asyncio.Event(), asyncio.Event()

        async def may_run(question: Any) -> Any:
            asked.append(question)
            answer = answers.pop(0)
            if answer is None:
                waiting.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    gone.set()
                    raise
            return answer

        handlers = QuestionHandlers(on_permission=may_run)
        agentd = await connected(self, self.place, name="first", questions=handlers)
        session = await self.opened(agentd, ephemeral=True, args=["--permissions", "workspace"])
        self.assertEqual(await session.ask("Build the project."), "It was built.")
        self.assertEqual(asked[0]["command"], "touch built")
        self.assertEqual(await session.ask("Build the project."), "Then not.")
        run = session.prompt("Build the project.")
        await waiting.wait()
        # A client that comes later finds the question, and answers it.
        second = await connected(self, self.place, questions=QuestionHandlers(on_permission=lambda question: "once"))
        await second.attach_session(session.id)
        self.assertEqual((await run).text, "It was built.")
        await gone.wait()

    async def test_other_questions_and_a_handler_that_raises(self) -> None:
        (self.place.root / "project/.pi").mkdir()
        (self.place.root / "project/.pi/SYSTEM.md").write_text("Be short.")
        told: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

        async def select(question: Any) -> str:
            raise ValueError(question["options"][0])

        agentd = await connected(
            self, self.place, questions=QuestionHandlers(on_select=select), on_error=lambda error: told.set_result(error)
        )
        await self.opened(agentd)
        self.assertIsInstance(await told, ValueError)

    async def test_answers_of_a_schema(self) -> None:
        session = await spawned(self, self.place, "--permissions", "read-only")
        self.assertEqual(await session.ask_for({"type": "integer"}, "Words first."), 7)
        permissions: Any = (await session.state())["permissions"]
        self.assertEqual(permissions.get("sessionRules", []), [])
        await session.call("set_model", provider="script", modelId="never")
        await self.fails(session.ask_for({"type": "integer"}, "A number?"), "bad_answer")
        names = [tool["name"] for tool in (await session.call("get_tools"))["tools"]]
        self.assertNotIn("submit_answer", names)

    async def proxied(self) -> tuple[Proxy, Agentd]:
        self.place.agentctl("up")
        cable, path = Proxy(socket_path(self.place.env)), str(self.place.root / "proxy.sock")
        server = await cable.listen(path)
        self.addCleanup(server.close)
        return cable, await connected(self, self.place, path)

    async def test_events_that_were_missed_come_none_twice(self) -> None:
        cable, agentd = await self.proxied()
        session = await self.opened(agentd)
        connection, events = agentd.events(), session.events()

        async def numbers() -> list[int]:
            return [event["seq"] async for event in events if "seq" in event]  # type: ignore[typeddict-item]

        counting = asyncio.create_task(numbers())
        run = session.prompt("Wait.")
        text = ""
        async for delta in run.text():
            text += delta
            if text == "Before.":
                cable.cut()
                await first(connection, lambda event: event["type"] == "connection")
                await asyncio.to_thread(self.place.open_gate)
                # The daemon goes on meanwhile.
                while json.loads(await asyncio.to_thread(self.place.agentctl, "status", "--json"))["runningSessions"]:
                    pass
                cable.mend()
        self.assertEqual((text, (await run).text), ("Before. While away.",) * 2)
        await session.close()
        found = await counting
        self.assertEqual(found, list(range(found[0], found[0] + len(found))))

    async def test_a_prompt_whose_answer_was_lost_is_sent_again_and_runs_once(self) -> None:
        cable, agentd = await self.proxied()
        session = await self.opened(agentd)
        other = await (await connected(self, self.place)).attach_session(session.id)
        seen = other.events()
        cable.deafen()
        run = session.prompt("What is in this folder?")
        await first(seen, lambda event: event["type"] == "agent_settled")
        cable.cut()
        cable.mend()
        self.assertEqual((await run).text, "A README and a test.")
        self.assertEqual([message["role"] for message in await session.messages()].count("user"), 1)

    async def test_a_killed_daemon(self) -> None:
        agentd = await connected(self, self.place)
        session = await self.opened(agentd)
        await session.register_tool(coin(lambda args, call: "heads, tails"))
        self.assertEqual(await session.ask("Hi."), "Well.")
        events, run = session.events(), session.prompt("Hang.")
        await first(run.__aiter__(), is_delta)
        pid = agentd.daemon["pid"]
        os.kill(pid, signal.SIGKILL)
        error = await self.fails(run.result(), "connection_lost")
        self.assertIn("messages", error.hint or "")
        resync: Any = await first(events, lambda event: event["type"] == "resync")
        self.assertTrue(resync["isOtherDaemon"])
        self.assertNotEqual(agentd.daemon["pid"], pid)
        self.assertEqual(await session.ask("Throw the coin three times."), "It was thrown.")

    async def test_an_agentd_of_ones_own_that_dies_ends_everything_that_waits(self) -> None:
        agentd = await Agentd.spawn(cwd=self.place.project, env=self.place.env, args=["--no-session"])
        session = await agentd.current_session()
        events, run = session.events(), session.prompt("Hang.")
        await first(run.__aiter__(), is_delta)
        os.kill(agentd.daemon["pid"], signal.SIGKILL)
        error = await self.fails(run.result(), "connection_lost")
        self.assertIn("signal 9", str(error))
        await self.fails(first(events, lambda event: False), "connection_lost")
        await self.fails(session.state(), "connection_lost")
        await agentd.close()

    async def test_close(self) -> None:
        agentd = await Agentd.spawn(cwd=self.place.project, env=self.place.env, args=["--no-session"])
        session = await agentd.current_session()
        events, pid = session.events(), agentd.daemon["pid"]
        await agentd.close()
        self.assertEqual([event async for event in events if event["type"] != "extension_ui_request"], [])
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)
        await self.fails(session.ask("Hi."), "closed")
        await self.fails(agentd.call("get_state"), "closed")

    async def test_what_cannot_be_reached_is_named(self) -> None:
        none = str(self.place.root / "none")
        for work in (
            Agentd.spawn(program=none),
            Agentd.connect(env=self.place.env),
            Agentd.connect(env=self.place.env, start=True, agentctl=none),
        ):
            self.assertTrue((await self.fails(work, "not_started")).hint)
        error = await self.fails(Agentd.spawn(env=self.place.env, args=["--no-such-flag"]), "connection_lost")
        self.assertIn("no-such-flag", str(error))

    def test_agentctl_finds_the_same_socket(self) -> None:
        long = self.place.root / ("x" * 110)
        long.mkdir(mode=0o700)
        runtime = {"XDG_RUNTIME_DIR": str(self.place.root / "tmp")}
        for more in ({}, runtime, {"AGENTD_DIR": ""}, {"AGENTD_DIR": str(long)}, {"AGENTD_DIR": "~//agent/./"}, {"AGENTD_DIR": "~/tmp/../agent"}):
            self.place.env.update(more)
            status = json.loads(self.place.agentctl("status", "--json"))
            self.assertEqual(socket_path(self.place.env, str(self.place.root)), status["socket"], more)


class Synchronous(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Home(self)

    def test_the_same_without_asyncio(self) -> None:
        asked: list[str] = []

        def may_run(question: Any) -> Any:
            asked.append(question["command"])
            return "once"

        options = sync.ClientOptions(questions=QuestionHandlers(on_permission=may_run))
        args = ["--no-session", "--permissions", "workspace"]
        with sync.Agentd.spawn(cwd=self.place.project, env=self.place.env, args=args, options=options) as agentd:
            session = agentd.current_session()
            self.assertEqual(session.ask("Build the project."), "It was built.")
            self.assertEqual(asked, ["touch built"])
            self.assertEqual("".join(session.prompt("What is in this folder?").text()), "A README and a test.")
            with self.assertRaises(AgentdError) as caught:
                session.ask("Fail.")
            self.assertEqual(caught.exception.code, "model_failed")
            with session.prompt("Hang.") as run:
                for event in run:
                    if is_delta(event):
                        break
            with self.assertRaises(AgentdError) as caught:
                run.result()
            self.assertEqual(caught.exception.code, "aborted")
            self.assertEqual(session.ask_for({"type": "integer"}, "Words first."), 7)
            events = session.events()
        self.assertEqual(list(events), [])
        with self.assertRaises(AgentdError) as caught:
            session.state()
        self.assertEqual(caught.exception.code, "closed")
        self.assertFalse([thread for thread in threading.enumerate() if thread.name == "agentd-client"])

    def test_two_clients_of_the_daemon(self) -> None:
        with sync.Agentd.connect(env=self.place.env, start=True) as worker, sync.Agentd.connect(env=self.place.env) as watcher:
            session = worker.open_session(cwd=self.place.project, env=self.place.env)
            events = watcher.attach_session(session.id).events()
            self.assertEqual(session.ask("Hi."), "Well.")
            for event in events:
                if event["type"] == "agent_settled":
                    break
            events.close()


if __name__ == "__main__":
    unittest.main()
