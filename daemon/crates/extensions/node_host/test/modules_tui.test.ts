/** pi-tui: text in columns, keys, fuzzy matching, colors, images and components. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Comparison } from "./support/compare.ts";
import { ourModule, pickFunction } from "./support/modules.ts";
import { Random } from "./support/random.ts";
import { needsReference, referenceModule } from "./support/reference.ts";

const ours = ourModule("pi-tui");

const visibleWidth = pickFunction<(text: string) => number>(ours, "visibleWidth");
const wrap = pickFunction<(text: string, width: number) => string[]>(ours, "wrapTextWithAnsi");
const truncate = pickFunction<(text: string, width: number, ellipsis?: string, pad?: boolean) => string>(ours, "truncateToWidth");
const matchesKey = pickFunction<(data: string, key: string) => boolean>(ours, "matchesKey");
const parseKey = pickFunction<(data: string) => string | undefined>(ours, "parseKey");

test("width counts columns, not characters", () => {
  const widths: [string, number][] = [
    ["", 0], ["abc", 3], ["a\tb", 5], ["漢字", 4], ["e\u0301", 1], ["👍🏽", 2], ["👨‍👩‍👧", 2], ["🇩🇪", 2], ["❤", 1], ["❤️", 2],
    ["\u200b", 0], ["a\nb", 2], ["ﾊﾞ", 2], ["กำ", 2], ["क्ष", 2], ["\x1b[31mred\x1b[0m", 3],
    ["\x1b]8;;http://x\x07link\x1b]8;;\x07", 4], ["\x1b_pi:c\x07a", 1],
  ];
  for (const [text, width] of widths) assert.equal(visibleWidth(text), width, JSON.stringify(text));
});

test("wrapped lines carry styles and links on, and end what would be drawn through", () => {
  assert.deepEqual(wrap("hello world foo", 11), ["hello world", "foo"]);
  assert.deepEqual(wrap("abcdefghij", 3), ["abc", "def", "ghi", "j"]);
  assert.deepEqual(wrap("\x1b[31mhello world\x1b[0m", 5), ["\x1b[31mhello", "\x1b[31mworld\x1b[0m"]);
  assert.deepEqual(wrap("\x1b[4munder line\x1b[24m", 5), ["\x1b[4munder\x1b[24m", "\x1b[4mline\x1b[24m"]);
  assert.deepEqual(wrap("漢字漢字", 3), ["漢", "字", "漢", "字"]);
  assert.deepEqual(wrap("", 5), [""]);
});

test("cut text ends styles before and behind the ellipsis", () => {
  assert.equal(truncate("hello", 5), "hello");
  assert.equal(truncate("hello world", 5), "he\x1b[0m...\x1b[0m");
  assert.equal(truncate("漢字漢字", 5, ""), "漢字\x1b[0m");
  assert.equal(truncate("hello", 8, "...", true), "hello   ");
  assert.equal(truncate("hello", 0), "");
});

test("keys are named and matched in old and new encodings", () => {
  const names: [string, string | undefined][] = [
    ["a", "a"], ["\x03", "ctrl+c"], ["\r", "enter"], ["\x1b", "escape"], ["\x1b[A", "up"], ["\x1b[1;5A", "ctrl+up"],
    ["\x1b[Z", "shift+tab"], ["\x1b[3~", "delete"], ["\x1b[97;5u", "ctrl+a"], ["\x1bb", "alt+left"], ["é", undefined],
  ];
  for (const [data, name] of names) assert.equal(parseKey(data), name, JSON.stringify(data));
  assert.ok(matchesKey("\x03", "Ctrl+C"));
  assert.ok(matchesKey("\t", "ctrl+i"));
  assert.ok(matchesKey("\x1b[27;6;80~", "shift+ctrl+p"));
  assert.ok(!matchesKey("a", "b"));
});

/** Parts of text that is hard to measure. Tabs next to sequences are left out: see the README. */
const PARTS = [
  "a", "b", "foo", "bar", " ", " ", "  ", "-", ",", "\n", "\r\n", "漢", "字", "か", "、", "한", "👍", "é", "e\u0301",
  "\x1b[31m", "\x1b[0m", "\x1b[1m", "\x1b[22m", "\x1b[4m", "\x1b[24m", "\x1b[9m", "\x1b[38;5;3m", "\x1b[48;2;1;2;3m",
  "\x1b[39m", "\x1b[49m", "\x1b]8;;http://u\x07", "\x1b]8;;\x07", "\x1b]8;;\x1b\\", "\x1b_pi:c\x07", "longerword",
  "\x1b[2K", "\u200b", "กำ", "\x1b[1;31m", "\x1b[m", "\r", "\x1b", "ﾊﾞ",
];

test("text functions give what the reference gives", needsReference, () => {
  const random = new Random(1);
  const comparison = new Comparison(referenceModule("pi-tui"), ours);
  for (let round = 0; round < 1500; round += 1) {
    const text = random.text(PARTS, 14);
    const width = 1 + random.below(12);
    comparison.same("visibleWidth", text);
    comparison.same("stripTerminalSequences", text);
    comparison.same("replaceControlCharacters", text);
    comparison.same("wrapTextWithAnsi", text, width);
    comparison.same("truncateToWidth", text, width, random.pick(["...", "…", ""]), random.chance(2));
    comparison.same("sliceByColumn", text, random.below(8), random.below(8), random.chance(2));
    comparison.same("getOsc8LinkAtColumn", text, random.below(6));
  }
  for (let point = 0; point < 0x20000; point += point < 0x3400 ? 1 : 11) {
    const character = String.fromCodePoint(point);
    comparison.same("visibleWidth", character);
    if (point % 7 === 0) comparison.same("visibleWidth", `a${character}\ufe0f`);
  }
});

function keyInputs(): string[] {
  const inputs = ["", "é", "ab", "\x1bOM", "\x1b\x1b", "\x1b\x1b[A", "\x1b[200~x"];
  for (let code = 0; code < 128; code += 1) inputs.push(String.fromCharCode(code), `\x1b${String.fromCharCode(code)}`);
  for (const letter of "ABCDEFHPQRSZabcde") {
    inputs.push(`\x1b[${letter}`, `\x1bO${letter}`);
    for (const modifier of [2, 3, 5, 6, 9]) inputs.push(`\x1b[1;${modifier}${letter}`);
  }
  for (let number = 1; number < 26; number += 1) {
    for (const end of "~^$") inputs.push(`\x1b[${number}${end}`);
    for (const modifier of [1, 2, 5, 9]) inputs.push(`\x1b[${number};${modifier}~`);
  }
  for (let point = 9; point < 128; point += 1) {
    for (const modifier of ["", ";2", ";3", ";5", ";6", ";1:3", ";5:2", ";65"]) inputs.push(`\x1b[${point}${modifier}u`);
    for (const modifier of [2, 5, 6]) inputs.push(`\x1b[27;${modifier};${point}~`);
  }
  for (let point = 57344; point < 57460; point += 1) inputs.push(`\x1b[${point}u`);
  inputs.push("\x1b[1089::99;5u", "\x1b[49:33;2u", "\x1b[97:65;2u", "\x1b[1;5:3A", "\x1b[3;1:2~");
  return inputs;
}

test("keys are understood as in the reference", needsReference, () => {
  const theirs = referenceModule("pi-tui");
  const comparison = new Comparison(theirs, ours);
  const keys: string[] = [];
  const named = ["escape", "esc", "enter", "return", "tab", "space", "backspace", "delete", "home", "end", "pageUp", "up", "left", "f1", "f5"];
  for (const key of [..."abcim01-[]\\,!@_+", ...named]) {
    for (const modifiers of ["", "ctrl+", "shift+", "alt+", "shift+ctrl+"]) keys.push(modifiers + key);
  }
  keys.push("Ctrl+C", "A", "", "nope", "ctrl+", "hyper+a", "ctrl+ctrl+a");
  for (const active of [false, true]) {
    for (const module of [theirs, ours]) pickFunction<(active: boolean) => void>(module, "setKittyProtocolActive")(active);
    for (const data of keyInputs()) {
      for (const name of ["parseKey", "isKeyRelease", "isKeyRepeat", "decodeKittyPrintable"]) comparison.same(name, data);
      for (const key of keys) comparison.same("matchesKey", data, key);
    }
  }
  for (const module of [theirs, ours]) pickFunction<(active: boolean) => void>(module, "setKittyProtocolActive")(false);
});

test("fuzzy matching scores as the reference does", needsReference, () => {
  const random = new Random(2);
  const comparison = new Comparison(referenceModule("pi-tui"), ours);
  const characters = [..."abAB12 -_/.:c"];
  const theirFilter = pickFunction<(items: string[], query: string, text: (item: string) => string) => string[]>(referenceModule("pi-tui"), "fuzzyFilter");
  const ourFilter = pickFunction<typeof theirFilter>(ours, "fuzzyFilter");
  for (let round = 0; round < 5000; round += 1) {
    const query = random.text(characters, 4);
    comparison.same("fuzzyMatch", query, random.text(characters, 9));
    const items = random.list(5, () => random.text(characters, 9));
    assert.deepEqual(ourFilter(items, query, (item) => item), theirFilter(items, query, (item) => item), query);
  }
});

test("colors and their sequences are those of the reference", needsReference, () => {
  const random = new Random(3);
  const comparison = new Comparison(referenceModule("pi-tui"), ours);
  const color = (): unknown =>
    random.pick([
      () => ({ kind: "indexed", index: random.below(256) }),
      () => ({ kind: "rgb", r: random.below(256), g: random.below(256), b: random.below(256) }),
      // Colors inside of sRGB: those outside are brought in by steps whose last bit differs.
      () => ({ kind: "oklch", l: 0.3 + random.next() / 2, c: random.next() / 20, h: random.below(360) }),
    ])();
  for (let round = 0; round < 3000; round += 1) {
    const first = color();
    comparison.same("colorToRgb", first);
    comparison.same("colorToHex", first);
    for (const mode of ["256color", "truecolor"]) {
      comparison.same("foregroundAnsi", first, mode);
      comparison.same("backgroundAnsi", first, mode);
      const style = { fg: first, bg: color(), bold: random.chance(2), dim: random.chance(2), underline: random.chance(2) };
      comparison.same("styleText", "x", style, mode);
    }
    comparison.same("mixColors", { kind: "rgb", r: random.below(256), g: 7, b: 9 }, { kind: "rgb", r: 1, g: 2, b: 3 }, random.next(), "srgb");
  }
  for (const value of ["#fff", "#FF8800", "red", 5, "5", "oklch(0.5 0.1 20)", "oklch(50% 0.1 20deg)", "#ff000080", "", 256, 1.5]) {
    comparison.same("parseColor", value);
  }
});

test("terminal sequences are those of the reference", needsReference, () => {
  const comparison = new Comparison(referenceModule("pi-tui"), ours);
  comparison.same("deleteKittyImage", 5);
  comparison.same("deleteAllKittyImages");
  comparison.same("encodeKitty", "A".repeat(9000), { imageId: 3, columns: 2, rows: 1, moveCursor: false });
  comparison.same("encodeITerm2", "QUJD", { width: 3, height: "auto", name: "n", preserveAspectRatio: false });
  comparison.same("hyperlink", "a", "http://x");
  comparison.same("imageFallback", "image/png", { widthPx: 3, heightPx: 4 }, "f.png");
  comparison.same("imageFallback", "image/png", undefined, "/a/b.png");
  comparison.same("calculateImageRows", { widthPx: 100, heightPx: 50 }, 20);
  comparison.same("renderFakeCursor", "x");
  comparison.same("renderImage", "QUJD", { widthPx: 3, heightPx: 4 });
  comparison.same("formatProgramStatus", { state: "blocked", app: "pi", kind: "auth", message: "a\nb" });
  comparison.same("formatProgramStatus", { state: "working", kind: "auth" });
  comparison.same("parseTerminalColorSchemeReport", "\x1b[?997;2n");
  comparison.same("compositeTuiLine", "hello world", "XX", 3, 2, 11);
  comparison.same("compositeTuiLine", "\x1b[31mhello world\x1b[0m", "X", 3, 4, 20);
});

test("sizes of images are read as in the reference", needsReference, () => {
  const comparison = new Comparison(referenceModule("pi-tui"), ours);
  const png = Buffer.concat([Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), Buffer.from([0, 0, 1, 2, 0, 0, 3, 4]), Buffer.alloc(9)]);
  const gif = Buffer.concat([Buffer.from("GIF89a"), Buffer.from([5, 1, 6, 0]), Buffer.alloc(9)]);
  const jpeg = Buffer.concat([Buffer.from("ffd8ffe0000400ffffc000110800070009", "hex"), Buffer.alloc(20)]);
  const vp8x = Buffer.concat([Buffer.from("RIFF\0\0\0\0WEBPVP8X"), Buffer.alloc(8), Buffer.from([9, 1, 0, 7, 0, 0]), Buffer.alloc(4)]);
  for (const [bytes, type] of [[png, "png"], [gif, "gif"], [jpeg, "jpeg"], [vp8x, "webp"]] as const) {
    const data = bytes.toString("base64");
    comparison.same("getImageDimensions", data, `image/${type}`);
    comparison.same("getImageDimensions", data.slice(0, 8), `image/${type}`);
    comparison.same("getImageDimensions", data, "image/other");
  }
});

interface Component {
  render(width: number): string[];
}
interface Made extends Component {
  addChild(child: Component): void;
  setText(text: string): void;
  setValue(text: string): void;
  setSelectedIndex(index: number): void;
  stop(): void;
}
type ComponentClass = new (...args: unknown[]) => Made;

const style = (name: string) => (text: string) => `${name}<${text}>`;
const LIST_THEME = { selectedPrefix: style("p"), selectedText: style("s"), description: style("d"), scrollInfo: style("i"), noMatch: style("n") };
const ITEMS = [
  { value: "a", label: "Alpha", description: "first one\nmore" },
  { value: "b", label: "Beta long label here" },
  { value: "c", label: "", description: "cc" },
  { value: "d", label: "D" },
];

/** Components made from a module's exports; those whose texts are ours are not among them. */
function components(exports: Record<string, unknown>): [string, Component][] {
  const make = (name: string, ...args: unknown[]): Made => new (exports[name] as ComponentClass)(...args);
  const box = make("Box", 2, 1, style("b"));
  box.addChild(make("Text", "hello there", 0, 0));
  box.addChild(make("Spacer"));
  const container = make("Container");
  container.addChild(make("Text", "one two", 0, 0));
  container.addChild(make("Text", "y"));
  const input = make("Input", { prompt: "? " });
  input.setValue("hello");
  const editor = make("Editor", { terminal: { rows: 24, columns: 80 }, requestRender() {} }, { borderColor: style("e"), selectList: LIST_THEME });
  editor.setText("hello world\nsecond");
  const loader = make("Loader", { requestRender() {} }, style("c"), style("m"), "Load");
  loader.stop();
  const scrolled = make("SelectList", ITEMS, 3, LIST_THEME);
  scrolled.setSelectedIndex(3);
  return [
    ["Text", make("Text", "hello world foo bar")],
    ["Text with background", make("Text", "a\tb", 2, 1, style("t"))],
    ["Text without text", make("Text", " ")],
    ["TruncatedText", make("TruncatedText", "hello world foo bar baz\nsecond", 1, 1)],
    ["Spacer", make("Spacer", 2)],
    ["Box", box],
    ["Container", container],
    ["Input", input],
    ["Input, empty", make("Input", { placeholder: "type" })],
    ["Editor", editor],
    ["Loader", loader],
    ["SelectList", make("SelectList", ITEMS, 3, LIST_THEME)],
    ["SelectList, scrolled", scrolled],
    ["Image", make("Image", "QUJD", "image/png", { fallbackColor: style("f") }, { filename: "f.png" }, { widthPx: 3, heightPx: 4 })],
    ["VStack", make("VStack", [make("Text", "a", 0, 0), make("Text", "b", 0, 0)], { gap: 1 })],
    ["ScrollView", make("ScrollView", make("Text", "a b", 0, 0))],
    ["MouseRegion", make("MouseRegion", make("Text", "a", 0, 0), () => undefined)],
  ];
}

test("simple components draw the lines that the reference draws", needsReference, () => {
  const expected = new Map(components(referenceModule("pi-tui")));
  for (const [name, component] of components(ours)) {
    for (const width of [8, 20, 60]) {
      assert.deepEqual(component.render(width), expected.get(name)?.render(width), `${name} at ${width}`);
    }
  }
});

test("every component can be made, extended and rendered", () => {
  for (const [name, component] of components(ours)) {
    const lines = component.render(30);
    assert.ok(Array.isArray(lines) && lines.every((line) => typeof line === "string"), name);
    assert.ok(lines.every((line) => visibleWidth(line.replace(/\w<|>/g, "")) <= 30), name);
  }
  const Container = ours.Container as ComponentClass;
  class Own extends Container {
    override render(width: number): string[] {
      return ["own", ...super.render(width)];
    }
  }
  assert.deepEqual(new Own().render(10), ["own"]);
});

test("Markdown is shown as text", () => {
  const theme = Object.fromEntries(
    ["heading", "link", "linkUrl", "code", "codeBlock", "codeBlockBorder", "quote", "quoteBorder", "hr", "listBullet", "bold", "italic", "strikethrough", "underline"].map((name) => [name, (text: string) => text]),
  );
  const Markdown = ours.Markdown as ComponentClass;
  const render = (text: string): string[] => new Markdown(text, 0, 0, theme).render(40).map((line) => line.trimEnd());
  assert.deepEqual(render("# Title\n\npara **bold** `code`"), ["Title", "", "para bold code"]);
  assert.deepEqual(render("- a\n- b\n  - c\n\n1. x"), ["- a", "- b", "  - c", "", "1. x"]);
  assert.deepEqual(render("```ts\nconst a = 1;\n```"), ["```ts", "  const a = 1;", "```"]);
  assert.deepEqual(render("> quote"), ["│ quote"]);
  assert.deepEqual(render("| a | b |\n|---|---|\n| 1 | 22 |"), ["┌───┬────┐", "│ a │ b  │", "├───┼────┤", "│ 1 │ 22 │", "└───┴────┘"]);
  assert.deepEqual(render("[l](http://x) and http://y"), ["l (http://x) and http://y"]);
  assert.deepEqual(render(""), []);
});

test("lists call back when keys select", () => {
  const SelectList = ours.SelectList as new (...args: unknown[]) => Component & {
    handleInput(data: string): void;
    onSelect?: (item: { value: string }) => void;
    onCancel?: () => void;
  };
  const list = new SelectList(ITEMS, 3, LIST_THEME);
  const events: string[] = [];
  list.onSelect = (item) => events.push(item.value);
  list.onCancel = () => events.push("cancelled");
  for (const data of ["\x1b[B", "\r", "\x1b[A", "\x1b[A", "\r", "\x1b"]) list.handleInput(data);
  assert.deepEqual(events, ["b", "d", "cancelled"]);
});

test("an input is edited by keys", () => {
  const Input = ours.Input as new () => Component & { handleInput(data: string): void; getValue(): string; onSubmit?: (value: string) => void };
  const input = new Input();
  let submitted = "";
  input.onSubmit = (value) => {
    submitted = value;
  };
  for (const data of ["h", "i", "x", "\x7f", "\x01", ">", "\x05", "!", "\r"]) input.handleInput(data);
  assert.equal(input.getValue(), ">hi!");
  assert.equal(submitted, ">hi!");
});

test("default keys are those of the reference", needsReference, () => {
  const keysOf = (exports: Record<string, unknown>): unknown =>
    Object.fromEntries(
      Object.entries(exports.TUI_KEYBINDINGS as Record<string, { defaultKeys: unknown }>).map(([name, { defaultKeys }]) => [name, defaultKeys]),
    );
  assert.deepEqual(keysOf(ours), keysOf(referenceModule("pi-tui")));
});
