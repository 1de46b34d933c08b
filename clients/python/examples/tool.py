"""A tool of ours, which the model can call."""

import random
import sys
from typing import Any

from agentd_client.sync import Agentd, Tool, ToolCall


def throw(args: dict[str, Any], call: ToolCall) -> str:
    return ", ".join(random.choice(["heads", "tails"]) for _ in range(args["times"]))


COIN = Tool(
    name="coin",
    description="Throws a coin, and says what came up each time.",
    parameters={
        "type": "object",
        "properties": {"times": {"type": "integer", "minimum": 1, "maximum": 100}},
        "required": ["times"],
    },
    execute=throw,
)

with Agentd.spawn(args=["--no-session"]) as agentd:
    session = agentd.current_session()
    session.register_tool(COIN)
    print(session.ask(sys.argv[1] if len(sys.argv) > 1 else "Throw the coin three times."))
