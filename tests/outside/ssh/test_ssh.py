"""All tools over a real ssh to a real sshd."""

import base64
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from agent import Agent, Server, is_running, wait_for  # noqa: E402

ODD = ["with space", "it's \"quoted\"", "two\nlines", "end\n", "$(touch injected)`touch injected`", "-rf", "日本 い é"]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)


def edit(path, old, new):
    return ("edit", {"path": path, "edits": [{"oldText": old, "newText": new}]})


class Tools(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.work = self.server.work

    def test_all_seven_tools_work_there(self):
        calls = {
            "make": [("write", {"path": "src/a.txt", "content": "one\ntwo needle\n"})],
            "change": [edit("src/a.txt", "one", "1")],
            "look": [
                ("read", {"path": "src/a.txt"}),
                ("grep", {"pattern": "needle"}),
                ("find", {"pattern": "*.txt"}),
                ("ls", {"path": "src"}),
                ("bash", {"command": "pwd; cat src/a.txt; echo $PI_MODEL"}),
            ],
        }
        with Agent(self.server, calls) as agent:
            self.assertEqual(agent.call("make"), [("Successfully wrote to src/a.txt", False)])
            self.assertEqual(agent.call("change"), [("Successfully replaced 1 block(s) in src/a.txt.", False)])
            self.assertEqual(
                [text for text, _ in agent.call("look")],
                [
                    "1\ntwo needle\n",
                    "src/a.txt:2: two needle",
                    "src/a.txt",
                    "a.txt",
                    f"{self.work}\n1\ntwo needle\none\n",
                ],
            )
            self.assertEqual((self.work / "src/a.txt").read_text(), "1\ntwo needle\n")
            # The user's own command, and the folder that the model is told.
            shown = agent.ask(type="bash", command="pwd; exit 3")["data"]
            self.assertEqual((shown["output"], shown["exitCode"]), (f"{self.work}\n", 3))
            # One connection for all of that.
            self.assertEqual(len(self.server.connections()), 1)
        wait_for("the end of the connection", lambda: not self.server.connections())

    def test_the_home_directory_is_the_default(self):
        with Agent(self.server, {"where": [("bash", {"command": "pwd"})]}, directory="") as agent:
            self.assertEqual(agent.call("where"), [(f"{self.server.root}/home\n", False)])

    def test_names_are_never_code(self):
        calls = {
            "make": [("write", {"path": f"{name}/{name}", "content": "needle"}) for name in ODD],
            "change": [edit(f"./{name}/{name}", "needle", "a needle") for name in ODD],
            "look": [("read", {"path": f"./{name}/{name}"}) for name in ODD]
            + [("grep", {"pattern": "needle"}), ("find", {"pattern": "*"}), ("ls", {})],
        }
        with Agent(self.server, calls) as agent:
            for name in ("make", "change"):
                self.assertEqual([failed for _, failed in agent.call(name)], [False] * len(ODD))
            *read, grep, find, ls = [text for text, _ in agent.call("look")]
        self.assertEqual(read, ["a needle"] * len(ODD))
        self.assertEqual(grep.count(":1: a needle"), len(ODD))
        for name in ODD:
            self.assertIn(f"{name}/{name}", find)
            self.assertIn(f"{name}/", ls)
            self.assertEqual((self.work / name / name).read_text(), "a needle")
        self.assertEqual(list(self.server.root.rglob("injected")), [])

    def test_big_files_and_images(self):
        big = "0123456789abcde\n" * 500_000
        (self.work / "big").write_text(big)
        (self.work / "middle").write_text(big[:160_000] + "unique\n")
        (self.work / "picture").write_bytes(PIXEL)
        calls = {
            "write": [("write", {"path": "copy", "content": big})],
            "read": [("read", {"path": "big", "offset": 499_999}), ("read", {"path": "picture"})],
            "edit": [edit("middle", "unique", "one")],
        }
        with Agent(self.server, calls) as agent:
            agent.call("write")
            self.assertEqual((self.work / "copy").read_text(), big)
            text, picture = [text for text, _ in agent.call("read")]
            self.assertEqual(text, "0123456789abcde\n0123456789abcde\n")
            self.assertIn("image", picture)
            self.assertEqual([failed for _, failed in agent.call("edit")], [False])
        self.assertEqual((self.work / "middle").read_text(), big[:160_000] + "one\n")

    def test_parallel_edits_of_one_file_all_land(self):
        count = 20
        (self.work / "file").write_text("".join(f"line {n}.\n" for n in range(count)))
        (self.work / "link").symlink_to("file")
        calls = {"all": [edit(["file", "link"][n % 2], f"line {n}.", f"changed {n}.") for n in range(count)]}
        with Agent(self.server, calls) as agent:
            self.assertEqual([failed for _, failed in agent.call("all")], [False] * count)
        self.assertEqual((self.work / "file").read_text(), "".join(f"changed {n}.\n" for n in range(count)))

    def pids(self, *names):
        return wait_for("the processes there", lambda: all((self.work / name).exists() for name in names)) and [
            int((self.work / name).read_text()) for name in names
        ]

    HOLD = "echo $$ >one.new; mv one.new one; (trap '' TERM HUP INT; echo $BASHPID >two.new; mv two.new two; sleep 1000) & sleep 1000"

    def test_an_abort_kills_what_runs_there(self):
        with Agent(self.server, {"hold": [("bash", {"command": self.HOLD})]}) as agent:

            def abort():
                self.pids("one", "two")
                agent.send(type="abort")

            self.assertEqual(agent.call("hold", abort), [("Command aborted", True)])
            for pid in self.pids("one", "two"):
                wait_for("its end", lambda: not is_running(pid))

    def test_a_timeout_kills_what_runs_there(self):
        with Agent(self.server, {"hold": [("bash", {"command": self.HOLD, "timeout": 8})]}) as agent:
            self.assertEqual(agent.call("hold"), [("Command timed out after 8 seconds", True)])
            for pid in self.pids("one", "two"):
                wait_for("its end", lambda: not is_running(pid))

    def test_the_end_of_agentd_kills_what_runs_there(self):
        with Agent(self.server, {"hold": [("bash", {"command": self.HOLD})]}) as agent:
            agent.send(type="prompt", message="hold")
            pids = self.pids("one", "two")
            agent.process.kill()
            for pid in pids:
                wait_for("its end", lambda: not is_running(pid))

    def test_a_lost_connection_is_an_error_and_the_next_call_works(self):
        calls = {"hold": [("bash", {"command": f"echo begun; {self.HOLD}"})], "again": [("bash", {"command": "echo hi"})]}
        with Agent(self.server, calls) as agent:

            def cut():
                self.pids("one", "two")
                self.server.cut()

            [(text, failed)] = agent.call("hold", cut)
            self.assertTrue(failed)
            self.assertRegex(text, r"^begun\n\n\n(The connection to box was lost|Cannot reach box by ssh: )")
            for pid in self.pids("one", "two"):
                wait_for("its end", lambda: not is_running(pid))
            self.assertEqual(agent.call("again"), [("hi\n", False)])

    def test_what_is_left_in_the_background_ends_with_the_session(self):
        command = "sleep 1000 >/dev/null 2>&1 & echo $!"
        with Agent(self.server, {"leave": [("bash", {"command": command})]}) as agent:
            [(text, _)] = agent.call("leave")
            self.assertTrue(is_running(int(text)))
        wait_for("its end", lambda: not is_running(int(text)))

    def refusal(self, host):
        with Agent(self.server, host=host) as agent:
            response = agent.ask(type="prompt", message="hello")
        self.assertFalse(response["success"])
        return response["error"]

    def test_who_cannot_get_in_is_told_why(self):
        self.assertRegex(self.refusal("stranger"), r"^Cannot reach stranger by ssh: .*Permission denied .*set up a key")
        self.assertRegex(self.refusal("nobody"), r"^Cannot reach nobody by ssh: .*Connection refused")
        self.server.write_known_hosts("other_host")
        self.assertRegex(self.refusal("box"), r"^Cannot reach box by ssh: .*Host key verification failed.*by hand: ssh box")

    def test_a_folder_that_is_not_there_is_told(self):
        with Agent(self.server, directory=":/no/such folder") as agent:
            response = agent.ask(type="prompt", message="hello")
        expected = "Working directory /no/such folder on box cannot be entered: ENOENT: no such file or directory"
        self.assertEqual(response["error"], expected)


class ToolSsh(unittest.TestCase):
    """The tool `ssh` of a session that works here."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        key = self.server.root / "user"
        self.hosts = {
            "build": {"host": "127.0.0.1", "port": self.server.port, "key": str(key), "description": "builds"},
            "stranger": {"host": "127.0.0.1", "port": self.server.port, "key": str(self.server.root / "stranger")},
        }

    def ssh(self, command, host="build", **more):
        return ("ssh", {"host": host, "command": command, **more})

    def test_commands_and_files_of_a_host(self):
        work = self.server.work
        (work / "a.txt").write_text("one\ntwo\n")
        calls = {
            "look": [
                self.ssh("pwd; cat a.txt; exit 3", cwd=str(work)),
                self.ssh("sleep 100", timeout=1),
                self.ssh("true", host="stranger"),
                self.ssh("true", host="127.0.0.1"),
                ("read", {"path": f"ssh://build{work}/a.txt"}),
                ("read", {"path": f"ssh://build{work}"}),
            ],
            "change": [("write", {"path": f"ssh://build{work}/b.txt", "content": "new"})],
        }
        with Agent(self.server, calls, hosts=self.hosts) as agent:
            texts = [text for text, _ in agent.call("look")]
            self.assertEqual(texts[0], f"{work}\none\ntwo\n\n\nCommand exited with code 3")
            self.assertTrue(texts[1].startswith("Command timed out after 1 seconds"), texts[1])
            self.assertIn("Permission denied (publickey)", texts[2])
            self.assertIn("Unknown host", texts[3])
            self.assertEqual(texts[4:], ["one\ntwo\n", "a.txt\n"])
            wrote = f"Successfully wrote 3 bytes to ssh://build{work}/b.txt"
            self.assertEqual(agent.call("change"), [(wrote, False)])
            self.assertEqual((work / "b.txt").read_text(), "new")
            # One connection for all of that, whose socket nobody else can reach.
            self.assertEqual(len(self.server.connections()), 1)
            [folder] = (agent.root / "tmp").glob("agentd-ssh-*")
            self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
            tmp = agent.root / "tmp"
            agent.process.stdin.close()
            agent.process.stdout.read()
            agent.process.wait()
            self.assertEqual(list(tmp.glob("agentd-ssh-*")), [])
        wait_for("the end of the connection", lambda: not self.server.connections())

    def test_an_abort_ends_the_command_there(self):
        pid = self.server.work / "pid"
        calls = {"long": [self.ssh(f"echo $$ > {pid}; sleep 1000")]}
        with Agent(self.server, calls, hosts=self.hosts) as agent:

            def stop():
                number = int(wait_for("the command", lambda: pid.exists() and pid.read_text().strip()))
                self.assertTrue(is_running(number))
                agent.send(type="abort")
                wait_for("the end of the command", lambda: not is_running(number))

            [(text, failed)] = agent.call("long", while_running=stop)
            self.assertTrue(failed and "aborted" in text, text)

    def test_a_key_that_is_not_known_is_refused(self):
        self.server.write_known_hosts("other_host")
        with Agent(self.server, {"try": [self.ssh("true")]}, hosts=self.hosts) as agent:
            [(text, failed)] = agent.call("try")
            self.assertTrue(failed and "HOST IDENTIFICATION HAS CHANGED" in text or "verification failed" in text, text)


if __name__ == "__main__":
    unittest.main()
