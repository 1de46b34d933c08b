"""A terminal of tmux with a home of its own, in which agentctl runs with the scripted model."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid

PROGRAMS = os.environ["AGENTD_BIN_DIR"]

# How long a screen may take to show something. Only a test that fails waits so long.
MOST_SECONDS = int(os.environ.get("CHAT_TEST_SECONDS", "60"))

SCRIPT = [
    {"when": {"prompt": "Say hello."},
     "emit": [{"text": "# Greeting\n\nThis is **bold** and `code`.\n\n- one\n- two\n"}, {"usage": {"input": 1200, "output": 30}}]},
    {"when": {"prompt": "And now?"}, "emit": [{"text": "Now it is later."}]},
    {"when": {"prompt": "Hang."}, "emit": [{"text": "It has begun."}, {"hang": True}]},
    {"when": {"prompt": "Work.", "results": 0},
     "emit": [{"text": "At work."}, {"waitForFile": "gate"}, {"toolCall": {"name": "bash", "arguments": {"command": "echo one"}}}]},
    {"when": {"prompt": "Use two."}, "emit": [{"text": "It was steered."}]},
    {"when": {"prompt": "Make it.", "results": 0},
     "emit": [{"text": "I make it."}, {"toolCall": {"name": "bash", "arguments": {"command": "touch made"}}}]},
    {"when": {"prompt": "Make it.", "resultIsError": False}, "emit": [{"text": "It is made."}]},
    {"when": {"prompt": "Make it.", "resultIsError": True}, "emit": [{"text": "It is not made."}]},
    {"when": {"prompt": "Change it.", "results": 0},
     "emit": [{"thinking": "The greeting is in main.rs.\nI change it there."}, {"text": "The greeting is in `main.rs`:"},
              {"toolCall": {"name": "edit", "arguments": {"path": "main.rs", "oldText": "hello", "newText": "good morning"}}}]},
    {"when": {"prompt": "Change it."},
     "emit": [{"text": "Done. It now reads:\n\n```rust\nfn main() {\n    println!(\"good morning\");\n}\n```\n\n| file | lines |\n|---|---|\n"
               "| main.rs | +1 -1 |\n"}, {"usage": {"input": 5400, "output": 210}}]},
    {"when": {"promptContains": "lines of notes"}, "emit": [{"text": "Many lines came."}]},
    {"when": {"promptContains": "first\nsecond"}, "emit": [{"text": "Two lines came."}]},
    {"when": {"promptContains": "a secret word"}, "emit": [{"text": "The file came along."}]},
    {"when": {"promptContains": "Review this:"}, "emit": [{"text": "The template came."}]},
    {"when": {"prompt": "From the shell."}, "emit": [{"text": "Heard from the shell."}]},
    {"when": {"prompt": "Fill the screen."}, "emit": [{"text": "".join(f"row {n}\n\n" for n in range(60))}]},
]


class Terminal:
    """A shell in a terminal. Its daemon ends with it."""

    def __init__(self, width=90, height=24):
        self.root = tempfile.mkdtemp(prefix="chat-")
        self.home = os.path.join(self.root, "home")
        self.project = os.path.join(self.home, "project")
        agent = os.path.join(self.home, ".agentd")
        os.makedirs(self.project)
        os.makedirs(os.path.join(agent, "prompts"), mode=0o700)
        os.chmod(agent, 0o700)
        self.write("main.rs", 'fn main() {\n    println!("hello");\n}\n')
        self.write("notes.txt", "a secret word\n")
        with open(os.path.join(agent, "script.json"), "w") as file:
            json.dump({"steps": SCRIPT}, file)
        self.gate = os.path.join(agent, "gate")
        os.mkfifo(self.gate)
        models = [{"id": "script", "contextWindow": 200000}, {"id": "other", "contextWindow": 100000}]
        provider = {"api": "scripted", "baseUrl": os.path.join(agent, "script.json"), "apiKey": "none", "models": models}
        with open(os.path.join(agent, "models.json"), "w") as file:
            json.dump({"providers": {"script": provider}}, file)
        with open(os.path.join(agent, "settings.json"), "w") as file:
            json.dump({"defaultProvider": "script", "defaultModel": "script"}, file)
        with open(os.path.join(agent, "prompts", "review.md"), "w") as file:
            file.write("---\ndescription: Review a file\n---\nReview this: $1\n")
        self.environment = {
            "HOME": self.home, "AGENTD_DIR": agent, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
            "SHELL": "/bin/bash", "PS1": "$ ", "EDITOR": "",
        }
        self.server = f"chat-{uuid.uuid4()}"
        self.pane = "main"
        shell = ["bash", "--norc", "--noprofile", "-i"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "main", "-x", str(width), "-y", str(height), "-c", self.project,
                  "env", "-u", "TMUX", "PS1=$ ", *shell)
        self.tmux("set-option", "-g", "escape-time", "0")
        self.wait("$")

    def write(self, name, text):
        with open(os.path.join(self.project, name), "w") as file:
            file.write(text)

    def tmux(self, *words, data=None):
        done = subprocess.run(["tmux", "-L", self.server, *words], input=data, env=self.environment | {"TERM": "xterm-256color"},
                              cwd=self.project, capture_output=True, text=True, check=True)
        return done.stdout

    def ctl(self, *words):
        """Runs agentctl beside the terminal."""
        done = subprocess.run([os.path.join(PROGRAMS, "agentctl"), *words], env=self.environment, cwd=self.project,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MOST_SECONDS)
        return done

    def keys(self, *names):
        """Presses keys by their names in tmux: Enter, C-c, M-Up."""
        self.tmux("send-keys", "-t", self.pane, *names)

    def type(self, text):
        self.tmux("send-keys", "-t", self.pane, "-l", text)

    def say(self, text):
        """Types a message and sends it, once all of it is on the screen."""
        self.type(text)
        self.wait(f"› {text}")
        self.keys("Enter")

    def paste(self, text):
        self.tmux("load-buffer", "-", data=text)
        self.tmux("paste-buffer", "-p", "-t", self.pane)

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", "-t", self.pane, *(["-e"] if colours else []))

    def wait(self, *texts, without=()):
        """Waits until all these texts are on the screen, and none of the others."""
        end = time.monotonic() + MOST_SECONDS
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and not any(text in screen for text in without):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"{texts} without {without} is not on the screen:\n{screen}")
            time.sleep(0.02)

    def chat(self, *flags):
        """Starts the interactive client, and waits for its first screen."""
        self.type(" ".join(["agentctl", *flags]))
        self.keys("Enter")
        return self.wait("Ask, or /help", "script")

    def close(self):
        try:
            self.ctl("down", "--abort")
        finally:
            subprocess.run(["tmux", "-L", self.server, "kill-server"], env=self.environment, capture_output=True)
            shutil.rmtree(self.root, ignore_errors=True)
