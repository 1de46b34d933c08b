"""An answer for a program: an object that fits a JSON Schema."""

import sys

from agentd_client.sync import Agentd

SCHEMA = {
    "type": "object",
    "required": ["verdict", "reasons"],
    "additionalProperties": False,
    "properties": {"verdict": {"enum": ["good", "bad"]}, "reasons": {"type": "array", "items": {"type": "string"}}},
}

with Agentd.spawn(args=["--no-session", "--tools", "read,submit_answer"]) as agentd:
    session = agentd.current_session()
    review = session.ask_for(SCHEMA, sys.argv[1] if len(sys.argv) > 1 else "Review the change in change.diff.")
    print(review["verdict"])
    for reason in review["reasons"]:
        print(f"- {reason}")
