"""Where the user's daemon listens."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ._error import AgentdError

_MAX_BYTES = 107
"""The longest path of a socket: the system's field has 108 bytes, and the last one ends it."""


def socket_path(env: Mapping[str, str] | None = None, cwd: str | None = None) -> str:
    """The socket of the user's daemon, by the rules of agentd.

    `AGENTD_SOCKET`, else in `XDG_RUNTIME_DIR`, else in the agent directory (`AGENTD_DIR`, else `PI_CODING_AGENT_DIR`, else
    `~/.agentd`); a path that is too long moves to the temporary directory.
    """
    variables = os.environ if env is None else env
    folder = os.getcwd() if cwd is None else cwd
    home = variables.get("HOME")

    def expanded(path: str) -> str:
        if home and (path == "~" or path.startswith("~/")):
            return _joined(folder, _joined(home, path[1:].lstrip("/")))
        return _joined(folder, path)

    socket = variables.get("AGENTD_SOCKET")
    if socket:
        return expanded(socket)
    named = variables.get("AGENTD_DIR") or variables.get("PI_CODING_AGENT_DIR")
    standard = _joined(folder, _joined(home, ".agentd")) if home else None
    agent_dir = expanded(named) if named else standard
    if agent_dir is None:
        raise AgentdError(
            "not_started", "There is no agent directory: HOME is not set.", hint="Set HOME or AGENTD_DIR."
        )
    file = f"agentd-{_hash(agent_dir):08x}.sock"
    runtime = variables.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime):
        is_standard = standard is not None and _parts(agent_dir) == _parts(standard)
        path = os.path.join(runtime, "agentd", "agentd.sock" if is_standard else file)
    else:
        path = os.path.join(agent_dir, "run/agentd.sock")
    if _fits(path):
        return path
    below = os.path.join(f"agentd-{os.getuid()}", file)
    temporary = variables.get("TMPDIR") or variables.get("TMP") or variables.get("TEMP")
    if temporary:
        path = os.path.join(_joined(folder, temporary), below)
    return path if temporary and _fits(path) else os.path.join("/tmp", below)


def _joined(folder: str, path: str) -> str:
    # `..` stays: agentd does not take it out either, since what it leads to depends on links.
    return os.path.join(folder, path) if path else folder


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= _MAX_BYTES


def _hash(path: str) -> int:
    """FNV-1a of 32 bits over the path's parts, each ended by a zero byte; the root is the part `/`."""
    parts = ["/", *_parts(path)]
    result = 0x811C9DC5
    for byte in os.fsencode("\0".join(parts) + "\0"):
        result = ((result ^ byte) * 0x01000193) & 0xFFFFFFFF
    return result
