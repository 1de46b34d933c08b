"""Lines as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._error import AgentdError


def parsed(text: str) -> dict[str, Any]:
    """The object of a line that came; raises `protocol` where it is none."""
    try:
        line = json.loads(text)
    except ValueError as error:
        raise AgentdError("protocol", f"agentd sent a line that is no JSON: {text[:100]}") from error
    if not isinstance(line, dict) or not isinstance(line.get("type"), str):
        raise AgentdError("protocol", f"agentd sent a line without a type: {text[:100]}")
    return line


def utf8_only(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that can be sent: one that is not UTF-8 cannot be told in JSON."""
    return {key: value for key, value in variables.items() if _is_utf8(key) and _is_utf8(value)}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
