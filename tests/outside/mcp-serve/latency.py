#!/usr/bin/env python3
"""Measures the tool `prompt` of `agentd mcp serve` beside the same prompt over `agentd --stdio`, with the scripted model.

    python3 tests/outside/mcp-serve/latency.py target/release/agentd [--calls 200]

Each call is timed from its line on stdin to its answer on stdout (over --stdio: to `agent_settled`), both ways in turns and read by the same
loop. "new session" begins one with each call, as --stdio does by `new_session`; "same session" goes on in it.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

SCRIPT = {"steps": [{"when": {"promptContains": ""}, "emit": [{"text": ["Well, ", "yes."]}, {"usage": {"input": 30, "output": 2}}]}]}


class Program:
    def __init__(self, program, arguments, home, project):
        environment = {"HOME": str(home), "AGENTD_DIR": str(home / ".agentd"), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project, env=environment)

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, *marks):
        for line in self.process.stdout:
            if any(mark in line for mark in marks):
                return line
        raise SystemExit("agentd ended")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(call):
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1e6


class Stdio(Program):
    def prompt(self, new):
        if new:
            self.send({"id": "n", "type": "new_session"})
            self.until(b'"id":"n"')
        self.send({"type": "prompt", "message": "Go."})
        self.until(b'"type":"agent_settled"')


class Served(Program):
    number = 0
    session = None

    def call(self, method, params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        answer = json.loads(self.until(f'"id":{self.number},'.encode()))
        assert "error" not in answer, answer
        return answer["result"]

    def prompt(self, new):
        given = {"prompt": "Go."} if new or self.session is None else {"prompt": "Go.", "sessionId": self.session}
        result = self.call("tools/call", {"name": "prompt", "arguments": given})
        assert not result.get("isError"), result
        self.session = result["structuredContent"]["sessionId"]


def shown(name, times):
    times = sorted(times)
    at = lambda part: times[min(len(times) - 1, int(len(times) * part))]
    print(f"{name:<44} median {at(0.5):7.2f} ms   90 % {at(0.9):7.2f} ms   99 % {at(0.99):7.2f} ms   ({len(times)})")
    return statistics.median(times)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--calls", type=int, default=200)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        (home / ".agentd").mkdir(parents=True)
        project.mkdir()
        (home / "script.json").write_text(json.dumps(SCRIPT))
        provider = {"api": "scripted", "baseUrl": str(home / "script.json"), "apiKey": "none", "models": [{"id": "m", "contextWindow": 1000000, "maxTokens": 1000}]}
        (home / ".agentd/models.json").write_text(json.dumps({"providers": {"script": provider}}))
        program = os.path.abspath(options.program)
        started = time.perf_counter_ns()
        served = Served(program, ["mcp", "serve"], home, project)
        served.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "latency", "version": "1"}})
        ready = (time.perf_counter_ns() - started) / 1e6
        served.call("tools/list", {})
        plain = Stdio(program, ["--stdio"], home, project)
        for kind, new in [("new session", True), ("same session", False)]:
            there, here = [], []
            for number in range(options.calls + 10):
                one, two = timed(lambda: plain.prompt(new)), timed(lambda: served.prompt(new))
                # The first ones warm up.
                if number >= 10:
                    there.append(one)
                    here.append(two)
            before = shown(f"{kind}: agentd --stdio", there)
            after = shown(f"{kind}: agentd mcp serve, tool prompt", here)
            print(f"{kind + ': added':<44} median {after - before:7.2f} ms")
        print(f"{'start of the process to the handshake':<44} {ready:14.2f} ms")
        plain.close()
        served.close()


main()
