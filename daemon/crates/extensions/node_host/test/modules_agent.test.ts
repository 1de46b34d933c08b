/** pi-coding-agent: text helpers, messages, context, theme and small classes. */
import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createTheme, type Theme } from "../src/modules/theme.ts";
import { Comparison } from "./support/compare.ts";
import { ourModule, pickFunction } from "./support/modules.ts";
import { Random } from "./support/random.ts";
import { needsReference, referenceModule } from "./support/reference.ts";
import { FakeServices } from "./support/services.ts";

type Json = Record<string, unknown>;

const ours = ourModule("pi-coding-agent");

function temporaryFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "agentd-modules-"));
  context.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("output is cut to whole lines from either end", () => {
  const head = pickFunction<(text: string, options?: object) => Json>(ours, "truncateHead");
  const tail = pickFunction<(text: string, options?: object) => Json>(ours, "truncateTail");
  assert.equal(head("a\nb\nc\n", { maxLines: 2 }).content, "a\nb");
  assert.equal(tail("a\nb\nc\n", { maxLines: 2 }).content, "b\nc");
  assert.equal(head("a\n").content, "a\n");
  assert.equal(head("long line", { maxBytes: 4 }).firstLineExceedsLimit, true);
  const last = tail("x\nhéllo", { maxBytes: 4 });
  assert.deepEqual([last.content, last.lastLinePartial], ["llo", true]);
});

const TEXTS = ["a", "b\n", "line\n", "é", "漢", "👍", "\n", "  ", "x".repeat(20), "\r\n"];

test("text helpers give what the reference gives", needsReference, () => {
  const random = new Random(21);
  const comparison = new Comparison(referenceModule("pi-coding-agent"), ours);
  const bound = [undefined, null, 0, 1, 5, "5", "x", -1, 2.5, ""];
  for (let round = 0; round < 800; round += 1) {
    const text = random.text(TEXTS, 12);
    const limits = random.pick([{}, { maxLines: random.below(5) }, { maxBytes: random.below(20) }, { maxLines: 1 + random.below(4), maxBytes: 1 + random.below(30) }]);
    comparison.same("truncateHead", text, limits);
    comparison.same("truncateTail", text, limits);
    comparison.same("truncateLine", text, 1 + random.below(20));
    comparison.same("formatSize", random.below(3000000));
    comparison.same("truncateToVisualLines", text.replaceAll("\r", ""), random.below(4), 6 + random.below(10), random.below(2), random.pick(["start", "end"]));
    comparison.same("formatReadLineRange", random.pick(bound), random.pick(bound));
    const start = random.pick(["", "---\n", "\ufeff---\n"]);
    const yaml = random.pick(["a: 1\n", "b: [x, y]\nc: 'q'\n", "", "# c\n", "- 1\n"]);
    comparison.same("parseFrontmatter", start + yaml + random.pick(["---\n", "--- \n", "", "---"]) + text);
    const oldLines = random.list(14, () => random.pick(["a", "b", "c", "d"]));
    const newLines = oldLines.flatMap((line) => (random.chance(5) ? random.pick([[], ["N", line]]) : [line]));
    const [before, after] = [oldLines, newLines].map((lines) => lines.join("\n") + random.pick(["", "\n"])) as [string, string];
    comparison.same("generateDiffString", before, after, random.pick([undefined, 0, 1, 2]));
    comparison.same("generateUnifiedPatch", "p", before, after, random.pick([undefined, 0, 1]));
  }
  const extensions = "ts tsx js mjs py rb rs go java kt c h cpp hpp cs php sh zsh fish ps1 sql html scss json yaml toml xml md lua r scala clj ex erl hs ml vim graphql proto tf dart groovy gradle vue zig txt Dockerfile";
  for (const extension of extensions.split(" ")) comparison.same("getLanguageFromPath", `x.${extension}`);
  comparison.same("parseSkillBlock", '<skill name="n" location="/l">\nbody\n</skill>\n\nuser text');
  comparison.same("parseSkillBlock", "x");
  comparison.same("createSyntheticSourceInfo", "/p", { source: "s", baseDir: "/b" });
  comparison.same("formatDimensionNote", { wasResized: true, originalWidth: 200, originalHeight: 100, width: 100, height: 50 });
});

function randomMessage(random: Random): Json {
  const blocks = (): Json[] =>
    random.list(3, () =>
      random.pick<Json>([
        { type: "text", text: random.text(TEXTS, 5) },
        { type: "thinking", thinking: random.text(TEXTS, 5) },
        { type: "toolCall", id: "i", name: "read", arguments: { path: "p", n: random.below(3) } },
        { type: "image", data: "x", mimeType: "i" },
      ]),
    );
  const text = random.text(TEXTS, 12);
  const usage = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: random.below(2) * 9 };
  return random.pick<Json>([
    { role: "user", content: random.pick<unknown>([text, blocks()]), timestamp: 1 },
    { role: "assistant", content: blocks(), timestamp: 1, stopReason: "stop", usage, provider: "p", model: "m" },
    { role: "toolResult", toolCallId: "i", toolName: "t", content: blocks(), isError: false, timestamp: 1 },
    { role: "system", content: text, timestamp: 1 },
    { role: "bashExecution", command: "c", output: text, exitCode: random.below(2), cancelled: random.chance(3), truncated: random.chance(2), fullOutputPath: "/x", excludeFromContext: random.chance(4), timestamp: 1 },
    { role: "custom", customType: "c", content: random.pick<unknown>([text, blocks()]), display: true, timestamp: 2 },
  ]);
}

test("messages become what the reference makes of them", needsReference, () => {
  const random = new Random(22);
  const comparison = new Comparison(referenceModule("pi-coding-agent"), ours);
  for (let round = 0; round < 800; round += 1) {
    const messages = random.list(5, () => randomMessage(random));
    comparison.same("convertToLlm", messages);
    comparison.same("serializeConversation", messages);
    for (const message of messages) comparison.same("estimateTokens", message);
    comparison.same("shouldCompact", random.below(100), 100, { enabled: random.chance(2), reserveTokens: random.below(50) });
  }
});

function randomEntries(random: Random): Json[] {
  const entries: Json[] = [];
  const anyId = (): unknown => (entries.length > 0 ? random.pick(entries).id : "none");
  /** Edits are only made to what a model reads and may be replaced. */
  const editableId = (): unknown => {
    const roles = ["user", "assistant", "toolResult"];
    const editable = entries.filter(({ type, message }) => type === "custom_message" || roles.includes(String((message as Json | undefined)?.role)));
    return editable.length > 0 ? random.pick(editable).id : "none";
  };
  for (let index = 0; index < random.below(12); index += 1) {
    const last = entries.at(-1)?.id ?? null;
    const base = {
      id: `e${index}`,
      parentId: random.chance(8) && entries.length > 0 ? anyId() : last,
      timestamp: new Date(1e12 + index * 1000).toISOString(),
    };
    entries.push(
      random.pick<Json>([
        { type: "message", ...base, message: randomMessage(random) },
        { type: "message", ...base, message: randomMessage(random) },
        { type: "thinking_level_change", ...base, thinkingLevel: "high" },
        { type: "model_change", ...base, provider: "q", modelId: "w" },
        { type: "compaction", ...base, summary: "S", firstKeptEntryId: anyId(), tokensBefore: 3, ...(random.chance(2) ? { systemMessage: { role: "system", content: "x", timestamp: 1 } } : {}) },
        { type: "branch_summary", ...base, fromId: "root", summary: "bs" },
        { type: "custom", ...base, customType: "c", data: 1 },
        { type: "custom_message", ...base, customType: "c", content: "t", display: true },
        { type: "context_edit", ...base, targetId: editableId(), replacement: random.pick([null, { content: "new" }, { content: [{ type: "text", text: "n" }] }]) },
        { type: "label", ...base, targetId: anyId(), label: "l" },
        { type: "session_info", ...base, name: "n" },
      ]),
    );
  }
  return entries;
}

test("the context of a branch is that of the reference", needsReference, () => {
  const random = new Random(23);
  const comparison = new Comparison(referenceModule("pi-coding-agent"), ours);
  for (let round = 0; round < 1500; round += 1) {
    const entries = randomEntries(random);
    const leaf = random.pick<unknown>([undefined, null, entries.length > 0 ? random.pick(entries).id : "q", "unknown"]);
    for (const name of ["buildContextEntries", "buildSessionContext", "buildSessionProjection"]) comparison.same(name, entries, leaf);
    for (const entry of entries) comparison.same("sessionEntryToContextMessages", entry);
    comparison.same("getLatestCompactionEntry", entries);
    comparison.same("getLastAssistantUsage", entries);
    comparison.same("prepareBranchEntries", entries, random.below(60));
    if (entries.length > 0) comparison.same("findTurnStartIndex", entries, random.below(entries.length), 0);
    comparison.same("findCutPoint", entries, 0, entries.length, random.below(40));
  }
});

test("old session files are brought to the present version", () => {
  const migrate = pickFunction<(entries: Json[]) => void>(ours, "migrateSessionEntries");
  const entries: Json[] = [
    { type: "session", id: "s", timestamp: "t", cwd: "/" },
    { type: "message", timestamp: "t", message: { role: "hookMessage", content: "x" } },
    { type: "compaction", timestamp: "t", summary: "s", firstKeptEntryIndex: 1, tokensBefore: 1 },
  ];
  migrate(entries);
  assert.equal(entries[0]?.version, 3);
  assert.equal((entries[1]?.message as Json).role, "custom");
  assert.equal(entries[2]?.parentId, entries[1]?.id);
  assert.equal(entries[2]?.firstKeptEntryId, entries[1]?.id);
  assert.ok(!("firstKeptEntryIndex" in (entries[2] as Json)));
});

/** The bytes that the reference's theme gives in RPC mode, as seen there. */
test("the theme gives the bytes that pi gives in RPC mode", () => {
  const theme = createTheme(true);
  assert.equal(theme.fg("accent", "x"), "\x1b[38;5;5mx\x1b[39m");
  assert.equal(theme.fg("warning", "⏸ plan"), "\x1b[38;5;3m⏸ plan\x1b[39m");
  assert.equal(theme.fg("text", "x"), "\x1b[39mx\x1b[39m");
  assert.equal(theme.fg("muted", "x"), "\x1b[39m\x1b[2mx\x1b[22;39m");
  assert.equal(theme.bg("selectedBg", "x"), "\x1b[49mx\x1b[49m");
  assert.equal(theme.bold("x"), "x");
  assert.equal(theme.style("x", { fg: "accent", bold: true }), "\x1b[38;5;5m\x1b[1mx\x1b[22m\x1b[39m");
  assert.equal(theme.getFgAnsi("accent"), "\x1b[38;5;5m");
  assert.equal(theme.getThinkingBorderColor("xhigh")("x"), "\x1b[38;5;13mx\x1b[39m");
  assert.deepEqual([theme.name, theme.appearance], ["system", "dark"]);
  assert.throws(() => theme.fg("nope", "x"), { message: "Unknown theme color: nope" });
  assert.throws(() => theme.bg("accent", "x"), { message: "Unknown theme color: accent" });
});

test("without ANSI the theme changes no text", () => {
  const theme = createTheme(false);
  assert.equal(theme.fg("accent", "x"), "x");
  assert.equal(theme.bg("selectedBg", "x"), "x");
  assert.equal(theme.style("x", { fg: "muted", bold: true }), "x");
  assert.equal(theme.getFgAnsi("accent"), "");
  const exports = ourModule("pi-coding-agent", new FakeServices({ ansi: false }));
  assert.equal(pickFunction<(key: string, text: string) => string>(exports, "keyHint")("tui.select.confirm", "go"), "enter go");
});

test("the theme and what is made of it are those of the reference", needsReference, () => {
  const theirs = referenceModule("pi-coding-agent");
  pickFunction<(name: string) => void>(theirs, "initTheme")("system");
  const globalTheme = (globalThis as Record<symbol, unknown>)[Symbol.for("@earendil-works/pi-coding-agent:theme")] as Theme;
  const own = createTheme(true);
  const attributes = { italic: true, underline: true, inverse: true, strikethrough: true };
  for (const token of Object.keys(globalTheme.colors)) {
    if (token.endsWith("Bg")) assert.equal(own.bg(token, "x"), globalTheme.bg(token, "x"), token);
    else {
      assert.equal(own.fg(token, "x"), globalTheme.fg(token, "x"), token);
      assert.equal(own.getFgAnsi(token), globalTheme.getFgAnsi(token), token);
      assert.equal(own.style("x", { fg: token, ...attributes }), globalTheme.style("x", { fg: token, ...attributes }), token);
    }
  }
  assert.deepEqual(Object.keys(own.colors).sort(), Object.keys(globalTheme.colors).sort());
  const styles = (exports: Json, name: string): Json => {
    const theme = pickFunction<() => Json>(exports, name)();
    return Object.fromEntries(
      Object.entries(theme).filter(([key]) => key !== "highlightCode").map(([key, value]) => [key, typeof value === "function" ? [(value as (...args: unknown[]) => unknown)("x", true), (value as (...args: unknown[]) => unknown)("x", false)] : value]),
    );
  };
  for (const name of ["getMarkdownTheme", "getSelectListTheme", "getSettingsListTheme"]) assert.deepEqual(styles(ours, name), styles(theirs, name), name);
  const comparison = new Comparison(theirs, ours);
  comparison.same("keyHint", "tui.select.confirm", "to do");
  comparison.same("rawKeyHint", "ctrl+x", "foo");
  comparison.same("keyText", "tui.select.cancel");
  comparison.same("keyText", "app.interrupt");
  comparison.same("highlightCode", "const a = 1;\nb");
  type Bordered = new (...args: unknown[]) => { render(width: number): string[] };
  for (const width of [8, 20]) {
    assert.deepEqual(new (ours.DynamicBorder as Bordered)().render(width), new (theirs.DynamicBorder as Bordered)().render(width));
  }
});

test("editors and borders can be extended at the top level of a module", () => {
  const { CustomEditor, DynamicBorder, BorderedLoader } = ours as Record<string, new (...args: unknown[]) => Json & { render(width: number): string[]; handleInput(data: string): void; getText(): string }>;
  assert.ok(CustomEditor && DynamicBorder && BorderedLoader);
  class Vim extends CustomEditor {
    override handleInput(data: string): void {
      super.handleInput(data.toUpperCase());
    }
  }
  const theme = pickFunction<() => unknown>(ours, "getSelectListTheme")();
  const editor = new Vim({}, { borderColor: (text: string) => text, selectList: theme }, undefined);
  editor.handleInput("a");
  assert.equal(editor.getText(), "A");
  assert.deepEqual(new DynamicBorder((text: string) => text).render(3), ["───"]);
  const loader = new BorderedLoader({}, createTheme(false), "msg");
  let aborted = false;
  loader.onAbort = () => {
    aborted = true;
  };
  loader.handleInput("\x1b");
  assert.ok(aborted && (loader.signal as AbortSignal).aborted);
  assert.ok(loader.render(20).some((line) => line.includes("msg")));
});

test("every component of pi's screen can be made and rendered", () => {
  for (const [name, value] of Object.entries(ours)) {
    if (!/Component$/.test(name)) continue;
    const component = new (value as new () => { render(width: number): string[] })();
    assert.deepEqual(component.render(20), [], name);
  }
});

test("an event bus gives events to all handlers, whatever one of them does", async () => {
  const bus = pickFunction<() => { on(channel: string, handler: (data: unknown) => unknown): () => void; emit(channel: string, data: unknown): void; clear(): void }>(ours, "createEventBus")();
  const seen: unknown[] = [];
  const { error } = console;
  const reported = new Promise<unknown[]>((resolve) => {
    console.error = (...args: unknown[]) => resolve(args);
  });
  bus.on("error", () => {
    throw new Error("broken");
  });
  const off = bus.on("error", (data) => seen.push(data));
  bus.emit("error", 1);
  off();
  bus.emit("other", 2);
  assert.deepEqual(seen, [1]);
  assert.match(String((await reported)[0]), /Event handler error \(error\)/);
  console.error = error;
});

test("skills and context files are found", (context) => {
  const folder = temporaryFolder(context);
  mkdirSync(join(folder, "skills", "one", "deep"), { recursive: true });
  writeFileSync(join(folder, "skills", "one", "SKILL.md"), "---\ndescription: does <one>\n---\nbody");
  writeFileSync(join(folder, "skills", "one", "deep", "SKILL.md"), "---\ndescription: hidden\n---\n");
  writeFileSync(join(folder, "skills", "two.md"), "---\nname: two\ndescription: d\ndisable-model-invocation: true\n---\n");
  writeFileSync(join(folder, "AGENTS.md"), "\ufeffrules");
  interface Skill {
    name: string;
    disableModelInvocation: boolean;
  }
  const load = pickFunction<(options: object) => { skills: Skill[] }>(ours, "loadSkillsFromDir");
  const { skills } = load({ dir: join(folder, "skills"), source: "test" });
  assert.deepEqual(skills.map(({ name }) => name), ["one", "two"]);
  const prompt = pickFunction<(skills: Skill[]) => string>(ours, "formatSkillsForPrompt")(skills);
  assert.match(prompt, /<name>one<\/name>\n {4}<description>does &lt;one&gt;<\/description>/);
  assert.ok(!prompt.includes("two"));
  const files = pickFunction<(options: object) => Json[]>(ours, "loadProjectContextFiles")({ cwd: folder, agentDir: join(folder, "none") });
  assert.deepEqual(files.find(({ path }) => path === join(folder, "AGENTS.md"))?.content, "rules");
  const needsTrust = pickFunction<(cwd: string) => boolean>(ours, "hasTrustRequiringProjectResources");
  assert.equal(needsTrust(folder), false);
  mkdirSync(join(folder, ".pi", "extensions"), { recursive: true });
  assert.equal(needsTrust(folder), true);
});

test("images that fit are returned as they are, others go to the daemon", async () => {
  const png = Buffer.concat([Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), Buffer.from([0, 0, 1, 0, 0, 0, 0, 9]), Buffer.alloc(9)]);
  const resized = { data: "Zg==", mimeType: "image/png", originalWidth: 256, originalHeight: 9, width: 128, height: 5, wasResized: true };
  const services = new FakeServices().on("image.resize", () => resized);
  const exports = ourModule("pi-coding-agent", services);
  const resize = pickFunction<(bytes: Uint8Array, type: string, options?: object) => Promise<Json | null>>(exports, "resizeImage");
  assert.equal((await resize(png, "image/png"))?.wasResized, false);
  assert.equal(services.calls.length, 0);
  assert.equal(await resize(png, "image/png", { maxWidth: 128 }), resized);
  assert.equal(services.calls[0]?.params.maxWidth, 128);
  const without = ourModule("pi-coding-agent");
  const none = pickFunction<typeof resize>(without, "resizeImage");
  assert.equal(await none(png, "image/png", { maxWidth: 128 }), null);
});

test("types of images are told by their content", async (context) => {
  const folder = temporaryFolder(context);
  const detect = pickFunction<(path: string) => Promise<string | null>>(ours, "detectSupportedImageMimeTypeFromFile");
  const png = (chunk: string): Buffer =>
    Buffer.concat([Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), Buffer.alloc(17), Buffer.from([0, 0, 0, 0]), Buffer.from(chunk), Buffer.alloc(8)]);
  const cases: [string, Buffer, string | null][] = [
    ["still.txt", png("IDAT"), "image/png"],
    ["moving.png", png("acTL"), null],
    ["gif", Buffer.from("GIF89a..."), "image/gif"],
    ["jpeg", Buffer.from([0xff, 0xd8, 0xff, 0xe0]), "image/jpeg"],
    ["webp", Buffer.from("RIFF....WEBPVP8 "), "image/webp"],
    ["text.png", Buffer.from("hello"), null],
    ["empty", Buffer.alloc(0), null],
  ];
  for (const [name, bytes, type] of cases) {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    assert.equal(await detect(path), type, name);
  }
});

test("without a display there is no clipboard, and that is said", async (context) => {
  if (process.platform !== "linux") return context.skip("only Linux tells by its environment that there is none");
  const { DISPLAY, WAYLAND_DISPLAY, TERMUX_VERSION } = process.env;
  for (const name of ["DISPLAY", "WAYLAND_DISPLAY", "TERMUX_VERSION"]) delete process.env[name];
  await assert.rejects(pickFunction<(text: string) => Promise<void>>(ours, "copyToClipboard")("x"), /no clipboard/);
  Object.assign(process.env, Object.fromEntries(Object.entries({ DISPLAY, WAYLAND_DISPLAY, TERMUX_VERSION }).filter(([, value]) => value !== undefined)));
});
