"""A private sshd, and an agentd whose scripted model calls tools on it."""

import json
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

AGENTD = str(Path(os.environ["AGENTD_BIN_DIR"]) / "agentd")
DEADLINE = 60

# One test may take so long, in seconds.
TIMEOUT = 240


def wait_for(what, look):
    """What `look` gives once it is true."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][:1] not in ("Z", "X", "")


class Server:
    """An sshd on a free port, and a program `ssh` that knows of nothing but it."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="agentd-ssh-test-")
        self.root = Path(self._folder.name).resolve()
        for name in ("bin", "work", "home"):
            (self.root / name).mkdir()
        self.work = self.root / "work"
        for name in ("host", "user", "stranger", "other_host"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.root / name)]
            subprocess.run(command, check=True)
        (self.root / "authorized_keys").write_text((self.root / "user.pub").read_text())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (self.root / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.root}/host\nPidFile {self.root}/pid\n"
            f"AuthorizedKeysFile {self.root}/authorized_keys\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            # What the user's own ~/.bashrc starts is nothing to kill in the middle.
            f"SetEnv HOME={self.root}/home\n"
        )
        if os.geteuid() == 0:
            # Where sshd goes that has no rights yet; it refuses to start without.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.write_known_hosts("host")
        (self.root / "ssh_config").write_text(
            f"Host box\n  HostName 127.0.0.1\n  Port {self.port}\n  IdentityFile {self.root}/user\n"
            f"Host stranger\n  HostName 127.0.0.1\n  Port {self.port}\n  IdentityFile {self.root}/stranger\n"
            f"Host nobody\n  HostName 127.0.0.1\n  Port 1\n"
            f"Host *\n  IdentitiesOnly yes\n  UserKnownHostsFile {self.root}/known_hosts\n"
            "  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n"
        )
        ssh = self.root / "bin/ssh"
        ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {shlex.quote(str(self.root / "ssh_config"))} "$@"\n')
        ssh.chmod(0o755)
        self.start()

    def write_known_hosts(self, key):
        public = (self.root / f"{key}.pub").read_text()
        (self.root / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}")

    def start(self):
        command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(self.root / "sshd_config")]
        self.log = open(self.root / "log", "ab")
        self.process = subprocess.Popen(command, stderr=self.log)
        wait_for("sshd", self._listens)

    def _listens(self):
        assert self.process.poll() is None, (self.root / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def connections(self):
        """The processes of sshd that serve a connection."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(fields[1]) == self.process.pid:
                found.append(int(stat.parent.name))
        return found

    def cut(self):
        """Cuts all connections at once."""
        pids = self.connections()
        assert pids, "no connection to cut"
        for pid in pids:
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                # The part without rights, which holds the socket, too; not what runs for the user.
                name = Path(f"/proc/{child}/comm").read_text()
                if name.startswith("sshd"):
                    os.kill(int(child), signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def close(self):
        self.stop()
        self._folder.cleanup()


class Agent:
    """`agentd --stdio --ssh HOST`, whose model makes the calls that a test asks for, each by its name.

    With `hosts`, a session that works here, and has the tool `ssh` for these hosts of ssh.json.
    """

    def __init__(self, server, calls=(), host="box", directory=None, hosts=None):
        self._folder = tempfile.TemporaryDirectory(prefix="agentd-outside-")
        self.root = Path(self._folder.name).resolve()
        for name in ("home", "agent", "project", "tmp"):
            (self.root / name).mkdir()
        steps = []
        for name, batch in dict(calls).items():
            steps.append({"when": {"prompt": name, "results": len(batch)}, "emit": [{"text": "Done."}]})
            made = [
                {"toolCall": {"id": f"{name}-{number}", "name": tool, "arguments": arguments}}
                for number, (tool, arguments) in enumerate(batch)
            ]
            steps.append({"when": {"prompt": name}, "emit": made})
        steps.append({"when": {"promptContains": ""}, "emit": [{"text": "Hello."}]})
        (self.root / "script.json").write_text(json.dumps({"steps": steps}))
        provider = {
            "api": "scripted",
            "baseUrl": str(self.root / "script.json"),
            "apiKey": "none",
            "models": [{"id": "one", "contextWindow": 1000000, "maxTokens": 1000}],
        }
        (self.root / "agent/models.json").write_text(json.dumps({"providers": {"script": provider}}))
        settings = {"defaultProvider": "script", "defaultModel": "one", "retry": {"enabled": False}}
        if hosts is not None:
            settings["ssh"] = {"enabled": True}
            (self.root / "agent/ssh.json").write_text(json.dumps({"hosts": hosts}))
        (self.root / "agent/settings.json").write_text(json.dumps(settings))
        env = {
            "HOME": str(self.root / "home"),
            "AGENTD_DIR": str(self.root / "agent"),
            "TMPDIR": str(self.root / "tmp"),
            "PATH": f"{server.root}/bin:{os.environ['PATH']}",
        }
        where = directory if directory is not None else f":{server.work}"
        tools = "read,bash,edit,write,grep,find,ls"
        there = ["--ssh", f"{host}{where}"] if hosts is None else []
        tools = tools if hosts is None else f"{tools},ssh"
        command = [AGENTD, "--stdio", "--no-session", "--tools", tools, *there]
        self.process = subprocess.Popen(
            command, env=env, cwd=self.root / "project", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        # A test that hangs ends, and says where.
        self._watchdog = threading.Timer(TIMEOUT, self.process.kill)
        self._watchdog.start()
        self._last = 0

    def send(self, **command):
        self._last += 1
        command["id"] = str(self._last)
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        return command["id"]

    def lines(self):
        for line in self.process.stdout:
            yield json.loads(line)
        raise AssertionError("agentd has ended")

    def until(self, kind, **fields):
        """The next line of this type with these fields."""
        for line in self.lines():
            if line["type"] == kind and all(line.get(name) == value for name, value in fields.items()):
                return line

    def ask(self, **command):
        return self.until("response", id=self.send(**command))

    def call(self, name, while_running=None):
        """Has the model make its calls; their texts and whether they failed, in their order."""
        self.send(type="prompt", message=name)
        results = {}
        for line in self.lines():
            if line["type"] == "response" and not line["success"]:
                raise AssertionError(line)
            if line["type"] == "tool_execution_start" and while_running:
                while_running()
                while_running = None
            if line["type"] == "tool_execution_end":
                content = line["result"]["content"][0]
                results[line["toolCallId"]] = (content.get("text", content["type"]), line["isError"])
            if line["type"] == "agent_settled":
                return [results[key] for key in sorted(results, key=lambda key: int(key.rpartition("-")[2]))]

    def close(self):
        self._watchdog.cancel()
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        code = self.process.wait()
        self._folder.cleanup()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
