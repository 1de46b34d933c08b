/** Key identifiers (`"ctrl+c"`, `"shift+tab"`) and the terminal input that stands for them. */
import {
  ALT_ARROWS,
  FINAL_LETTERS,
  KEYPAD_CHARACTERS,
  NAMED_POINTS,
  RXVT_NUMBERS,
  SPECIAL_SEQUENCES,
  SYMBOLS,
  TILDE_NUMBERS,
} from "./key_tables.ts";

const MODIFIERS = ["shift", "ctrl", "alt", "super"] as const;
/** Lock states are reported as modifiers and mean nothing. */
const LOCKS = 64 | 128;

let kittyActive = false;

/** Tells whether the terminal speaks the kitty keyboard protocol. */
export function setKittyProtocolActive(active: boolean): void {
  kittyActive = active;
}

/** Whether the terminal speaks the kitty keyboard protocol; no terminal does here. */
export function isKittyProtocolActive(): boolean {
  return kittyActive;
}

const KEY_NAMES = [
  "escape", "esc", "enter", "return", "tab", "space", "backspace", "delete", "insert", "clear", "home", "end",
  "pageUp", "pageDown", "up", "down", "left", "right",
  "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
];

const SYMBOL_NAMES: Record<string, string> = {
  backtick: "`", hyphen: "-", equals: "=", leftbracket: "[", rightbracket: "]", backslash: "\\", semicolon: ";",
  quote: "'", comma: ",", period: ".", slash: "/", exclamation: "!", at: "@", hash: "#", dollar: "$", percent: "%",
  caret: "^", ampersand: "&", asterisk: "*", leftparen: "(", rightparen: ")", underscore: "_", plus: "+", pipe: "|",
  tilde: "~", leftbrace: "{", rightbrace: "}", colon: ":", lessthan: "<", greaterthan: ">", question: "?",
};

const COMBINATIONS = [
  "ctrl", "shift", "alt", "super", "ctrlShift", "shiftCtrl", "ctrlAlt", "altCtrl", "shiftAlt", "altShift", "ctrlSuper",
  "superCtrl", "shiftSuper", "superShift", "altSuper", "superAlt", "ctrlShiftAlt", "ctrlShiftSuper",
];

function makeKey(): Record<string, string | ((key: string) => string)> {
  const key: Record<string, string | ((key: string) => string)> = {};
  for (const name of KEY_NAMES) key[name] = name;
  Object.assign(key, SYMBOL_NAMES);
  for (const name of COMBINATIONS) {
    const prefix = name.replace(/[A-Z]/g, (letter) => `+${letter.toLowerCase()}`);
    key[name] = (base: string) => `${prefix}+${base}`;
  }
  return key;
}

/** Builds key identifiers: `Key.enter`, `Key.ctrl("c")`. */
export const Key = makeKey();

/** A key with its modifiers, as bits: 1 shift, 2 alt, 4 ctrl, 8 super. */
interface Press {
  key: string;
  modifiers: number;
}

const BITS = { shift: 1, alt: 2, ctrl: 4, super: 8 } as const;

function nameOf({ key, modifiers }: Press): string {
  return [...MODIFIERS.filter((name) => modifiers & BITS[name]), key].join("+");
}

const ALIASES: Record<string, string> = { esc: "escape", return: "enter" };

function parseKeyId(id: string): Press | undefined {
  const parts = id.toLowerCase().split("+");
  let key = parts.pop();
  if (key === "" && parts.at(-1) === "") {
    parts.pop();
    key = "+";
  }
  if (!key) return undefined;
  let modifiers = 0;
  for (const part of parts) {
    if (!(part in BITS)) return undefined;
    const bit = BITS[part as keyof typeof BITS];
    if (modifiers & bit) return undefined;
    modifiers |= bit;
  }
  return { key: ALIASES[key] ?? key, modifiers };
}

type EventKind = "press" | "repeat" | "release";

/** A sequence of the kitty protocol, of xterm's modifyOtherKeys, or a key with modifiers in CSI form. */
interface CsiKey {
  /** Code point, or name of a key that has none. */
  point?: number;
  name?: string;
  shiftedPoint?: number;
  basePoint?: number;
  modifiers: number;
  kind: EventKind;
  /** The point is that of the character typed, shift included. */
  typed?: boolean;
}

function eventKind(code: string | undefined): EventKind {
  return code === "3" ? "release" : code === "2" ? "repeat" : "press";
}

function number(text: string | undefined): number | undefined {
  return text ? Number(text) : undefined;
}

function modifiersOf(text: string | undefined): number {
  return (text ? Number(text) - 1 : 0) & ~LOCKS;
}

function parseCsi(data: string): CsiKey | undefined {
  const point = /^\x1b\[(\d+)(?::(\d*))?(?::(\d+))?(?:;(\d+))?(?::(\d+))?u$/.exec(data);
  if (point) {
    return {
      point: Number(point[1]),
      shiftedPoint: number(point[2]),
      basePoint: number(point[3]),
      modifiers: modifiersOf(point[4]),
      kind: eventKind(point[5]),
    };
  }
  const other = /^\x1b\[27;(\d+);(\d+)~$/.exec(data);
  if (other) return { point: Number(other[2]), modifiers: modifiersOf(other[1]), kind: "press", typed: true };
  const tilde = /^\x1b\[(\d+)(?:;(\d+))?(?::(\d+))?~$/.exec(data);
  if (tilde) {
    const name = TILDE_NUMBERS[Number(tilde[1])];
    return name === undefined ? undefined : { name, modifiers: modifiersOf(tilde[2]), kind: eventKind(tilde[3]) };
  }
  const letter = /^\x1b\[1;(\d+)(?::(\d+))?([A-Z])$/.exec(data);
  if (letter) {
    const name = FINAL_LETTERS[letter[3] as string];
    if (name === undefined || name === "clear") return undefined;
    return { name, modifiers: modifiersOf(letter[1]), kind: eventKind(letter[2]) };
  }
  return undefined;
}

/** The key that a code point stands for on a US keyboard, or undefined. */
function keyOfPoint(point: number): string | undefined {
  const named = NAMED_POINTS[point] ?? KEYPAD_CHARACTERS[point];
  if (named !== undefined) return named;
  if (point > 0x7e || point < 0x20) return undefined;
  const character = String.fromCharCode(point);
  return /^[a-z0-9]$/.test(character) || SYMBOLS.includes(character) ? character : undefined;
}

/** Symbols that are typed with shift on a US keyboard. */
const SHIFTED_SYMBOLS = "~!@#$%^&*()_+{}|:<>?";

function pressesOfCsi(csi: CsiKey): Press[] {
  const known = csi.modifiers & 15;
  if (known !== csi.modifiers) return [];
  if (csi.name !== undefined) return [{ key: csi.name, modifiers: known }];
  const point = csi.point as number;
  const letter = point >= 65 && point <= 90;
  if (letter) return known & BITS.shift ? [{ key: String.fromCharCode(point + 32), modifiers: known }] : [];
  if (known === BITS.shift && csi.shiftedPoint !== undefined) {
    const shifted = keyOfPoint(csi.shiftedPoint);
    const plain = keyOfPoint(point);
    if (shifted !== undefined && SYMBOLS.includes(shifted)) {
      return [{ key: shifted, modifiers: 0 }, ...(plain === undefined ? [] : [{ key: plain, modifiers: known }])];
    }
  }
  const key = keyOfPoint(point) ?? (csi.basePoint === undefined ? undefined : keyOfPoint(csi.basePoint));
  if (key === undefined) return [];
  const press = { key, modifiers: known };
  if (!csi.typed || !(known & BITS.shift) || !SHIFTED_SYMBOLS.includes(key)) return [press];
  return [{ key, modifiers: known & ~BITS.shift }, press];
}

/** Keys of C0 characters, first the one that `parseKey` names. */
function controlKeys(code: number): string[] {
  switch (code) {
    case 0:
      return ["ctrl+space"];
    case 8:
      return ["backspace", "ctrl+h"];
    case 9:
      return ["tab", "ctrl+i"];
    case 10:
      return kittyActive ? ["shift+enter", "ctrl+j"] : ["enter", "ctrl+j"];
    case 13:
      return ["enter", "ctrl+m"];
    case 27:
      return ["escape", "ctrl+["];
    case 28:
      return ["ctrl+\\"];
    case 29:
      return ["ctrl+]"];
    case 30:
      return [];
    case 31:
      return ["ctrl+-", "ctrl+_"];
    default:
      return [`ctrl+${String.fromCharCode(code + 96)}`];
  }
}

/** Names of the keys that input can stand for, the preferred one first. */
function candidates(data: string): string[] {
  const csi = parseCsi(data);
  if (csi) {
    return pressesOfCsi(csi).map(nameOf);
  }
  const special = SPECIAL_SEQUENCES[data];
  if (special !== undefined) return [special];
  const final = /^\x1b[[O]([A-Z])$/.exec(data);
  if (final) {
    const name = FINAL_LETTERS[final[1] as string];
    return name === undefined ? [] : [name];
  }
  const rxvt = /^\x1b\[(\d)([$^])$/.exec(data);
  if (rxvt) {
    const code = Number(rxvt[1]);
    return RXVT_NUMBERS.includes(code) ? [`${rxvt[2] === "$" ? "shift" : "ctrl"}+${TILDE_NUMBERS[code]}`] : [];
  }
  if (data.length === 1) return characterKeys(data);
  if (data.length === 2 && data[0] === "\x1b") return escapedKeys(data.charAt(1));
  return [];
}

function characterKeys(character: string): string[] {
  const code = character.charCodeAt(0);
  if (code < 32) return controlKeys(code);
  if (code === 127) return ["backspace"];
  if (code === 32) return ["space"];
  return code < 127 ? [character] : [];
}

/** Keys of ESC and one character: alt, which is not told this way when the kitty protocol is active. */
function escapedKeys(character: string): string[] {
  const code = character.charCodeAt(0);
  const lower = character.toLowerCase();
  if (code === 8) return kittyActive ? ["alt+backspace"] : ["alt+backspace", "ctrl+alt+h"];
  if (code === 127) return ["alt+backspace"];
  if (code === 27) return ["ctrl+alt+["];
  if (code >= 28 && code < 32) return controlKeys(code).map((name) => name.replace("ctrl+", "ctrl+alt+"));
  const arrow = ALT_ARROWS[character];
  if (arrow !== undefined) return kittyActive ? [`alt+${arrow}`] : [`alt+${arrow}`, `alt+${character}`];
  if (kittyActive) return code === 13 ? ["shift+enter"] : [];
  if (character === "B" || character === "F") return [`alt+${ALT_ARROWS[lower]}`];
  if (code === 13) return ["alt+enter", "ctrl+alt+m"];
  if (code === 32) return ["alt+space"];
  if (code > 0 && code < 27) return [`ctrl+alt+${String.fromCharCode(code + 96)}`];
  if (/^[a-z0-9]$/.test(character) || SYMBOLS.includes(character)) return [`alt+${character}`];
  return [];
}

/** Name of the key that input stands for, or undefined. */
export function parseKey(data: string): string | undefined {
  return candidates(data)[0];
}

/** Whether input stands for a key. Modifiers of the identifier may come in any order. */
export function matchesKey(data: string, keyId: string): boolean {
  const wanted = parseKeyId(keyId);
  if (!wanted) return false;
  if (/^[A-Z]$/.test(data)) return wanted.modifiers === BITS.shift && wanted.key === data.toLowerCase();
  if (wanted.key === "escape" && wanted.modifiers !== 0) return false;
  const typed = /^\x1b\[27;(\d+);\d+~$/.exec(data);
  if (typed && (Number(typed[1]) - 1) & LOCKS) return false;
  if (kittyActive && (data === "\0" || /^\x1b[\x1b-\x1f]$/.test(data))) return false;
  return [...candidates(data), ...(LEGACY_ONLY[data] ?? [])].some((name) => {
    const press = parseKeyId(name);
    return press !== undefined && press.key === wanted.key.toLowerCase() && press.modifiers === wanted.modifiers;
  });
}

/** Sequences of old terminals that match a key but are not named by `parseKey`. */
const LEGACY_ONLY: Record<string, string[]> = { "\x1b[1~": ["home"], "\x1b[4~": ["end"] };

function kindOf(data: string): EventKind {
  if (data.includes("\x1b[200~")) return "press";
  const match = /:([23])[u~A-H]/.exec(data);
  return eventKind(match?.[1]);
}

/** Whether input reports that a key was let go. */
export function isKeyRelease(data: string): boolean {
  return kindOf(data) === "release";
}

/** Whether input reports a key that is held down. */
export function isKeyRepeat(data: string): boolean {
  return kindOf(data) === "repeat";
}

/** The character that a `CSI … u` sequence types, or undefined when it types none. */
export function decodeKittyPrintable(data: string): string | undefined {
  const csi = /\x1b\[27;/.test(data) ? undefined : parseCsi(data);
  if (csi?.point === undefined) return undefined;
  if ((csi.modifiers & ~BITS.shift) !== 0) return undefined;
  const keypad = KEYPAD_CHARACTERS[csi.point];
  if (keypad !== undefined) return keypad;
  const point = csi.modifiers === BITS.shift && csi.shiftedPoint !== undefined ? csi.shiftedPoint : csi.point;
  if (point < 32 || (point >= 0xe000 && point <= 0xf8ff)) return undefined;
  return String.fromCodePoint(point);
}
