// What two programs did in the same conversation, in a form in which it is the same: without ids, times and places, and without the
// differences that are wanted, which stand here with their reasons.

import assert from "node:assert/strict";

import { sessions } from "./side.mjs";

/// The tools of both programs: their texts are each program's own.
const builtIn = new Set(["read", "bash", "edit", "write", "grep", "find", "ls"]);

/// Differences that are wanted, as changes that are made to a record of either program, or that leave it out (`undefined`).
const wanted = [
  {
    // The prompt is each program's own work. What extensions add to it is in sections and tools, which stay.
    why: "agentd has a system prompt and texts of tools of its own",
    change: (record) => inMessages(record, (message) => {
      if (message.role !== "system") return message;
      const { sections, content, toolsAdded, toolsRemoved, ...rest } = message;
      return {
        ...rest, content: typeof content === "string" && content !== "" ? content : "",
        toolsAdded: toolsAdded?.map((tool) => (builtIn.has(tool.name) ? tool.name : tool)).sort(byText), toolsRemoved: toolsRemoved?.toSorted(byText),
      };
    }),
  },
  {
    // pi's event holds the object that goes on changing until the line is written.
    why: "the usage beside a part of an answer is as far as it is known at that moment",
    change: (record) => (record.type === "message_update" ? { ...record, usage: undefined } : record),
  },
  {
    why: "agentd and pi have system prompts of different lengths, which the sizes of contexts are estimated by",
    change: (record) => without(record, ["compaction_end", "compact"], "estimatedTokensAfter"),
  },
  {
    why: "agentd says of a cost that is a sum nothing about who counted it",
    change: (record) => without(record, ["compaction_end", "compact", "compaction"], "totalFromProvider"),
  },
  {
    why: "agentd says more of a failure: a code for programs, and a remedy",
    change: (record) => (record.type === "response" && !record.success ? { ...record, code: undefined, hint: undefined } : record),
  },
  {
    why: "a compaction of an extension that gives no details has empty ones in agentd",
    change: (record) => {
      const plain = (result) => (result?.details && Object.keys(result.details).length === 0 ? { ...result, details: undefined } : result);
      if (record.type === "compaction") return plain(record);
      if (record.type === "compaction_end") return { ...record, result: plain(record.result) };
      return record.command === "compact" ? { ...record, data: plain(record.data) } : record;
    },
  },
  {
    why: "pi's extensions for llama.cpp and MCP are built into it; agentd has neither as an extension",
    change: (record) => {
      if (record.type !== "response" || record.command !== "get_commands") return record;
      const commands = record.data.commands.filter((command) => command.sourceInfo?.source !== "builtin");
      return { ...record, data: { ...record.data, commands } };
    },
  },
];

/// The record without the fields of that name, where it is one of those.
function without(record, kinds, field) {
  if (!kinds.includes(record.type) && !kinds.includes(record.command)) return record;
  return JSON.parse(JSON.stringify(record, (name, value) => (name === field ? undefined : value)));
}

const byText = (one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);

/// Makes `change` in all messages that a record or an entry holds.
function inMessages(record, change) {
  const changed = { ...record };
  for (const name of ["message", "systemMessage"]) if (record[name]?.role) changed[name] = change(record[name]);
  for (const name of ["messages", "toolResults"]) if (Array.isArray(record[name])) changed[name] = record[name].map(change);
  if (record.data?.messages) changed.data = { ...record.data, messages: record.data.messages.map(change) };
  if (record.entry) changed.entry = inMessages(record.entry, change);
  if (record.data?.entries) changed.data = { ...record.data, entries: record.data.entries.map((entry) => inMessages(entry, change)) };
  return changed;
}

/// Entries that only agentd has. What follows one has its parent as its own.
const extra = [
  // pi forgets at the end of the process which tools were chosen.
  (entry) => entry.type === "custom" && entry.customType === "agentd.active-tools",
];

/// The entries of a session file without those, and for each of those the entry before it.
function withoutExtra(files, more = []) {
  const parents = new Map();
  const kept = files.map((entries) => entries.filter((entry) => {
    const isExtra = [...extra, ...more].some((fits) => fits(entry));
    if (isExtra) parents.set(entry.id, entry.parentId);
    return !isExtra;
  }));
  return { kept, parents };
}

/// Replaces what differs from run to run: the same name for the same thing, numbered by its first appearance.
export function masking(place, parents = new Map(), more = []) {
  const names = new Map();
  const numbered = (kind, value) => {
    const key = `${kind}:${value}`;
    if (!names.has(key)) names.set(key, `<${kind}-${[...names.keys()].filter((known) => known.startsWith(`${kind}:`)).length + 1}>`);
    return names.get(key);
  };
  const others = (text) => more.reduce((text, [part, name]) => text.replaceAll(part, (found) => (name.startsWith("<") ? name : numbered(name, found))), text);
  const inText = (text) => others(text)
    .replaceAll(place.root, "<root>").replaceAll(place.root.replaceAll("/", "-"), "<root>").replaceAll(place.server.url, "<model>")
    .replaceAll(/(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) => numbered("uuid", id))
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.-]\d{3}Z/g, "<time>");
  const mask = (value, key = "") => {
    if (Array.isArray(value)) return value.map((item) => mask(item, key));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined).map(([name, item]) => [mask(name), mask(item, name)]));
    }
    if (typeof value === "number" && /^(timestamp|durationMs|labelTimestamp|storedAt|wall_time_seconds)$/.test(key)) return 0;
    if (typeof value !== "string") return value;
    while (parents.has(value)) value = parents.get(value);
    return /^[0-9a-f]{8}$/.test(value) ? numbered("entry", value) : inText(value);
  };
  return mask;
}

/// Records whose number or order is a matter of time: the pieces of an answer, what a command has printed so far, and the ends of calls
/// that run at the same time.
function settled(records) {
  const out = [];
  for (const record of records) {
    const before = out.at(-1), event = record.assistantMessageEvent, last = before?.assistantMessageEvent;
    if (event?.type.endsWith("_delta") && last?.type === event.type && last.contentIndex === event.contentIndex) {
      out[out.length - 1] = { ...record, assistantMessageEvent: { ...event, delta: last.delta + event.delta } };
    } else if (record.type === "tool_execution_update" && record.toolName === "bash" && before?.toolCallId === record.toolCallId && before.type === record.type) {
      out[out.length - 1] = record;
    } else {
      out.push(record);
    }
  }
  // A partial result and what the tool adds to the session at the same moment reach the session in two ways.
  for (let at = 1; at < out.length; at++) {
    for (let back = at; back > 0 && out[back].type === "tool_execution_update" && out[back - 1].type === "entry_appended"; back--) {
      [out[back - 1], out[back]] = [out[back], out[back - 1]];
    }
  }
  const order = out.flatMap((record) => (record.type === "tool_execution_start" ? [record.toolCallId] : []));
  const place = (record) => order.indexOf(record.toolCallId);
  for (let at = 1; at < out.length; at++) {
    for (let back = at; out[back].type === "tool_execution_end" && out[back - 1].type === "tool_execution_end" && place(out[back]) < place(out[back - 1]); back--) {
      [out[back - 1], out[back]] = [out[back], out[back - 1]];
    }
  }
  return out;
}

const changedBy = (changes, record, program) => changes.reduce((value, { change }) => (value === undefined ? value : change(value, program)), record);

/// What the program did: `{wire, sessions, asked}`. `what.wanted` are differences that are wanted in this conversation alone, `what.extra`
/// say of an entry whether only one program has it, `what.arranged` puts the records of all clients into another form, `what.masks`
/// more texts that differ from run to run: `[pattern, kind]`, or `[pattern, "<name>"]` where all have the same name.
export function account(place, clients, what) {
  const { kept, parents } = withoutExtra(sessions(place), what.extra);
  const mask = masking(place, parents, what.masks);
  const changes = [...wanted, ...(what.wanted ?? [])];
  const keep = (records) => records.map((record) => changedBy(changes, record, place.program)).filter((record) => record !== undefined);
  const arranged = what.arranged ?? ((records) => records);
  const wire = settled(arranged(keep(clients.flatMap((client) => client.records)))).map((record) => mask(record));
  return {
    wire,
    sessions: kept.map((entries) => keep(entries).map((entry) => mask(entry))),
    asked: place.server.requests.map((asked) => mask(question(asked))),
  };
}

/// What the model was asked, without what is each program's own: the system prompt, the prompts of compactions, and whether a single text
/// is a list of one.
function question({ api, body }) {
  const messages = (body.messages ?? body.contents).filter((message) => message.role !== "system" && message.role !== "developer");
  return {
    api, model: body.model, tools: body.tools?.map((tool) => tool.function?.name ?? tool.name).sort(),
    messages: messages.map((message) => {
      const parts = message.content ?? message.parts;
      const isText = Array.isArray(parts) && parts.length === 1 && typeof parts[0].text === "string";
      const content = isText ? parts[0].text : parts;
      return { ...message, parts: undefined, content: conversation(content) ?? content };
    }),
  };
}

/// The conversation that is to be summarised, as a prompt of a compaction quotes it, or its summary.
function conversation(content) {
  if (typeof content !== "string") return undefined;
  const quoted = /<conversation>([^]*)<\/conversation>/.exec(content) ?? /<summary>([^]*)<\/summary>/.exec(content) ?? /^# Conversation\s([^]*?)\n# Instructions\s/.exec(content);
  return quoted?.[1].trim();
}

/// Fails with the first line in which the accounts differ, and what is around it.
export function same(ours, theirs, what) {
  for (const part of ["wire", "asked"]) sameLines(ours[part], theirs[part], `${what}: ${part}`);
  assert.equal(ours.sessions.length, theirs.sessions.length, `${what}: the number of session files`);
  for (const [index, entries] of ours.sessions.entries()) sameLines(entries, theirs.sessions[index], `${what}: session ${index + 1}`);
}

const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
};

function sameLines(ours, theirs, what) {
  const [mine, other] = [ours, theirs].map((records) => records.map((record) => JSON.stringify(sorted(record))));
  const at = mine.findIndex((line, index) => line !== other[index]);
  if (at === -1 && mine.length === other.length) return;
  const first = at === -1 ? mine.length : at;
  const short = (line) => (line === undefined ? "(nothing)" : line.length > 3000 ? `${line.slice(0, 3000)}…` : line);
  const around = mine.slice(Math.max(0, first - 3), first).map((line) => `  ${short(line).slice(0, 200)}`).join("\n");
  const after = (lines) => lines.slice(first + 1, first + 6).map((line) => short(line).slice(0, 200)).join("\n         ");
  assert.fail(`${what}, line ${first + 1}:\n${around}\nagentd:  ${short(mine[first])}\n         ${after(mine)}\npi:      ${short(other[first])}\n         ${after(other)}`);
}
