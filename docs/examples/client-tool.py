#!/usr/bin/env python3
"""Gives the model a tool of ours: python3 client-tool.py PROMPT [flags of agentd]"""
import json
import random
import subprocess
import sys

TOOL = {
    "name": "coin",
    "description": "Throws a coin, and says what came up each time.",
    "parameters": {
        "type": "object",
        "properties": {"times": {"type": "integer", "minimum": 1, "maximum": 100}},
        "required": ["times"],
    },
}


def throw(args):
    return ", ".join(random.choice(["heads", "tails"]) for _ in range(args["times"]))


agentd = subprocess.Popen(
    ["agentd", "--stdio", "--no-session", *sys.argv[2:]],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
)


def send(**command):
    agentd.stdin.write(json.dumps(command) + "\n")
    agentd.stdin.flush()


send(type="hello", protocol=1, client={"name": "coin"})
send(type="register_tools", tools=[TOOL])
send(type="prompt", message=sys.argv[1])
for line in agentd.stdout:
    event = json.loads(line)
    if event["type"] == "tool_request":
        result = {"content": [{"type": "text", "text": throw(event["args"])}]}
        send(type="tool_response", requestId=event["requestId"], result=result)
    elif event["type"] == "message_end" and event["message"]["role"] == "assistant":
        print(*[block["text"] for block in event["message"]["content"] if block["type"] == "text"])
    elif event["type"] == "response" and not event["success"]:
        sys.exit(event["error"])
    elif event["type"] == "agent_settled":
        break
agentd.stdin.close()
sys.exit(agentd.wait())
