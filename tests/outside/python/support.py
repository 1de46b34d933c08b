"""What the Python suites share: a home of its own for each test, with a scripted model in it."""

import json
import os
import re
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
AGENTD = str(Path(os.environ["AGENTD_BIN_DIR"]) / "agentd")

STEPS = [
    {"when": {"prompt": "use a tool", "results": 1}, "emit": [{"text": "It said hi."}]},
    {
        "when": {"prompt": "use a tool"},
        "emit": [{"toolCall": {"id": "call_1", "name": "bash", "arguments": {"command": "echo hi"}}}],
    },
    {"when": {"prompt": "hang"}, "emit": [{"text": "Thinking about it"}, {"hang": True}]},
    {"when": {"promptContains": ""}, "emit": [{"text": ["Hello ", "back."]}, {"usage": {"input": 20, "output": 4}}]},
]


class Home:
    """A temporary home whose models are `script/one` (it reasons) and `script/two`; a context manager."""

    def __enter__(self) -> "Home":
        self._folder = tempfile.TemporaryDirectory(prefix="agentd-outside-")
        self.root = Path(self._folder.name).resolve()
        for name in ("home", "agent", "project", "tmp"):
            (self.root / name).mkdir()
        script = self.root / "script.json"
        script.write_text(json.dumps({"steps": STEPS}))
        models = [
            {"id": "one", "contextWindow": 100000, "maxTokens": 1000, "reasoning": True},
            {"id": "two", "contextWindow": 100000, "maxTokens": 1000},
        ]
        provider = {"api": "scripted", "baseUrl": str(script), "apiKey": "none", "models": models}
        (self.root / "agent/models.json").write_text(json.dumps({"providers": {"script": provider}}))
        settings = {"defaultProvider": "script", "defaultModel": "one", "compaction": {"keepRecentTokens": 2}}
        (self.root / "agent/settings.json").write_text(json.dumps(settings))
        self.project = str(self.root / "project")
        self.env = {
            "HOME": str(self.root / "home"),
            "PI_CODING_AGENT_DIR": str(self.root / "agent"),
            "AGENTD_DIR": "",
            "TMPDIR": str(self.root / "tmp"),
            "PATH": os.pathsep.join([os.environ["AGENTD_BIN_DIR"], os.environ["PATH"]]),
        }
        return self

    def __exit__(self, *exc: object) -> None:
        self._folder.cleanup()


def documented(name: str) -> str:
    """The code block of docs/clients.md whose first line names the file."""
    text = (REPOSITORY / "docs/clients.md").read_text()
    for block in re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if re.match(rf"(//|#) {re.escape(name)}\n", block):
            return str(block)
    raise LookupError(f"docs/clients.md has no code block that begins with the file name {name}")
