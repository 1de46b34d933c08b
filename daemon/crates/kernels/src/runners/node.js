// A kernel of the tool `eval`: runs the cells of one session in one Node process.
//
// Records are JSON lines: requests on descriptor 3, answers on descriptor 4. Text never is a record: whatever cells and their processes print
// goes to the one pipe behind descriptors 1 and 2, so that its order is that in which it was written.
//
// Cells are evaluated as in a console (the `replMode` of V8's inspector): with `await` at their top, and `const`, `let`, `class` that later
// cells see and may declare again.
'use strict';
const fs = require('node:fs');
const vm = require('node:vm');
const util = require('node:util');
const path = require('node:path');
const inspector = require('node:inspector');
const { Worker } = require('node:worker_threads');
const { createRequire } = require('node:module');
const { pathToFileURL } = require('node:url');

const MAX_JSON = 8000;
const MAX_IMAGE = 12 << 20;

function answer(record) {
  let data = Buffer.from(JSON.stringify(record, (_key, value) => (typeof value === 'bigint' ? String(value) : value)) + '\n');
  while (data.length > 0) {
    try {
      data = data.subarray(fs.writeSync(4, data));
    } catch (error) {
      if (error.code !== 'EAGAIN') process.exit(0);
    }
  }
}

function say(text) {
  process.stdout.write(text.endsWith('\n') ? text : text + '\n');
}

// ---- Tools of the session ------------------------------------------------------------------------------------------------------------

class ToolError extends Error {
  get name() {
    return 'ToolError';
  }
}

let lastCall = 0;
let running = null;
const calls = new Map();

/** Calls a tool of the session as the model calls it: resolves to the whole result. */
function call(name, args = {}) {
  if (running === null) return Promise.reject(new ToolError('Tools can be called only while a cell runs.'));
  const number = ++lastCall;
  return new Promise((resolve, reject) => {
    calls.set(number, { resolve, reject });
    answer({ type: 'call', call: number, name: String(name), arguments: args });
  });
}

const textOf = (content) => content.filter((block) => block.type === 'text').map((block) => block.text).join('\n');

function callEnded(record) {
  const waiting = calls.get(record.call);
  calls.delete(record.call);
  if (waiting === undefined) return;
  if (record.isError) waiting.reject(new ToolError(textOf(record.content)));
  else waiting.resolve({ content: record.content, details: record.details });
}

/** `await tool.NAME({argument: value})` calls the tool of that name: resolves to the text of its result. */
const tool = new Proxy(
  {},
  {
    get: (_target, name) =>
      typeof name === 'string' && name !== 'then' ? (args) => call(name, args).then((result) => textOf(result.content)) : undefined,
  },
);

// ---- Displays ------------------------------------------------------------------------------------------------------------------------

function imageKind(bytes) {
  const begins = (...codes) => codes.every((code, index) => bytes[index] === code);
  if (begins(0x89, 0x50, 0x4e, 0x47)) return 'image/png';
  if (begins(0xff, 0xd8, 0xff)) return 'image/jpeg';
  if (begins(0x47, 0x49, 0x46, 0x38)) return 'image/gif';
  if (begins(0x52, 0x49, 0x46, 0x46) && bytes[8] === 0x57 && bytes[9] === 0x45) return 'image/webp';
  return null;
}

function showImage(kind, data) {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  if (bytes.length > MAX_IMAGE) say(`[An image of ${bytes.length} bytes is left out: ${MAX_IMAGE} are the most.]`);
  else answer({ type: 'display', bundle: { [kind]: bytes.toString('base64') } });
}

function showJson(value) {
  let text = JSON.stringify(value) ?? 'undefined';
  if (text.length > MAX_JSON) text = `${text.slice(0, MAX_JSON)}… [${text.length} characters of JSON]`;
  say(text);
  answer({ type: 'display', bundle: { 'application/json': value } });
}

const cellText = (value) => {
  const text = typeof value === 'string' ? value : value === undefined ? '' : util.inspect(value, { depth: 1, breakLength: Infinity });
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|');
};

/** Rows that are plain objects, as a table of Markdown. */
function table(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const lines = rows.map((row) => line(columns.map((column) => cellText(row[column]))));
  say([line(columns.map(cellText)), `|${' --- |'.repeat(columns.length)}`, ...lines].join('\n'));
}

const unescaped = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', '#39': "'" };

/** HTML as text: tables as those of Markdown, everything else without its tags. */
function htmlText(html) {
  const plain = (part) =>
    part
      .replace(/<[^>]*>/g, '')
      .replace(/&(#?\w+);/g, (all, name) => unescaped[name] ?? all);
  const withTables = html
    .replace(/<(script|style|head)\b[\s\S]*?<\/\1>/gi, '')
    .replace(/<table\b[\s\S]*?<\/table>/gi, (all) => {
      const rows = [...all.matchAll(/<tr\b[^>]*>([\s\S]*?)(?=<tr\b|<\/tr>|<\/table>)/gi)].map((row) =>
        [...row[1].matchAll(/<t[dh]\b[^>]*>([\s\S]*?)(?=<t[dh]\b|<\/t[dhr]|$)/gi)].map((cell) =>
          plain(cell[1]).trim().replace(/\s+/g, ' ').replaceAll('|', '\\|'),
        ),
      );
      const width = Math.max(0, ...rows.map((row) => row.length));
      const lines = rows.map((row) => `| ${[...row, ...Array(width - row.length).fill('')].join(' | ')} |`);
      lines.splice(1, 0, `|${' --- |'.repeat(width)}`);
      return `\n${lines.join('\n')}\n`.replaceAll('<', '&lt;');
    })
    .replace(/<(br|\/p|\/div|\/h[1-6]|\/li)\b[^>]*>/gi, '\n')
    .replace(/<li\b[^>]*>/gi, '- ');
  return plain(withTables)
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

function showBundle(bundle) {
  const image = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'].find((kind) => bundle[kind] !== undefined);
  if (image !== undefined) return showImage(image, bundle[image]);
  if (bundle['text/markdown'] !== undefined) return say(String(bundle['text/markdown']));
  if (bundle['application/json'] !== undefined) return showJson(bundle['application/json']);
  const html = bundle['text/html'];
  if (html !== undefined && (/<table/i.test(html) || bundle['text/plain'] === undefined)) return say(htmlText(String(html)));
  return say(String(bundle['text/plain'] ?? ''));
}

const isBundle = (value) => {
  const keys = Object.keys(value);
  return keys.length > 0 && keys.every((key) => /^(text|image|application)\/[\w.+-]+$/.test(key));
};
const isPlain = (value) => typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

function inspected(value) {
  return util.inspect(value, { depth: 4, maxArrayLength: 100, maxStringLength: 20_000, breakLength: 120 });
}

function show(value) {
  if (typeof value?.toMimeBundle === 'function') showBundle(value.toMimeBundle());
  else if (typeof value === 'string' && value.includes('\n')) say(value);
  else say(inspected(value));
}

/** Shows values in the result: bytes of an image as one, `{mime: data}` by its best form, rows of objects as a table. */
function display(...values) {
  for (const value of values) {
    const kind = value instanceof Uint8Array ? imageKind(value) : null;
    if (kind !== null) showImage(kind, value);
    else if (typeof value === 'string') say(value);
    else if (isPlain(value) && isBundle(value)) showBundle(value);
    else if (Array.isArray(value) && value.length > 0 && value.length <= 1000 && value.every(isPlain)) table(value);
    else show(value);
  }
}

// ---- Cells ---------------------------------------------------------------------------------------------------------------------------

class Exit extends Error {
  constructor(code) {
    super(`process.exit(${code})`);
    this.code = code;
  }
}

/** The names by which modules are imported, as calls: console cells have no `import`. */
function withImports(source) {
  let out = '';
  let at = 0;
  let mayBegin = true;
  while (at < source.length) {
    const rest = source.slice(at, at + 20_000);
    const skipped = /^(\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`)/.exec(rest);
    if (skipped) {
      out += skipped[0];
      at += skipped[0].length;
      mayBegin &&= skipped[0].startsWith('/');
      continue;
    }
    const word = /^[A-Za-z_$][\w$]*/.exec(rest);
    if (word && word[0] === 'import' && !/[.\w$]$/.test(out)) {
      const fixed = mayBegin ? staticImport(rest) : null;
      if (fixed) {
        out += fixed.code;
        at += fixed.length;
        mayBegin = false;
        continue;
      }
      if (/^import\s*\(/.test(rest)) {
        out += '__agentdImport';
        at += 'import'.length;
        mayBegin = false;
        continue;
      }
    }
    const token = word ? word[0] : rest[0];
    out += token;
    at += token.length;
    if (token === '\n' || token === ';') mayBegin = true;
    else if (token.trim() !== '') mayBegin = false;
  }
  return out;
}

function staticImport(text) {
  const found = /^import\s+(?:([^'"`;()]*?)\s+from\s+)?(['"])([^'"\n]+)\2(?:\s+(?:with|assert)\s*\{[^}]*\})?/.exec(text);
  if (!found) return null;
  const [all, names, , specifier] = found;
  const loaded = `await __agentdImport(${JSON.stringify(specifier)})`;
  if (names === undefined) return { code: loaded, length: all.length };
  const parts = [];
  const named = /\{([^}]*)\}/.exec(names);
  const others = names.replace(/\{[^}]*\}/, '').split(',').map((part) => part.trim()).filter(Boolean);
  let whole = null;
  for (const other of others) {
    const space = /^\*\s+as\s+([\w$]+)$/.exec(other);
    if (space) whole = space[1];
    else if (/^[\w$]+$/.test(other)) parts.push(`default: ${other}`);
    else return null;
  }
  for (const part of named ? named[1].split(',').map((one) => one.trim()).filter(Boolean) : []) {
    parts.push(part.replace(/^([\w$]+)\s+as\s+([\w$]+)$/, '$1: $2'));
  }
  const lines = [];
  if (whole) lines.push(`const ${whole} = ${loaded};`);
  if (parts.length > 0) lines.push(`const {${parts.join(', ')}} = ${whole ?? loaded};`);
  return { code: lines.join(' '), length: all.length };
}

const session = new inspector.Session();
session.connect();
const post = (method, parameters) =>
  new Promise((resolve, reject) => session.post(method, parameters, (error, result) => (error ? reject(error) : resolve(result))));

let taken = null;
const internal = Object.freeze({ begin: () => taken.begin(), take: (value) => taken.take(value) });
Object.defineProperty(globalThis, '__agentd', { value: internal });
Object.defineProperty(globalThis, '__agentdImport', {
  value: (specifier) => {
    const isPath = /^\.{0,2}\//.test(specifier);
    const resolved = isPath ? pathToFileURL(path.resolve(specifier)).href : importable(specifier);
    return import(resolved);
  },
});

function importable(specifier) {
  if (/^(node|file|data|https?):/.test(specifier)) return specifier;
  try {
    const found = globalThis.require.resolve(specifier);
    return path.isAbsolute(found) ? pathToFileURL(found).href : specifier;
  } catch {
    return specifier;
  }
}

/** What evaluating gives: `{value}`, or `{failure}`. */
async function evaluated(source, stop) {
  let evaluation = null;
  const expression = withImports(source);
  taken = {
    begin() {
      evaluation = post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true });
      evaluation.catch(() => {});
    },
  };
  try {
    // The interrupt of a loop that never gives the event loop a turn.
    vm.runInThisContext('__agentd.begin()', { breakOnSigint: true });
  } catch (error) {
    return { failure: error, cancelled: true };
  }
  const outcome = await Promise.race([evaluation, stop]);
  if (outcome.cancelled) return outcome;
  const { result, exceptionDetails } = outcome;
  const thrown = exceptionDetails?.exception ?? null;
  const subject = thrown ?? result;
  let value;
  taken = { take: (one) => (value = one) };
  const argument =
    subject.objectId !== undefined
      ? { objectId: subject.objectId }
      : subject.unserializableValue !== undefined
        ? { unserializableValue: subject.unserializableValue }
        : { value: subject.value };
  await post('Runtime.callFunctionOn', {
    functionDeclaration: '(value) => __agentd.take(value)',
    arguments: [argument],
    executionContextId: 1,
  });
  if (subject.objectId !== undefined) post('Runtime.releaseObject', { objectId: subject.objectId }).catch(() => {});
  return thrown !== null || exceptionDetails ? { failure: value, where: exceptionDetails } : { value };
}

/** A failure's text, without the lines of this runner and of Node itself. */
function failureText(failure) {
  if (!(failure instanceof Error)) return `Uncaught ${inspected(failure)}`;
  const text = inspected(failure);
  const lines = text.split('\n').filter((line) => !/^\s+at .*(node:|\(?evalmachine|\[eval|__agentd|at eval \(eval at <anonymous> \(\[eval)/.test(line));
  return lines
    .filter((line) => !/^\s+at (Session\.post|post|Object\.begin|new Promise|evaluated|runCell|async runCell|async evaluated)\b/.test(line))
    .join('\n')
    .replace(/<anonymous>:(\d+):(\d+)/g, '<cell>:$1:$2');
}

let count = 0;
let interrupt = null;
process.on('SIGINT', () => interrupt?.());

function settleDown() {
  for (const { reject } of calls.values()) reject(new ToolError('The cell has ended.'));
  calls.clear();
}

async function runCell(request) {
  count += 1;
  running = request.id;
  const stop = new Promise((resolve) => {
    interrupt = () => resolve({ cancelled: true, failure: new Error('Interrupted') });
  });
  // From here on the cell has begun: whoever reads this knows that it must not be run a second time.
  answer({ type: 'started', id: request.id });
  Object.assign(process.env, request.env ?? {});
  let [status, exitCode, cancelled] = ['ok', null, false];
  try {
    const outcome = await evaluated(request.code, stop);
    if (outcome.failure instanceof Exit || outcome.failure?.constructor === Exit) {
      exitCode = outcome.failure.code & 255;
      status = exitCode === 0 ? 'ok' : 'error';
      exitCode = exitCode === 0 ? null : exitCode;
    } else if ('failure' in outcome) {
      [status, exitCode, cancelled] = ['error', 1, outcome.cancelled === true];
      say(outcome.cancelled ? 'Interrupted' : failureText(outcome.failure));
      answer({ type: 'error', id: request.id, ename: outcome.failure?.name ?? 'Error', evalue: String(outcome.failure?.message ?? outcome.failure).slice(0, 2000) });
    } else if (outcome.value !== undefined && !request.code.trimEnd().endsWith(';')) {
      show(outcome.value);
    }
  } catch (error) {
    [status, exitCode] = ['error', 1];
    say(failureText(error));
    answer({ type: 'error', id: request.id, ename: error?.name ?? 'Error', evalue: String(error?.message ?? error).slice(0, 2000) });
  }
  interrupt = null;
  running = null;
  settleDown();
  answer({ type: 'done', id: request.id, status, exitCode, executionCount: count, cancelled });
}

// A failure that nobody waits for must not end the kernel.
process.on('uncaughtException', (error) => {
  if (!(error instanceof Exit)) say(failureText(error));
});
process.on('unhandledRejection', (error) => {
  if (!(error instanceof Exit)) say(failureText(error));
});
process.exit = (code = process.exitCode ?? 0) => {
  throw new Exit(Number(code) || 0);
};
const reallyExit = process.reallyExit.bind(process);

Object.assign(globalThis, {
  require: createRequire(path.join(process.cwd(), 'cell.js')),
  tool,
  call,
  display,
  ToolError,
  read: (file, more = {}) => tool.read({ path: String(file), ...more }),
  write: (file, content) => tool.write({ path: String(file), content }),
  env: (name, value) => {
    if (name === undefined) return { ...process.env };
    if (value !== undefined) process.env[name] = String(value);
    return process.env[name];
  },
});

// ---- Requests ------------------------------------------------------------------------------------------------------------------------

/**
 * Reads the requests on a thread of its own, which a cell cannot keep from its work: an interrupt comes through whatever the cell does. One
 * that this thread does not take within a second finds it in a loop, after an `await` for instance, where no signal reaches it.
 */
function readRequests() {
  const { parentPort, workerData } = require('node:worker_threads');
  const net = require('node:net');
  const inspector = require('node:inspector');
  const INTERRUPT_WAIT = 1000;
  let pieces = [];
  let waiting = null;

  function interrupt() {
    parentPort.postMessage({ type: 'interrupt' });
    clearTimeout(waiting);
    waiting = setTimeout(endLoop, INTERRUPT_WAIT);
  }

  /** Ends what runs on the main thread, which no `catch` of the cell sees; again, if something else runs on then. */
  function endLoop() {
    const session = new inspector.Session();
    session.connectToMainThread();
    session.post('Runtime.terminateExecution', () => session.disconnect());
    waiting = setTimeout(endLoop, INTERRUPT_WAIT);
  }

  function take(data) {
    let rest = data;
    let end;
    while ((end = rest.indexOf(10)) >= 0) {
      const record = JSON.parse(Buffer.concat([...pieces, rest.subarray(0, end)]).toString());
      pieces = [];
      rest = rest.subarray(end + 1);
      if (record.type === 'interrupt') interrupt();
      else parentPort.postMessage(record);
    }
    if (rest.length > 0) pieces.push(rest);
  }

  parentPort.on('message', () => {
    clearTimeout(waiting);
    waiting = null;
  });
  const requests = new net.Socket({ fd: 3, readable: true, writable: false });
  requests.on('data', take);
  requests.on('end', () => parentPort.postMessage({ type: 'end' }));
  requests.on('error', () => parentPort.postMessage({ type: 'end' }));
  take(Buffer.from(workerData));
}

const reader = new Worker(`(${readRequests})()`, { eval: true, workerData: REST, stdin: false });
reader.on('message', (record) => {
  if (record.type === 'run') runCell(record);
  else if (record.type === 'result') callEnded(record);
  else if (record.type === 'interrupt') {
    reader.postMessage('taken');
    interrupt?.();
  } else if (record.type === 'end') reallyExit(0);
});
reader.on('error', () => reallyExit(1));
reader.on('online', () => answer({ type: 'ready', version: process.versions.node }));
