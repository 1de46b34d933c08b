/** The clipboard of the machine that the daemon runs on. */
import { spawn } from "node:child_process";

interface Command {
  file: string;
  args: string[];
}

function candidates(): Command[] {
  if (process.platform === "darwin") return [{ file: "pbcopy", args: [] }];
  if (process.platform === "win32") return [{ file: "clip", args: [] }];
  const { WAYLAND_DISPLAY, DISPLAY, TERMUX_VERSION } = process.env;
  const commands: Command[] = [];
  if (TERMUX_VERSION) commands.push({ file: "termux-clipboard-set", args: [] });
  if (WAYLAND_DISPLAY) commands.push({ file: "wl-copy", args: [] });
  if (DISPLAY) {
    commands.push({ file: "xclip", args: ["-selection", "clipboard"] });
    commands.push({ file: "xsel", args: ["--clipboard", "--input"] });
  }
  return commands;
}

/** Writes text to a program's standard input; false when the program is not there or fails. */
function feed({ file, args }: Command, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: ["pipe", "ignore", "ignore"] });
    child.once("error", () => resolve(false));
    child.once("exit", (code) => resolve(code === 0));
    // A program that ends before it has read everything fails by its exit code.
    child.stdin.once("error", () => undefined);
    child.stdin.end(text);
  });
}

/** Puts text on the clipboard. Rejects when the machine has none, as servers do. */
export async function copyToClipboard(text: string): Promise<void> {
  for (const command of candidates()) if (await feed(command, text)) return;
  throw new Error("There is no clipboard: the agent runs without a display");
}
