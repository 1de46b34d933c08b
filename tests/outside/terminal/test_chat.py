"""The interactive client by keystrokes and screens. Every test waits for what the screen shows, and never for a time."""

import os
import re
import unittest

from terminal import Terminal


class Chat(unittest.TestCase):
    def setUp(self):
        self.terminal = Terminal()
        self.addCleanup(self.terminal.close)

    def attached(self):
        """The id of the session on the screen, as the shell tells it after leaving."""
        self.terminal.keys("C-d")
        screen = self.terminal.wait("The session goes on: agentctl attach")
        return re.search(r"agentctl attach (\S+)", screen).group(1)

    def test_first_answer_with_markdown(self):
        t = self.terminal
        first = t.chat()
        self.assertIn("Model: script/script", first)
        self.assertIn("/home/project", first)
        t.say("Say hello.")
        screen = t.wait("Greeting", "bold", "two")
        self.assertIn("› Say hello.", screen)
        self.assertNotIn("**", screen)
        self.assertNotIn("# Greeting", screen)
        self.assertRegex(t.screen(colours=True), r"\x1b\[1[0-9;]*m[^\n]*Greeting")

    def test_history(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        t.say("And now?")
        t.wait("Now it is later.")
        t.keys("Up", "Up")
        t.wait("\n› Say hello.")
        t.keys("Down")
        t.wait("\n› And now?")
        t.keys("C-c")
        t.wait("\n› Ask, or /help")
        t.keys("C-r")
        t.wait("Earlier prompts")
        t.type("hel")
        t.wait("1 of 1")
        t.keys("Enter")
        t.wait("\n› Say hello.", without=["Earlier prompts"])
        t.keys("C-c", "C-d")
        t.wait("The session goes on")
        # Another session has the prompts of this one.
        t.tmux("clear-history")
        t.type("clear; agentctl chat")
        t.keys("Enter")
        t.wait("Model: script/script")
        t.keys("Up")
        t.wait("\n› And now?")
        mode = os.stat(os.path.join(t.environment["AGENTD_DIR"], "prompt-history.jsonl")).st_mode & 0o777
        self.assertEqual(mode, 0o600)

    def test_several_lines(self):
        t = self.terminal
        t.chat()
        t.type("first")
        t.keys("C-j")
        t.type("second")
        t.wait("\n› first\n  second")
        t.keys("Enter")
        t.wait("Two lines came.")

    def test_paste(self):
        t = self.terminal
        t.chat()
        t.paste("one\ntwo")
        t.wait("\n› one\n  two")
        t.keys("C-c")
        t.wait("Ask, or /help")
        t.paste("".join(f"lines of notes {n}\n" for n in range(120)))
        t.wait("› [pasted 120 lines]")
        t.keys("Enter")
        t.wait("Many lines came.")

    def test_file_completion(self):
        t = self.terminal
        t.chat()
        t.type("What is in @not")
        t.wait("  notes.txt")
        t.keys("Tab")
        t.wait("› What is in @notes.txt")
        t.keys("Enter")
        t.wait("The file came along.")

    def test_slash_command(self):
        t = self.terminal
        t.chat()
        t.type("/rev")
        t.wait("Review a file")
        t.keys("Tab")
        t.wait("› /review", without=["Review a file"])
        t.type("main.rs")
        t.keys("Enter")
        t.wait("The template came.")
        t.say("/name Tidy up")
        t.wait("· Tidy up ·")
        t.say("/nothing")
        t.wait("There is no command /nothing.")

    def test_steering(self):
        t = self.terminal
        t.chat()
        t.say("Work.")
        t.wait("At work.", "Esc stops")
        t.say("Use two.")
        t.wait("steers: Use two.")
        with open(t.gate, "w") as gate:
            gate.write("go\n")
        screen = t.wait("It was steered.", without=["steers:", "Esc stops"])
        self.assertLess(screen.index("bash echo one"), screen.index("› Use two."))

    def test_taking_back_what_waits(self):
        t = self.terminal
        t.chat()
        t.say("Hang.")
        t.wait("It has begun.")
        t.say("Use two.")
        t.wait("steers: Use two.")
        t.keys("M-Up")
        t.wait("\n› Use two.", without=["steers:"])

    def test_abort(self):
        t = self.terminal
        t.chat()
        t.say("Hang.")
        t.wait("It has begun.", "Esc stops")
        t.keys("Escape")
        t.wait("Stopped.", without=["Esc stops"])

    def test_question_about_a_call(self):
        t = self.terminal
        t.chat("chat", "--permissions", "ask")
        made = os.path.join(t.project, "made")
        t.say("Make it.")
        t.wait("Allow this? bash", "$ touch made", "y  Yes, this once")
        t.keys("n")
        t.wait("It is not made.", without=["Allow this?"])
        self.assertFalse(os.path.exists(made))
        t.say("Make it.")
        t.wait("Allow this? bash")
        t.keys("y")
        t.wait("It is made.")
        self.assertTrue(os.path.exists(made))

    def test_model_picker(self):
        t = self.terminal
        t.chat()
        t.keys("C-p")
        t.wait("── Model", "script/script")
        t.type("script/oth")
        t.wait("› script/oth", "script/other")
        t.keys("Enter")
        t.wait("Model: script/other", without=["── Model"])
        self.assertRegex(t.screen().rstrip().splitlines()[-1], r"^ other ")

    def test_tree(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        t.say("And now?")
        t.wait("Now it is later.")
        t.say("/tree")
        t.wait("Where to go on", "• › And now?")
        t.keys("Up", "Enter")
        screen = t.wait("\n› And now?", without=["Where to go on", "Now it is later."])
        self.assertIn("Greeting", screen)
        t.keys("Enter")
        t.wait("Now it is later.")

    def test_fork(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        t.say("And now?")
        t.wait("Now it is later.")
        t.say("/fork")
        t.wait("Where to go on")
        t.keys("Up", "f")
        t.wait("a session of its own", "\n› And now?", without=["Now it is later."])

    def test_resize(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        for width, height in [(50, 16), (120, 30), (200, 50)]:
            t.tmux("resize-window", "-t", "main", "-x", str(width), "-y", str(height))
            t.wait("\n" + "─" * width + "\n› Ask, or /help", "Greeting")

    def test_scrolling(self):
        t = self.terminal
        t.chat()
        t.say("Fill the screen.")
        t.wait("row 59")
        t.keys("PageUp")
        t.wait("more (Ctrl-End)", without=["row 59"])
        t.keys("C-Home")
        t.wait("› Fill the screen.", "row 0")
        t.keys("C-End")
        t.wait("row 59", without=["more (Ctrl-End)"])

    def test_message_of_another_client(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        done = t.ctl("prompt", "--continue", "From the shell.")
        self.assertEqual((done.returncode, done.stdout), (0, "Heard from the shell.\n"), done.stderr)
        t.wait("from another client", "› From the shell.", "Heard from the shell.")

    def test_attach_shows_what_was_said(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        session = self.attached()
        t.type(f"clear; agentctl attach {session}")
        t.keys("Enter")
        t.wait("› Say hello.", "Greeting", "Ask, or /help")

    def test_daemon_restart(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        t.type("half a sent")
        t.wait("› half a sent")
        self.assertEqual(t.ctl("down").returncode, 0)
        t.wait("daemon lost", "› half a sent")
        self.assertEqual(t.ctl("up").returncode, 0)
        t.wait("› half a sent", "Greeting", without=["daemon lost"])
        t.keys("C-c")
        t.wait("Ask, or /help")
        t.say("And now?")
        t.wait("Now it is later.")

    def test_reconnecting_by_a_key(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        self.assertEqual(t.ctl("down").returncode, 0)
        t.wait("daemon lost")
        t.type("R")
        t.wait("Greeting", without=["daemon lost"])

    def test_suspend(self):
        t = self.terminal
        t.chat()
        t.type("typed")
        t.wait("› typed")
        t.keys("C-z")
        t.wait("Stopped", without=["› typed"])
        t.type("fg")
        t.keys("Enter")
        t.wait("› typed", "script")
        t.type(" more")
        t.wait("› typed more")

    def test_external_editor(self):
        t = self.terminal
        t.write("editor", "#!/bin/sh\nprintf '%s, edited' \"$(cat \"$1\")\" > \"$1\"\n")
        os.chmod(os.path.join(t.project, "editor"), 0o755)
        t.type("export VISUAL=$PWD/editor")
        t.keys("Enter")
        t.chat()
        t.type("draft")
        t.wait("› draft")
        t.keys("C-x", "C-e")
        t.wait("› draft, edited")

    def test_shell_command(self):
        t = self.terminal
        t.chat()
        t.say("!echo from the; echo shell")
        t.wait("! echo from the; echo shell", "    shell")

    def test_leaving(self):
        t = self.terminal
        t.chat()
        t.say("Say hello.")
        t.wait("Greeting")
        t.keys("C-c")
        t.wait("Ctrl-C again leaves")
        t.keys("C-c")
        t.wait("The session goes on: agentctl attach", "$", without=["Ask, or /help"])

    def test_signals_give_the_terminal_back(self):
        t = self.terminal
        t.chat()
        pid = t.tmux("list-panes", "-F", "#{pane_pid}").strip()
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            child = children.read().split()[0]
        os.kill(int(child), 15)
        t.wait("$", without=["Ask, or /help"])
        t.type("echo code $?; stty -a | grep -o ' echo '")
        t.keys("Enter")
        t.wait("code 143", "\n echo\n")

    def test_dumb_terminals_are_refused(self):
        t = self.terminal
        t.type("TERM=dumb agentctl chat; echo code $?")
        t.keys("Enter")
        t.wait("cannot show a whole screen", "code 2")


if __name__ == "__main__":
    unittest.main()
