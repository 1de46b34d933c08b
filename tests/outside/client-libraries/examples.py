"""Runs the examples of a package in homes of their own: examples.py FOLDER EXTENSION COMMAND..."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

from support import Home

FOLDER, EXTENSION, COMMAND = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

QUESTION = "Allow this?\n$ touch built"
EXPECTED = {
    "ask": ("", "A README and a test.\n"),
    "stream": (
        "",
        "Let me look.\n[bash] {'command': 'ls | wc -l'}\nThere is one.\n2 answers, 7 tokens, $0.0000\n",
    ),
    "tool": ("", "It was thrown.\n"),
    "shared": ("", "watcher: bash\nworker: There is one.\n"),
    "permission": ("y\n", "It was built.\n"),
    "first": ("", "A README and a test.\n"),
    "library": ("", "A README and a test.\n"),
    "structured": ("", "bad\n- It divides by zero.\n"),
}
if EXTENSION == "py":
    EXPECTED["first_async"] = EXPECTED["first"]


class Examples(unittest.TestCase):
    def test_every_example_is_run(self) -> None:
        found = {file.stem for file in FOLDER.glob(f"*.{EXTENSION}")}
        self.assertEqual(found, EXPECTED.keys())

    def run_example(self, name: str, said: str) -> subprocess.CompletedProcess[str]:
        place = Home(self)
        file = FOLDER / f"{name}.{EXTENSION}"
        return subprocess.run(
            [*COMMAND, str(file)], env=place.env, cwd=place.project, input=said, capture_output=True, text=True, timeout=120
        )

    def test_examples_print_what_the_page_says(self) -> None:
        for name, (said, expected) in EXPECTED.items():
            with self.subTest(name):
                run = self.run_example(name, said)
                # Python and JavaScript write an object differently.
                printed = run.stdout.replace('{"command":"ls | wc -l"}', "{'command': 'ls | wc -l'}")
                self.assertEqual((printed, run.returncode), (expected, 0), run.stderr)

    def test_a_no_is_told_to_the_model(self) -> None:
        run = self.run_example("permission", "n\n")
        self.assertEqual(run.stdout, "Then not.\n", run.stderr)
        self.assertIn(QUESTION, run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
