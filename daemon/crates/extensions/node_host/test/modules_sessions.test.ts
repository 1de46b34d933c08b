/** `SessionManager`: sessions in files, made and read by extensions themselves. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test, type TestContext } from "node:test";
import { ourModule } from "./support/modules.ts";
import { Random } from "./support/random.ts";
import { needsReference, referenceModule } from "./support/reference.ts";
import { FakeServices } from "./support/services.ts";

type Json = Record<string, unknown>;

interface Entry extends Json {
  type: string;
  id: string;
  parentId: string | null;
}

interface TreeNode {
  entry: Entry;
  children: TreeNode[];
  label?: string;
}

interface Manager {
  appendMessage(message: Json): string;
  appendThinkingLevelChange(level: string): string;
  appendModelChange(provider: string, id: string): string;
  appendCompaction(summary: string, firstKept: string | null, tokens: number): string;
  appendCustomEntry(type: string, data?: unknown): string;
  appendCustomMessageEntry(type: string, content: unknown, display: boolean): string;
  appendSessionInfo(name: string): string;
  appendLabelChange(id: string, label: string | undefined): string;
  appendContextEdit(id: string, replacement: unknown): string;
  branch(id: string): void;
  resetLeaf(): void;
  branchWithSummary(id: string | null, summary: string): string;
  createBranchedSession(leaf: string): string | undefined;
  getEntries(): Entry[];
  getBranch(from?: string): Entry[];
  getTree(): TreeNode[];
  getLeafId(): string | null;
  getLabel(id: string): string | undefined;
  getSessionId(): string;
  getSessionFile(): string | undefined;
  getSessionDir(): string;
  getSessionName(): string | undefined;
  getHeader(): Json | null;
  getCwd(): string;
  isPersisted(): boolean;
  buildContextEntries(): Entry[];
  buildSessionContext(): Json;
}

interface ManagerClass {
  create(cwd: string, dir?: string, options?: Json): Manager;
  open(path: string, dir?: string, cwd?: string): Manager;
  continueRecent(cwd: string, dir?: string): Manager;
  inMemory(cwd?: string): Manager;
  forkFrom(source: string, cwd: string, dir?: string): Manager;
  findById(cwd: string, id: string, dir?: string): string | undefined;
  list(cwd: string, dir?: string): Promise<Json[]>;
  listAll(dir?: string): Promise<Json[]>;
}

const CWD = "/home/u/my.proj";

function folder(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "agentd-sessions-"));
  context.after(() => rmSync(path, { recursive: true }));
  return path;
}

function managerFor(agentDir: string): ManagerClass {
  return ourModule("pi-coding-agent", new FakeServices({ agentDir })).SessionManager as ManagerClass;
}

function lines(path: string | undefined): Json[] {
  assert.ok(path);
  return readFileSync(path, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line) as Json);
}

function user(text: string, timestamp = 1): Json {
  return { role: "user", content: text, timestamp };
}

test("a session is written from its first message on, entry by entry", (context) => {
  const agentDir = folder(context);
  const manager = managerFor(agentDir).create(CWD);
  assert.equal(manager.getSessionDir(), join(agentDir, "sessions", "--home-u-my.proj--"));
  const file = manager.getSessionFile() as string;
  assert.match(basename(file), /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_[0-9a-f-]{36}\.jsonl$/);
  manager.appendModelChange("p", "m");
  assert.ok(!existsSync(file));
  const id = manager.appendMessage(user("hi"));
  manager.appendCustomEntry("mine", { n: 1 });
  const records = lines(file);
  assert.deepEqual(records.map(({ type }) => type), ["session", "model_change", "message", "custom"]);
  assert.deepEqual(Object.keys(records[3] as Json), ["type", "customType", "data", "id", "parentId", "timestamp"]);
  assert.equal(records[3]?.parentId, id);
  assert.deepEqual(records[0], manager.getHeader());
});

test("a session is read again as it was written, old and half written ones too", (context) => {
  const dir = folder(context);
  const Manager = managerFor(folder(context));
  const manager = Manager.create(CWD, dir);
  manager.appendMessage(user("hi"));
  manager.appendSessionInfo(" my\nname ");
  const file = manager.getSessionFile() as string;
  appendFileSync(file, '{"type":"mess');
  const opened = Manager.open(file);
  assert.deepEqual(opened.getEntries(), manager.getEntries());
  assert.equal(opened.getSessionName(), "my name");
  assert.equal(opened.getCwd(), CWD);
  opened.appendMessage(user("more"));
  assert.equal(Manager.open(file).getEntries().length, 3);
  const old = join(dir, "old.jsonl");
  writeFileSync(old, `${JSON.stringify({ type: "session", id: "s", timestamp: "t", cwd: CWD })}\n${JSON.stringify({ type: "message", timestamp: "t", message: { role: "hookMessage", content: "x" } })}\n`);
  assert.equal(((Manager.open(old).getEntries()[0] as Entry).message as Json).role, "custom");
  assert.equal(lines(old)[0]?.version, 3);
  const bad = join(dir, "bad.jsonl");
  writeFileSync(bad, "not a session\n");
  assert.throws(() => Manager.open(bad), { message: `Session file is not a valid pi session: ${bad}` });
});

test("branches, labels and edits are kept", () => {
  const manager = managerFor("/nonexistent").inMemory(CWD);
  assert.equal(manager.isPersisted(), false);
  const first = manager.appendMessage(user("one"));
  const second = manager.appendMessage(user("two"));
  manager.appendLabelChange(first, "start");
  manager.branch(first);
  manager.appendMessage(user("other"));
  assert.equal(manager.getLabel(first), "start");
  assert.deepEqual(manager.getBranch().map(({ message }) => (message as Json).content), ["one", "other"]);
  assert.equal(manager.getTree()[0]?.children.length, 2);
  manager.branchWithSummary(second, "left");
  assert.deepEqual(manager.getBranch().map(({ type }) => type), ["message", "message", "branch_summary"]);
  manager.appendContextEdit(second, { content: "TWO" });
  assert.deepEqual((manager.buildSessionContext().messages as Json[]).map(({ content, summary }) => content ?? summary), ["one", "TWO", "left"]);
  assert.throws(() => manager.appendContextEdit("nope", null), { message: "Entry nope not found" });
  assert.throws(() => manager.appendLabelChange("nope", "x"), { message: "Entry nope not found" });
  manager.resetLeaf();
  assert.equal(manager.getLeafId(), null);
});

test("a compaction that keeps nothing names itself", () => {
  const manager = managerFor("/nonexistent").inMemory(CWD);
  manager.appendMessage(user("one"));
  const id = manager.appendCompaction("S", null, 5);
  assert.equal(manager.getEntries().at(-1)?.firstKeptEntryId, id);
  assert.deepEqual(manager.buildContextEntries().map(({ type }) => type), ["compaction"]);
});

test("sessions are found by folder, id and time", async (context) => {
  const agentDir = folder(context);
  const Manager = managerFor(agentDir);
  const [older, newer] = ["first", "second"].map((text, index) => {
    const manager = Manager.create(CWD);
    manager.appendMessage(user(text, 1e12 + index));
    return manager;
  }) as [Manager, Manager];
  utimesSync(older.getSessionFile() as string, 1, 1);
  assert.equal(Manager.continueRecent(CWD).getSessionId(), newer.getSessionId());
  assert.equal(Manager.findById(CWD, older.getSessionId()), older.getSessionFile());
  assert.equal(Manager.findById("/elsewhere", older.getSessionId()), undefined);
  const list = await Manager.list(CWD);
  assert.deepEqual(list.map(({ firstMessage }) => firstMessage), ["second", "first"]);
  assert.deepEqual([list[0]?.messageCount, list[0]?.cwd], [1, CWD]);
  assert.equal((await Manager.listAll()).length, 2);
  assert.deepEqual(await Manager.list("/elsewhere"), []);
});

test("a folder for all projects is filtered by the working directory", async (context) => {
  const dir = folder(context);
  const Manager = managerFor(folder(context));
  for (const cwd of ["/a", "/b"]) Manager.create(cwd, dir).appendMessage(user(cwd));
  assert.deepEqual((await Manager.list("/a", dir)).map(({ cwd }) => cwd), ["/a"]);
  assert.equal(Manager.continueRecent("/b", dir).getHeader()?.cwd, "/b");
  assert.equal((await Manager.listAll(dir)).length, 2);
});

test("forks name where they come from", (context) => {
  const dir = folder(context);
  const Manager = managerFor(folder(context));
  const source = Manager.create(CWD, dir);
  const first = source.appendMessage(user("one"));
  source.appendLabelChange(first, "here");
  const leaf = source.appendMessage(user("two"));
  source.branch(first);
  source.appendMessage(user("three"));
  const path = source.getSessionFile() as string;
  const fork = Manager.forkFrom(path, "/other", dir);
  assert.deepEqual(fork.getEntries(), source.getEntries());
  assert.deepEqual([fork.getHeader()?.parentSession, fork.getHeader()?.cwd], [path, "/other"]);
  source.createBranchedSession(leaf);
  const records = lines(source.getSessionFile());
  assert.deepEqual(records.map(({ type }) => type), ["session", "message", "message", "label"]);
  assert.equal(records[0]?.parentSession, path);
  assert.equal(records[2]?.parentId, records[1]?.id);
  assert.equal(source.getLabel(first), "here");
  assert.equal(readdirSync(dir).length, 3);
});

test("ids of sessions are checked", () => {
  const Manager = managerFor("/nonexistent");
  assert.throws(() => Manager.create(CWD, tmpdir(), { id: "-bad" }), /Session id must be non-empty/);
});

/** Ids and times differ between two sessions; the order of entries does not. */
function masked(value: unknown, entries: Entry[], header: Json | null): unknown {
  const names = new Map(entries.map(({ id }, index) => [id, `#${index}`]));
  const text = JSON.stringify(value, (key, part: unknown) => {
    if (part === undefined) return undefined;
    if (key === "timestamp" || key === "labelTimestamp") return "time";
    if (part === header?.id) return "session";
    return typeof part === "string" ? (names.get(part) ?? part) : part;
  }) as string | undefined;
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

test("a session that both sides write is the same, in memory and in its file", needsReference, (context) => {
  const random = new Random(31);
  const Theirs = referenceModule("pi-coding-agent").SessionManager as ManagerClass;
  const Ours = managerFor(folder(context));
  for (let round = 0; round < 25; round += 1) {
    const managers = [Theirs, Ours].map((Manager) => Manager.create(CWD, folder(context))) as [Manager, Manager];
    for (let step = 0; step < 12; step += 1) {
      const known = managers[0].getEntries().length;
      const at = known === 0 ? -1 : random.below(known);
      const [kind, text, empty] = [random.below(11), `t${random.below(9)}`, random.chance(4)];
      const run = (manager: Manager): unknown => {
        const target = manager.getEntries()[at]?.id ?? "none";
        switch (kind) {
          case 0:
          case 1:
            return manager.appendMessage(user(text));
          case 2:
            return manager.appendMessage({ role: "assistant", content: [{ type: "text", text }], provider: "p", model: "m", timestamp: 1 });
          case 3:
            return manager.appendThinkingLevelChange("high");
          case 4:
            return manager.appendCustomEntry("c", empty ? undefined : { text });
          case 5:
            return manager.appendCustomMessageEntry("c", text, true);
          case 6:
            return manager.appendSessionInfo(empty ? "" : ` ${text}\n`);
          case 7:
            return manager.appendLabelChange(target, empty ? undefined : text);
          case 8:
            return manager.branch(target);
          case 9:
            return manager.branchWithSummary(empty ? null : target, text);
          default:
            return manager.appendContextEdit(target, empty ? null : { content: text });
        }
      };
      const outcomes = managers.map((manager) => {
        try {
          run(manager);
          return "done";
        } catch (error) {
          const names = new Map(manager.getEntries().map(({ id }, index) => [id, `#${index}`]));
          return (error as Error).message.replace(/[0-9a-f]{8}/, (id) => names.get(id) ?? id);
        }
      });
      assert.equal(outcomes[1], outcomes[0], `step ${kind}`);
      const [theirs, own] = managers.map((manager) =>
        masked(
          {
            entries: manager.getEntries(),
            branch: manager.getBranch(),
            tree: manager.getTree(),
            context: manager.buildSessionContext(),
            leaf: manager.getLeafId(),
            name: manager.getSessionName(),
          },
          manager.getEntries(),
          manager.getHeader(),
        ),
      );
      assert.deepEqual(own, theirs);
    }
    const files = managers.map((manager) => {
      const file = manager.getSessionFile() as string;
      const records = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
      return records.map((record) => masked(JSON.parse(record) as Json, manager.getEntries(), manager.getHeader()));
    });
    assert.deepEqual(files.map((records) => JSON.stringify(records))[1], JSON.stringify(files[0]));
    const [source] = managers;
    if (existsSync(source.getSessionFile() as string)) {
      assert.deepEqual(Ours.open(source.getSessionFile() as string).getEntries(), Theirs.open(source.getSessionFile() as string).getEntries());
    }
  }
});

test("lists of sessions are those of the reference", needsReference, async (context) => {
  const Theirs = referenceModule("pi-coding-agent").SessionManager as ManagerClass;
  const Ours = managerFor(folder(context));
  const dir = folder(context);
  for (const [index, cwd] of [CWD, CWD, "/other"].entries()) {
    const manager = Theirs.create(cwd, dir);
    manager.appendMessage(user(`question ${index}`, 1e12 + index));
    manager.appendMessage({ role: "assistant", content: [{ type: "text", text: "an" }, { type: "text", text: "swer" }], provider: "p", model: "m", timestamp: 1e12 + 10 - index });
    if (index === 1) manager.appendSessionInfo("named");
  }
  const plain = (list: Json[]): unknown => JSON.parse(JSON.stringify(list.map((info) => Object.fromEntries(Object.entries(info).sort()))));
  assert.deepEqual(plain(await Ours.list(CWD, dir)), plain(await Theirs.list(CWD, dir)));
  assert.deepEqual(plain(await Ours.listAll(dir)), plain(await Theirs.listAll(dir)));
});
