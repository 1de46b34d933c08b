"""Drives agentd, a headless coding agent.

`Agentd.spawn()` starts an agentd of one's own, `Agentd.connect()` joins the daemon that all clients of the user share. The same
without asyncio is in `agentd_client.sync`; the types of all commands and events are in `agentd_client.protocol`.
"""

from ._client import Agentd
from ._error import AgentdError
from ._event_queue import EventQueue
from ._lines import LineSplitter
from ._options import ClientOptions
from ._questions import Denied, QuestionHandlers
from ._results import RunResult, RunUsage, text_of
from ._run import Run
from ._session import Session
from ._socket_path import socket_path
from ._tools import Tool, ToolCall

__all__ = [
    "Agentd",
    "AgentdError",
    "ClientOptions",
    "Denied",
    "EventQueue",
    "LineSplitter",
    "QuestionHandlers",
    "Run",
    "RunResult",
    "RunUsage",
    "Session",
    "Tool",
    "ToolCall",
    "socket_path",
    "text_of",
]
