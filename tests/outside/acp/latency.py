#!/usr/bin/env python3
"""Measures `agentd acp` beside `agentd --stdio`: from a provider's byte to the line on stdout, and from session/new to its answer.

    python3 tests/outside/acp/latency.py target/release/agentd [--deltas 2000]

A model server in this process sends one delta every millisecond, with the time in its text. Both wires are read by the same loop, one
after the other in turns, so that what Python and the pipe cost is in both figures; the difference is what the protocol adds.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time

MARK = re.compile(rb"<(\d+)>")


def serve(listener, deltas):
    """Answers each request with a stream of timed deltas."""

    def chunk(data):
        body = f"data: {json.dumps(data)}\n\n".encode()
        return b"%x\r\n%s\r\n" % (len(body), body)

    def answer(connection):
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    head += piece
                head, rest = head.split(b"\r\n\r\n", 1)
                length = int(re.search(rb"content-length: (\d+)", head, re.I).group(1))
                while len(rest) < length:
                    rest += connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                piece = {"id": "r", "object": "chat.completion.chunk", "model": "m"}
                for _ in range(deltas):
                    time.sleep(0.001)
                    text = f"<{time.monotonic_ns()}>"
                    connection.sendall(chunk({**piece, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}))
                end = {**piece, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
                connection.sendall(chunk(end) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


class Agent:
    def __init__(self, program, arguments, home, project):
        environment = {"HOME": str(home), "AGENTD_DIR": str(home / ".agentd"), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project, env=environment)

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, number, method, params):
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.until(lambda line: f'"id":{number},'.encode() in line)

    def until(self, wanted, times=None):
        for line in self.process.stdout:
            now = time.monotonic_ns()
            if times is not None and b"delta" in line or b"agent_message_chunk" in line:
                mark = MARK.search(line)
                if mark and times is not None:
                    times.append(now - int(mark.group(1)))
            if wanted(line):
                return line
        raise SystemExit("agentd ended")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def stdio(program, home, project):
    agent = Agent(program, ["--stdio", "--no-session"], home, project)
    times = []
    agent.send({"id": "1", "type": "prompt", "message": "Go."})
    agent.until(lambda line: b'"type":"agent_settled"' in line, times)
    agent.close()
    return times


def acp(program, home, project):
    agent = Agent(program, ["acp", "--no-session"], home, project)
    agent.call(1, "initialize", {"protocolVersion": 1})
    opening = []
    for number in range(2, 12):
        started = time.monotonic_ns()
        answer = json.loads(agent.call(number, "session/new", {"cwd": str(project), "mcpServers": []}))
        opening.append(time.monotonic_ns() - started)
    session = answer["result"]["sessionId"]
    times = []
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "Go."}]}
    agent.send({"jsonrpc": "2.0", "id": 99, "method": "session/prompt", "params": prompt})
    agent.until(lambda line: b'"id":99,' in line, times)
    agent.close()
    return times, opening


def shown(name, times):
    times = sorted(times)
    at = lambda part: times[min(len(times) - 1, int(len(times) * part))] / 1000
    print(f"{name:<40} median {at(0.5):8.1f} us   90 % {at(0.9):8.1f} us   99 % {at(0.99):8.1f} us   ({len(times)})")
    return statistics.median(times)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--deltas", type=int, default=2000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, options.deltas), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        (home / ".agentd").mkdir(parents=True)
        project.mkdir()
        provider = {
            "api": "openai-completions", "baseUrl": f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "apiKey": "none",
            "models": [{"id": "m", "contextWindow": 100000, "maxTokens": 1000}],
        }
        (home / ".agentd/models.json").write_text(json.dumps({"providers": {"fake": provider}}))
        program = os.path.abspath(options.program)
        plain, editor, opening = [], [], []
        for _ in range(options.rounds):
            plain += stdio(program, home, project)
            times, opened = acp(program, home, project)
            editor += times
            opening += opened
        before = shown("provider to stdout, agentd --stdio", plain)
        after = shown("provider to stdout, agentd acp", editor)
        print(f"{'added by agentd acp':<40} median {(after - before) / 1000:8.1f} us")
        shown("session/new to its answer", opening)


main()
