// Sessions to be exported: one as people have them, one of somebody who means harm, one that is long.

import { writeFileSync } from "node:fs";

/** A session file in the making. Each entry follows the one before, until `back` goes elsewhere. */
class Session {
  lines = [];
  parent = null;
  clock = Date.parse("2026-11-21T09:12:00.000Z");

  constructor(header = {}) {
    this.lines.push({ type: "session", version: 3, id: "019abc12-0000-7000-8000-000000000001",
      timestamp: "2026-11-21T09:12:00.000Z", cwd: "/home/ada/weather", ...header });
  }

  add(entry) {
    const id = (this.lines.length + 0x10000000).toString(16);
    this.clock += 7_000;
    this.lines.push({ id, parentId: this.parent, timestamp: new Date(this.clock).toISOString(), ...entry });
    this.parent = id;
    return id;
  }

  message(message) { return this.add({ type: "message", message: { timestamp: this.clock, ...message } }); }
  user(content) { return this.message({ role: "user", content }); }
  answer(content, more = {}) {
    const usage = { input: 2400, output: 310, cacheRead: 18000, cacheWrite: 900, totalTokens: 21610, cost: { total: 0.0187 } };
    return this.message({ role: "assistant", api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5",
      content, usage, stopReason: "stop", durationMs: 4210, ...more });
  }
  result(toolCallId, toolName, text, more = {}) {
    return this.message({ role: "toolResult", toolCallId, toolName, content: [{ type: "text", text }], isError: false, durationMs: 180, ...more });
  }
  back(id) { this.parent = id; }
  write(file) { writeFileSync(file, this.lines.map((line) => JSON.stringify(line) + "\n").join("")); }
}

const text = (text) => ({ type: "text", text });
const call = (id, name, args) => ({ type: "toolCall", id, name, arguments: args });

// A red dot of 5 x 5.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";

/** A conversation as people have them, with a branch that was left and a shorter one. */
export function ordinary(file) {
  const s = new Session();
  s.add({ type: "model_change", provider: "anthropic", modelId: "claude-sonnet-4-5" });
  s.add({ type: "thinking_level_change", thinkingLevel: "medium" });
  s.message({ role: "system", content: "You are a coding agent. Work in the folder of the session.",
    sections: { environment: "Linux, bash 5.2", "project instructions": "Use tabs.\nRun the tests before you say that you are done." },
    toolsAdded: [{ name: "read", description: "Reads a file.", parameters: { type: "object", properties: { path: { type: "string" } } } },
      { name: "bash", description: "Runs a command.", parameters: { type: "object" } }] });
  const first = s.user("The forecast page shows **yesterday's** temperature after midnight.\n\nCan you find out why, and fix it?");
  s.answer([
    { type: "thinking", thinking: "The date is probably taken in local time in one place and in UTC in another.\nLet me look at the code first." },
    text("I'll look at how the page picks the day."),
    call("c1", "bash", { command: "grep -rn 'toISOString\\|getDate' src | head -20" }),
    call("c2", "read", { path: "src/forecast.ts", offset: 40, limit: 30 }),
  ], { stopReason: "toolUse", thinkingLevel: "medium" });
  s.result("c1", "bash", "\u001b[35msrc/forecast.ts\u001b[0m:47:  const day = now.toISOString().slice(0, 10);\n\u001b[35msrc/clock.ts\u001b[0m:12:  return now.getDate();\n");
  s.result("c2", "read", "  const now = new Date();\n  const day = now.toISOString().slice(0, 10);\n  return series.find((point) => point.day === day);\n");
  s.answer([
    text("Found it: `src/forecast.ts` takes the day in **UTC**, the series has local days. Between midnight and the offset they differ.\n\n" +
      "| place | day |\n| --- | --- |\n| `forecast.ts:47` | UTC |\n| `clock.ts:12` | local |\n\n" +
      "The fix is one line:\n\n```ts\nconst day = localDay(now, station.timeZone);\n```\n\nSee [MDN on dates](https://developer.mozilla.org/docs/Web/JavaScript/Reference/Global_Objects/Date), and `src/clock.ts` for the helper."),
    call("c3", "edit", { path: "src/forecast.ts", edits: [{ oldText: "now.toISOString().slice(0, 10)", newText: "localDay(now, station.timeZone)" }] }),
    call("c4", "bash", { command: "npm test -- --run forecast", timeout: 120 }),
  ], { stopReason: "toolUse" });
  s.result("c3", "edit", "Replaced 1 text in src/forecast.ts.", {
    details: { diff: "    ...\n  45 export function today(series: Series, station: Station) {\n  46   const now = new Date();\n- 47   const day = now.toISOString().slice(0, 10);\n+ 47   const day = localDay(now, station.timeZone);\n  48   return series.find((point) => point.day === day);\n  49 }\n    ..." } });
  s.result("c4", "bash", "FAIL src/forecast.test.ts\n  ✗ today() after midnight\n    ReferenceError: localDay is not defined\n\nCommand exited with code 1", { isError: true, durationMs: 3400 });
  const fork = s.answer([
    text("The import is missing."),
    call("c5", "write", { path: "src/clock.ts", content: "export function localDay(now: Date, timeZone: string): string {\n\treturn new Intl.DateTimeFormat('sv', { timeZone }).format(now);\n}\n" }),
  ], { stopReason: "toolUse" });
  s.result("c5", "write", "Wrote 143 bytes to src/clock.ts.");
  s.answer([text("Done. All 14 tests pass now.\n\n1. `today()` uses the station's time zone\n2. a test covers the hour after midnight\n   - with daylight saving\n   - without\n\n> The series itself was right all along.")]);
  const left = s.user("Good. Now do the same for the hourly view.");
  s.answer([text("The hourly view has its own clock; I would rather share one. A zebra crossed here.")], { stopReason: "aborted", errorMessage: "Request was aborted" });
  s.back(fork);
  s.result("c5", "write", "Wrote 143 bytes to src/clock.ts.");
  s.add({ type: "branch_summary", fromId: left, summary: "The other branch began the **hourly view** with a clock of its own." });
  s.user([text("Look at this screenshot instead: the icon is wrong as well."), { type: "image", data: PNG, mimeType: "image/png" }]);
  s.message({ role: "bashExecution", command: "git status --short", output: " M src/forecast.ts\n?? src/clock.ts\n", exitCode: 0, cancelled: false, truncated: false });
  s.add({ type: "compaction", summary: "## Goal\nFix the day of the forecast.\n\n## Done\n- `localDay` in `src/clock.ts`", firstKeptEntryId: first, tokensBefore: 48211,
    details: { readFiles: ["src/forecast.ts"], modifiedFiles: ["src/clock.ts", "src/forecast.ts"] }, usage: { input: 9000, output: 400, cost: { total: 0.03 } } });
  const last = s.answer([text("The icon comes from the same wrong day. With the fix it is right; I checked the page at 00:30.")]);
  s.add({ type: "label", targetId: last, label: "works" });
  s.add({ type: "session_info", name: "Forecast shows yesterday" });
  s.write(file);
}

/** Everything that could act on a page, in every place. It ends up in the middle of lines, too. */
export function hostile(file) {
  const evil = [
    "</script><script>window.pwned=1;alert(1)</script>", "<img src=x onerror=\"window.pwned=1;alert(1)\">", "<!--", "-->", "]]>", "</pre></details></article>",
    "\"onmouseover=\"alert(1)", "'><svg onload=alert(1)>", "</style><style>*{display:none}</style>", "</title><script>alert(1)</script>",
    "<iframe src=\"https://evil.invalid/\"></iframe>", "<link rel=stylesheet href=//evil.invalid/a.css>", "<meta http-equiv=refresh content=\"0;url=https://evil.invalid\">",
    "<base href=https://evil.invalid/>", "javascript:alert(1)", "\u0000", "\u001b[31mred\u001b]0;title\u0007", "\u2028\u2029", "\u202egnp.exe", "\ud83d", "\ude00", "&lt;b&gt;", "x".repeat(3000),
  ];
  const all = evil.join(" ");
  const markdown = evil.map((one) => `[a](${one}) ![b](${one}) <${one}>\n\n\`\`\`${one}\n${one}\n\`\`\`\n\n# ${one}\n\n![c](https://evil.invalid/c.png)`).join("\n\n");
  const s = new Session({ cwd: all });
  s.message({ role: "system", content: all, sections: { [all]: all }, toolsAdded: [{ name: all, description: all, parameters: { [all]: all } }] });
  const fork = s.user([text(all), { type: "image", data: "PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+", mimeType: "image/svg+xml" }, { type: "image", data: all, mimeType: all }]);
  s.answer([{ type: "thinking", thinking: all }, text(markdown), call("c1", all, { [all]: all }), call("c2", "edit", { path: all }), call("c3", "bash", { command: all })],
    { provider: all, model: all, stopReason: "error", errorMessage: all });
  s.result("c1", all, all, { isError: true, details: { [all]: all } });
  s.result("c2", "edit", all, { details: { diff: evil.map((one) => "+1 " + one).join("\n") } });
  s.result("c3", "bash", all);
  s.message({ role: "bashExecution", command: all, output: all, cancelled: false, truncated: true, fullOutputPath: all });
  s.add({ type: "custom_message", customType: all, content: all, display: true });
  s.add({ type: "compaction", summary: markdown, firstKeptEntryId: all, tokensBefore: 1 });
  s.back(fork);
  s.user(all);
  s.add({ type: "label", targetId: fork, label: all });
  s.add({ type: "session_info", name: all });
  s.add({ type: all, payload: all });
  s.write(file);
}

/** Many entries on many branches. */
export function long(file, entries, branches) {
  const s = new Session();
  const root = s.user("root");
  for (let branch = 0; branch < branches; branch++) {
    s.back(root);
    for (let at = 0; at < entries / branches; at += 4) {
      s.user(`Prompt ${at} of branch ${branch}`);
      s.answer([text(`Looking at **part ${at}**.`), call(`c${branch}-${at}`, "bash", { command: `ls part-${at}` })], { stopReason: "toolUse" });
      s.result(`c${branch}-${at}`, "bash", "total 0\n".repeat(20));
      s.answer([text(`Part ${at} is fine.`)]);
    }
  }
  s.user("needle at the end");
  s.write(file);
}
