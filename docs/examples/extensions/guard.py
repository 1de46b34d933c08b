#!/usr/bin/env python3
"""An extension for agentd: asks before `rm -rf`, has a tool that counts words, and the command /shout."""
import itertools
import json
import sys

TOOL = {
    "name": "count_words", "description": "Counts the words of a text", "promptSnippet": "count the words of a text",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
session = {}  # the epoch, and the name that agentd has for this extension
waiting = {}  # what is done with the answers to our calls
numbers = itertools.count(1)


def send(record):
    print(json.dumps(record), flush=True)


def answer(number, value=None):
    send({"type": "result", "id": number, "ok": True, "value": value})


def call(method, params, within, then):
    call_number = next(numbers)
    waiting[call_number] = then
    send({"id": call_number, "type": "call", "method": method, "params": params, "within": within, **session})


def on_tool_call(event, number, done):
    command = event["input"].get("command", "")
    if event["toolName"] != "bash" or "rm -rf" not in command:
        return done(None)
    verdict = {"block": True, "reason": "The user said no."}
    call("ui.confirm", {"title": "Delete?", "message": command}, number, lambda yes: done(None if yes else verdict))


for line in sys.stdin:
    record = json.loads(line)
    kind, number = record["type"], record.get("id")
    if kind == "hello":
        answer(number, {"protocol": 1})
    elif kind == "load":
        session = {"epoch": record["epoch"], "ext": record["extensions"][0]["ext"]}
        send({"type": "register", "kind": "handler", "h": 1, "event": "tool_call", **session})
        send({"type": "register", "kind": "tool", "def": TOOL, **session})
        send({"type": "register", "kind": "command", "name": "shout", "description": "Shows its text in capitals", **session})
        answer(number, {"extensions": [{"ext": session["ext"], "ok": True}]})
    elif kind == "hook":
        on_tool_call(record["event"], number, lambda value, number=number: answer(number, {"returns": [{"h": 1, "value": value}]}))
    elif kind == "tool.execute":
        count = len(record["params"]["text"].split())
        answer(number, {"content": [{"type": "text", "text": str(count)}], "details": {"count": count}})
    elif kind == "command.run":
        send({"type": "ui", "method": "notify", "message": record["args"].upper(), "notifyType": "info", **session})
        answer(number)
    elif kind == "result":
        waiting.pop(number)(record.get("value"))
    elif number is not None and kind != "cancel":  # bind, ping, shutdown
        answer(number)
