"""Connections to a daemon: a child process, or the local socket."""

from __future__ import annotations

import asyncio
import os
import stat
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ._error import AgentdError
from ._socket_path import socket_path

_SHOWN_STDERR = 4096
"""How much of stderr an error shows, in characters."""

_END_GRACE_S = 5.0
"""How long agentd may take to end after the end of its input."""

_TERM_GRACE_S = 2.0
"""How long it may take to end after SIGTERM."""


@dataclass
class Transport:
    """A pair of byte streams."""

    reader: StreamReader
    writer: StreamWriter
    reason: Callable[[], Awaitable[AgentdError]]
    """Why the connection has ended, asked after the end of `reader`."""
    finish: Callable[[], Awaitable[None]]
    """Ends the connection in order."""

    def write(self, line: str) -> None:
        """Sends a line; it must not contain a line feed. What cannot be sent is followed by the end of `reader`."""
        if not self.writer.is_closing():
            self.writer.write(line.encode() + b"\n")

    async def drain(self) -> None:
        """Waits until what was written is on its way, as far as memory is concerned."""
        with suppress(ConnectionError):
            await self.writer.drain()


async def start_process(
    program: str,
    args: list[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    on_stderr: Callable[[str], object] | None,
) -> Transport:
    """Starts `agentd --stdio` as a child process."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, "--stdio", *args, cwd=cwd, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
    except OSError as error:
        why = "there is no such program" if isinstance(error, FileNotFoundError) else str(error)
        hint = "Install agentd, or name it by the argument program."
        raise AgentdError("not_started", f"{program} does not start: {why}.", hint=hint) from error
    assert process.stdin and process.stdout and process.stderr
    said = _Stderr(on_stderr)
    listening = asyncio.create_task(said.read(process.stderr))

    async def reason() -> AgentdError:
        # An agentd whose output has ended is of no use any more, even if it has not ended itself.
        await _ended(process, _TERM_GRACE_S)
        # A process that agentd started may hold its stderr open: what it said last is not waited for in vain.
        await asyncio.wait([listening], timeout=_TERM_GRACE_S)
        code = process.returncode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        text = said.text.strip()
        return AgentdError("connection_lost", f"agentd has ended ({how})" + (f": {text}" if text else "."))

    async def finish() -> None:
        assert process.stdin
        process.stdin.close()
        await _ended(process, _END_GRACE_S)
        listening.cancel()
        await asyncio.wait([listening])

    return Transport(process.stdout, process.stdin, reason, finish)


class _Stderr:
    """The end of what a child says."""

    def __init__(self, told: Callable[[str], object] | None) -> None:
        self.text = ""
        self._told = told

    async def read(self, stream: StreamReader) -> None:
        while chunk := await stream.read(4096):
            text = chunk.decode("utf-8", "replace")
            self.text = (self.text + text)[-_SHOWN_STDERR:]
            if self._told:
                self._told(text)


async def _ended(process: Process, grace: float) -> None:
    """Waits for the end of the process, and enforces it after the time."""
    for wait, end in ((grace, process.terminate), (_TERM_GRACE_S, process.kill)):
        try:
            await asyncio.wait_for(process.wait(), wait)
            return
        except (asyncio.TimeoutError, TimeoutError):
            with suppress(ProcessLookupError):
                end()
    await process.wait()


async def open_socket(path: str | None, start: bool, agentctl: str, env: Mapping[str, str] | None) -> Transport:
    """Connects to the daemon's socket, and starts the daemon where that is wanted and none runs."""
    variables = os.environ if env is None else env
    place = path or socket_path(variables)
    streams = await _connected(place)
    if streams is None and start:
        await _start_daemon(agentctl, {**variables, "AGENTD_SOCKET": place})
        streams = await _connected(place)
    if streams is None:
        hint = "Start it by `agentctl up`, or set the argument start."
        raise AgentdError("not_started", f"No daemon listens at {place}.", hint=hint)
    reader, writer = streams

    async def reason() -> AgentdError:
        writer.close()
        return AgentdError("connection_lost", "The daemon has ended the connection.")

    async def finish() -> None:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    return Transport(reader, writer, reason, finish)


async def _connected(path: str) -> tuple[StreamReader, StreamWriter] | None:
    """A connection; None where no process listens."""
    try:
        about = os.lstat(path)
        # In a folder that everyone can write to, another user may have made the socket. Root makes those of a service manager.
        if about.st_uid not in (os.getuid(), 0):
            raise AgentdError("not_started", f"The socket {path} belongs to user {about.st_uid}.")
        if not stat.S_ISSOCK(about.st_mode):
            raise AgentdError("not_started", f"{path} is no socket.")
        return await asyncio.open_unix_connection(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        raise AgentdError("not_started", f"The socket {path} cannot be used: {error}") from error


async def _start_daemon(agentctl: str, env: Mapping[str, str]) -> None:
    """Runs `agentctl up`, which returns when the daemon answers."""
    try:
        process = await asyncio.create_subprocess_exec(
            agentctl, "up", "--json", env=env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=PIPE
        )
    except OSError as error:
        hint = "Install agentd, or name agentctl by the argument agentctl."
        raise AgentdError("not_started", f"{agentctl} does not start: {error}", hint=hint) from error
    _, said = await process.communicate()
    if process.returncode != 0:
        text = said.decode("utf-8", "replace").strip()
        raise AgentdError("not_started", text or f"`{agentctl} up` ended with {process.returncode}.")
