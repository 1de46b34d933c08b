"""pi-py-sdk, a Python client of the protocol, drives agentd."""

import inspect
import subprocess
import sys
import unittest
from pathlib import Path

from pi_py_sdk.client import PiAgent
from pi_py_sdk.config import PiConfig

from support import AGENTD, Home, documented

# What starts, ends or only waits and listens; all else of the class are commands.
NO_COMMANDS = {"start", "stop", "subscribe", "on_ui_request", "observe_ui_requests", "wait_for_idle"}


class Recorded:
    """The agent, and the names of its methods that were called."""

    def __init__(self, agent: PiAgent) -> None:
        self._agent = agent
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> object:
        self.called.add(name)
        return getattr(self._agent, name)


class Sdk(unittest.IsolatedAsyncioTestCase):
    async def test_every_command(self) -> None:
        with Home() as home:
            config = PiConfig(bin=AGENTD, cwd=home.project, env=home.env, provider="script", model="one")
            async with PiAgent(config=config) as inner:
                agent = Recorded(inner)
                state = await agent.get_state()
                self.assertEqual(state["model"]["id"], "one")
                self.assertEqual([model["id"] for model in await agent.get_available_models()], ["one", "two"])
                self.assertEqual((await agent.set_model("script", "two"))["id"], "two")
                self.assertEqual((await agent.cycle_model())["model"]["id"], "one")
                await agent.set_thinking_level("low")
                self.assertEqual((await agent.cycle_thinking_level())["level"], "medium")
                await agent.set_steering_mode("all")
                await agent.set_follow_up_mode("all")
                await agent.set_auto_compaction(False)
                await agent.set_auto_retry(True)
                await agent.abort_retry()

                streamed = [event.type async for event in agent.prompt_stream("hello")]
                self.assertIn("message_update", streamed)
                # This client takes `agent_end` for the end, and sends the next prompt right after it.
                waited = await agent.prompt_and_wait("use a tool")
                self.assertIn("tool_execution_end", [event.type for event in waited])
                self.assertEqual(await agent.get_last_assistant_text(), "It said hi.")
                await agent.prompt("hang")
                await agent.steer("left")
                await agent.follow_up("then")
                await agent.abort()
                self.assertFalse((await agent.get_state())["isStreaming"])

                self.assertEqual((await agent.bash("echo hi"))["output"], "hi\n")
                await agent.abort_bash()
                await agent.set_session_name("talk")
                self.assertEqual((await agent.get_state())["sessionName"], "talk")
                self.assertGreater((await agent.get_session_stats())["totalMessages"], 4)
                self.assertGreater(len(await agent.get_messages()), 4)
                page = Path(home.project) / "talk.html"
                self.assertEqual((await agent.export_html(str(page)))["path"], str(page))
                self.assertTrue(page.exists())
                self.assertIsInstance(await agent.get_commands(), list)
                points = await agent.get_fork_messages()
                self.assertEqual(points[0]["text"], "hello")
                self.assertTrue((await agent.compact())["summary"])
                self.assertEqual((await agent.fork(points[1]["entryId"]))["text"], "use a tool")
                self.assertEqual(await agent.clone(), {"cancelled": False})
                self.assertEqual(await agent.new_session(), {"cancelled": False})
                self.assertEqual(await agent.switch_session(state["sessionFile"]), {"cancelled": False})
                self.assertEqual((await agent.get_state())["sessionId"], state["sessionId"])

            methods = {name for name, _ in inspect.getmembers(PiAgent, inspect.isfunction) if not name.startswith("_")}
            self.assertEqual(methods - NO_COMMANDS - agent.called, set())

    def test_the_example_of_the_documentation(self) -> None:
        with Home() as home:
            script = Path(home.project) / "sdk.py"
            script.write_text(documented("sdk.py"))
            ran = subprocess.run(
                [sys.executable, str(script)], cwd=home.project, env=home.env, capture_output=True, text=True, timeout=60
            )
            self.assertEqual((ran.returncode, ran.stdout), (0, "Hello back.\n"), ran.stderr)
