"""The tool eval with Jupyter's own client and kernel: cells, their state, what they show, interrupts, and that nothing is left."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

AGENTD = str(Path(os.environ["AGENTD_BIN_DIR"]) / "agentd")
PNG = (
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c636060600000000400"
    "01f61738550000000049454e44ae426082"
)


class Session:
    """A session whose model runs cells, one after the other; a context manager."""

    def __init__(self, cells):
        self.cells = cells

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="agentd-outside-")
        root = Path(self.folder.name).resolve()
        for name in ("home", "agent", "project", "tmp"):
            (root / name).mkdir()
        steps = []
        for number, cell in reversed(list(enumerate(self.cells))):
            arguments = {"language": "jupyter:python3", "timeout": 60, **cell}
            call = {"toolCall": {"id": f"c{number}", "name": "eval", "arguments": arguments}}
            when = {"prompt": "go", "results": number} if number else {"prompt": "go"}
            steps.append({"when": when, "emit": [call]})
        steps.insert(0, {"when": {"prompt": "go", "results": len(self.cells)}, "emit": [{"text": "Done."}]})
        script = root / "script.json"
        script.write_text(json.dumps({"steps": steps}))
        model = {"id": "one", "contextWindow": 100000, "maxTokens": 1000}
        provider = {"api": "scripted", "baseUrl": str(script), "apiKey": "none", "models": [model]}
        (root / "agent/models.json").write_text(json.dumps({"providers": {"script": provider}}))
        evaluation = {"enabled": True, "languages": ["jupyter:python3"], "python": sys.executable}
        settings = {"defaultProvider": "script", "defaultModel": "one", "eval": evaluation}
        (root / "agent/settings.json").write_text(json.dumps(settings))
        self.tmp = root / "tmp"
        env = {"HOME": str(root / "home"), "AGENTD_DIR": str(root / "agent"), "TMPDIR": str(self.tmp), "PATH": os.environ["PATH"]}
        self.daemon = subprocess.Popen(
            [AGENTD, "--stdio", "--no-session"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=root / "project", text=True
        )
        return self

    def results(self):
        """The results of all cells, once the session has settled."""
        self.daemon.stdin.write(json.dumps({"type": "prompt", "message": "go"}) + "\n")
        self.daemon.stdin.flush()
        results = []
        for line in self.daemon.stdout:
            event = json.loads(line)
            if event.get("type") == "message_end" and event["message"]["role"] == "toolResult":
                results.append(event["message"])
            if event.get("type") == "agent_settled":
                return results
        raise AssertionError("the daemon has ended")

    def close(self):
        self.daemon.stdin.close()
        self.daemon.wait(timeout=60)

    def __exit__(self, *_):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()
        self.folder.cleanup()


def text(result):
    return "".join(block.get("text", "") for block in result["content"])


class Jupyter(unittest.TestCase):
    def test_cells(self):
        show = f"from IPython.display import Image\nImage(bytes.fromhex('{PNG}'))"
        cells = [
            {"code": "n = 1\nprint('said')\nn + 41"},
            {"code": "while True: n += 1", "timeout": 2},
            {"code": "n > 1000"},
            {"code": show},
            {"code": "1/0"},
            {"code": "import os; os._exit(3)"},
            {"code": "'n' in globals()"},
        ]
        with Session(cells) as session:
            results = session.results()
            said = [text(result) for result in results]
            self.assertEqual(said[0], "said\n42\n")
            self.assertIn("KeyboardInterrupt", said[1])
            self.assertEqual(said[2], "True\n")
            self.assertEqual([block["type"] for block in results[3]["content"]][-1], "image", results[3])
            self.assertIn("ZeroDivisionError: division by zero", said[4])
            self.assertNotIn("\x1b", said[4])
            self.assertIn("the kernel ended with code 3", said[5])
            self.assertIn("kernel of earlier cells is gone", said[6])
            self.assertTrue(said[6].endswith("False\n"), said[6])
            session.close()
            # The first kernel's was removed by the second one; a kernel that is killed with its session leaves its own to the next.
            self.assertLessEqual(len(list(session.tmp.glob("agentd-jupyter-*"))), 1)


if __name__ == "__main__":
    unittest.main()
