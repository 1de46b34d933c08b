/** Tables of terminal key sequences: xterm, rxvt, the Linux console, and the kitty protocol. */

/** Letters that end `CSI … X` and `SS3 X`. */
export const FINAL_LETTERS: Record<string, string> = {
  A: "up", B: "down", C: "right", D: "left", E: "clear", F: "end", H: "home", P: "f1", Q: "f2", S: "f4",
};

/** Numbers of `CSI n ~`. */
export const TILDE_NUMBERS: Record<number, string> = {
  2: "insert", 3: "delete", 5: "pageUp", 6: "pageDown", 7: "home", 8: "end",
  11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11", 24: "f12",
};

/** Numbers that rxvt ends by `$` (shift) and `^` (ctrl). */
export const RXVT_NUMBERS = [2, 3, 5, 6, 7, 8];

/** Whole sequences that follow no rule. */
export const SPECIAL_SEQUENCES: Record<string, string> = {
  "\x1bOR": "f3", "\x1bOM": "enter", "\x1b[Z": "shift+tab",
  "\x1b[[A": "f1", "\x1b[[B": "f2", "\x1b[[C": "f3", "\x1b[[D": "f4", "\x1b[[E": "f5", "\x1b[[5~": "pageUp", "\x1b[[6~": "pageDown",
  "\x1b[a": "shift+up", "\x1b[b": "shift+down", "\x1b[c": "shift+right", "\x1b[d": "shift+left", "\x1b[e": "shift+clear",
  "\x1bOa": "ctrl+up", "\x1bOb": "ctrl+down", "\x1bOc": "ctrl+right", "\x1bOd": "ctrl+left", "\x1bOe": "ctrl+clear",
};

/** Letters with which some terminals report alt and an arrow. */
export const ALT_ARROWS: Record<string, string> = { b: "left", f: "right", n: "down", p: "up" };

/** Code points of `CSI n u` that are not the character they stand for. */
export const NAMED_POINTS: Record<number, string> = {
  9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace",
  57414: "enter", 57417: "left", 57418: "right", 57419: "up", 57420: "down", 57421: "pageUp", 57422: "pageDown",
  57423: "home", 57424: "end", 57425: "insert", 57426: "delete",
};

/** Keypad code points of the kitty protocol and the characters that they type. */
export const KEYPAD_CHARACTERS: Record<number, string> = {
  57399: "0", 57400: "1", 57401: "2", 57402: "3", 57403: "4", 57404: "5", 57405: "6", 57406: "7", 57407: "8", 57408: "9",
  57409: ".", 57410: "/", 57411: "*", 57412: "-", 57413: "+", 57415: "=", 57416: ",",
};

/** Punctuation that can be a key by itself. */
export const SYMBOLS = "`-=[]\\;',./!@#$%^&*()_+|~{}:<>?";
