"""Pictures of screens for docs/chat.md: SVG files, drawn from what tmux has on the screen.

    AGENTD_BIN_DIR=DIR tests/outside/terminal/run docs/images
"""

import html
import os
import re
import sys
import unicodedata

from terminal import Terminal

CELL, ROW, SIZE = 8.4, 18, 14
PALETTE = ["#1d1f21", "#cc6666", "#8fb573", "#e0b561", "#7aa6da", "#b294bb", "#6fb3b8", "#c5c8c6"]
BRIGHT = ["#7a7d80", "#e08585", "#a8cc8c", "#f0cb7d", "#93bbe8", "#c9aad2", "#8acbd0", "#ffffff"]
TEXT, GROUND = "#d4d6d8", "#16181a"


class Look:
    """What SGR sequences say so far."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.colour, self.bold, self.dim, self.italic, self.underline, self.reverse = None, False, False, False, False, False

    def take(self, numbers):
        if numbers[:2] == [38, 5]:
            self.colour = (PALETTE + BRIGHT)[numbers[2]]
            return
        for number in numbers or [0]:
            if number == 0:
                self.reset()
            elif number == 1:
                self.bold = True
            elif number == 2:
                self.dim = True
            elif number == 3:
                self.italic = True
            elif number == 4:
                self.underline = True
            elif number == 7:
                self.reverse = True
            elif number == 22:
                self.bold = self.dim = False
            elif number == 23:
                self.italic = False
            elif number == 24:
                self.underline = False
            elif number == 27:
                self.reverse = False
            elif 30 <= number <= 37:
                self.colour = PALETTE[number - 30]
            elif number == 39:
                self.colour = None
            elif 90 <= number <= 97:
                self.colour = BRIGHT[number - 90]

    def attributes(self):
        fill = GROUND if self.reverse else self.colour or TEXT
        words = [f'fill="{fill}"']
        if self.bold:
            words.append('font-weight="bold"')
        if self.dim and not self.reverse:
            words.append('opacity="0.6"')
        if self.italic:
            words.append('font-style="italic"')
        if self.underline:
            words.append('text-decoration="underline"')
        return " ".join(words)


def columns(text):
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def picture(screen, width, height):
    """The screen as SVG. Every run of one look is placed by its column."""
    parts = []
    for row, line in enumerate(screen.split("\n")[:height]):
        look, column = Look(), 0
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            if piece.startswith("\x1b["):
                look.take([int(number or 0) for number in piece[2:-1].split(";")])
                continue
            length = columns(piece)
            x, y = 10 + column * CELL, 10 + row * ROW
            if look.reverse and piece:
                parts.append(f'<rect x="{x:.1f}" y="{y}" width="{length * CELL:.1f}" height="{ROW}" fill="{look.colour or TEXT}"/>')
            if piece.strip():
                text = html.escape(piece)
                parts.append(f'<text x="{x:.1f}" y="{y + 14}" textLength="{length * CELL:.1f}" {look.attributes()}>{text}</text>')
            column += length
    w, h = 20 + width * CELL, 20 + height * ROW
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" '
            f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}" xml:space="preserve">\n'
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>\n')
    return head + "\n".join(parts) + "\n</svg>\n"


def main(folder):
    os.makedirs(folder, exist_ok=True)
    width, height = 90, 26
    terminal = Terminal(width, height)

    def save(name):
        with open(os.path.join(folder, name), "w") as file:
            file.write(picture(terminal.screen(colours=True), width, height))

    try:
        terminal.type("clear")
        terminal.keys("Enter")
        terminal.chat("chat", "--permissions", "workspace", "--name", "greeting")
        terminal.say("Change it.")
        terminal.wait("good morning", "main.rs", "+1 -1", without=["Esc stops"])
        save("chat.svg")
        terminal.say("/permissions ask")
        terminal.wait("· ask")
        terminal.say("Make it.")
        terminal.wait("Allow this?")
        save("chat-question.svg")
        terminal.keys("n")
        terminal.wait("It is not made.", without=["Esc stops"])
        terminal.type("/")
        terminal.wait("choose the model")
        save("chat-commands.svg")
        terminal.keys("C-c")
    finally:
        terminal.close()


if __name__ == "__main__":
    main(sys.argv[1])
