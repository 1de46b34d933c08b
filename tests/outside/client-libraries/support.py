"""A home of its own for each test, with the scripted model in it, and a way to cut connections."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from agentd_client import Agentd, ClientOptions, Session

T = TypeVar("T")

BINARIES = os.environ["AGENTD_BIN_DIR"]
SCRIPT = os.environ["AGENTD_CLIENT_SCRIPT"]


class Home:
    """A temporary home whose models are `script/one` and `script/never`."""

    def __init__(self, test: unittest.TestCase) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="agentd-client-")).resolve()
        self.env = {
            "HOME": str(self.root),
            "AGENTD_DIR": str(self.root / "agent"),
            "TMPDIR": str(self.root / "tmp"),
            "PATH": f"{BINARIES}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
        }
        for name in ("agent", "project", "tmp"):
            (self.root / name).mkdir(mode=0o700)
        test.addCleanup(self._remove)
        shutil.copy(SCRIPT, self.root / "script.json")
        models = {"api": "scripted", "baseUrl": str(self.root / "script.json"), "apiKey": "none"}
        models["models"] = [{"id": "one"}, {"id": "never"}]  # type: ignore[assignment]
        (self.root / "agent/models.json").write_text(json.dumps({"providers": {"script": models}}))
        (self.root / "agent/settings.json").write_text('{"defaultProvider": "script", "defaultModel": "one"}')
        os.mkfifo(self.root / "gate")

    @property
    def project(self) -> str:
        return str(self.root / "project")

    def agentctl(self, *args: str) -> str:
        run = subprocess.run(["agentctl", *args], env=self.env, cwd=self.root, capture_output=True, text=True)
        return run.stdout

    def open_gate(self) -> None:
        """Lets the answer to "Wait." go on. Fails where no answer waits any more."""
        subprocess.run(["timeout", "60", "/bin/sh", "-c", f"echo > '{self.root / 'gate'}'"], check=True)

    def _remove(self) -> None:
        self.agentctl("down", "--abort")
        shutil.rmtree(self.root, ignore_errors=True)


class Proxy:
    """A socket between client and daemon. `cut` breaks all connections; until `mend` new ones are refused."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._is_deaf = False

    async def listen(self, path: str) -> asyncio.AbstractServer:
        return await asyncio.start_unix_server(self._accept, path)

    def deafen(self) -> None:
        """What the daemon says is lost from now on."""
        self._is_deaf = True

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = self._is_deaf = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        daemon_reader, daemon_writer = await asyncio.open_unix_connection(self._target)
        pair = {writer, daemon_writer}
        self._writers |= pair
        copies = [
            asyncio.ensure_future(self._copy(reader, daemon_writer, False)),
            asyncio.ensure_future(self._copy(daemon_reader, writer, True)),
        ]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for copy in copies:
            copy.cancel()
        self._writers -= pair
        for end in pair:
            end.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_be_lost: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if not (may_be_lost and self._is_deaf):
                    writer.write(data)
                    await writer.drain()


async def spawned(test: unittest.IsolatedAsyncioTestCase, place: Home, *args: str, **options: Any) -> Session:
    """The session of an agentd of its own."""
    agentd = await Agentd.spawn(
        cwd=place.project, env=place.env, args=["--no-session", *args], options=ClientOptions(**options)
    )
    test.addAsyncCleanup(agentd.close)
    return await agentd.current_session()


async def connected(test: unittest.IsolatedAsyncioTestCase, place: Home, socket: str | None = None, **options: Any) -> Agentd:
    """A client of the home's daemon."""
    agentd = await Agentd.connect(socket=socket, start=True, env=place.env, options=ClientOptions(**options))
    test.addAsyncCleanup(agentd.close)
    return agentd


async def first(events: AsyncIterator[T], fits: Callable[[Any], bool]) -> T:
    """The first event that fits."""
    async for event in events:
        if fits(event):
            return event
    raise AssertionError("the events have ended before it came")


def is_delta(event: Any) -> bool:
    return bool(event["type"] == "message_update" and event["assistantMessageEvent"]["type"] == "text_delta")
