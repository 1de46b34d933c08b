/** Small pieces of terminal protocol. */
import { sliceWithWidth } from "./slice.ts";
import { visibleWidth } from "./width.ts";

/** Marks the place of the cursor in drawn lines. */
export const CURSOR_MARKER = "\x1b_pi:c\x07";

/** Marks text that is drawn as a cursor. */
export function renderFakeCursor(text: string): string {
  return `\x1b_pi:fc\x07${text}\x1b_pi:/fc\x07`;
}

export function isFocusable(component: unknown): boolean {
  return typeof component === "object" && component !== null && "focused" in component;
}

/** No TUI of the host has a viewport. */
export function isViewportTUI(_tui: unknown): boolean {
  return false;
}

export function isAppleTerminalSession(): boolean {
  return process.env.TERM_PROGRAM === "Apple_Terminal";
}

/** The clipboard of the operating system; the host loads no native code. */
export function getNativeClipboard(): undefined {
  return undefined;
}

/** Reads a terminal's report of its color scheme, or returns undefined. */
export function parseTerminalColorSchemeReport(data: string): "dark" | "light" | undefined {
  const match = /^\x1b\[\?997;([12])n$/.exec(data);
  if (!match) return undefined;
  return match[1] === "1" ? "dark" : "light";
}

export interface ProgramStatus {
  state: "idle" | "working" | "blocked" | "done" | "error" | "clear";
  app?: string;
  kind?: "permission" | "question" | "auth";
  message?: string;
}

/** Longest text of a status report, in bytes. */
const STATUS_MESSAGE_BYTES = 256;

function statusMessage(text: string): string {
  const bytes = Buffer.from(text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim());
  if (bytes.length <= STATUS_MESSAGE_BYTES) return bytes.toString("base64");
  let end = STATUS_MESSAGE_BYTES;
  // A continuation byte at the cut belongs to a character that does not fit.
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString("base64");
}

/** Encodes a report of what the program does (OSC 7501). */
export function formatProgramStatus(status: ProgramStatus): string {
  const fields = [`state=${status.state}`];
  if (status.state !== "clear") {
    if (status.app && /^[A-Za-z0-9_.+-]{1,32}$/.test(status.app)) fields.push(`app=${status.app}`);
    if (status.state === "blocked" && status.kind) fields.push(`kind=${status.kind}`);
    if (status.message) fields.push(`msg=${statusMessage(status.message)}`);
  }
  return `\x1b]7501;${fields.join(":")}\x1b\\`;
}

/** Ends styles and links between parts of a composed line. */
const SEGMENT_RESET = "\x1b[0m\x1b]8;;\x07";

/** Puts an overlay's line over a line of text. */
export function compositeTuiLine(
  baseLine: string,
  overlayLine: string,
  startCol: number,
  overlayWidth: number,
  totalWidth: number,
): string {
  const pad = (text: string, width: number, to: number): string => text + " ".repeat(Math.max(0, to - width));
  const before = sliceWithWidth(baseLine, 0, startCol, true);
  const overlay = sliceWithWidth(overlayLine, 0, overlayWidth, true);
  const afterStart = startCol + overlayWidth;
  const after = sliceWithWidth(baseLine, afterStart, Math.max(0, totalWidth - afterStart), true);
  const line =
    pad(before.text, before.width, startCol) +
    SEGMENT_RESET +
    pad(overlay.text, overlay.width, overlayWidth) +
    SEGMENT_RESET +
    pad(after.text, after.width, totalWidth - afterStart);
  return visibleWidth(line) <= totalWidth ? line : sliceWithWidth(line, 0, totalWidth, true).text;
}
