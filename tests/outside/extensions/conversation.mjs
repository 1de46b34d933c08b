// The same conversation with both programs.

import assert from "node:assert/strict";
import { join } from "node:path";

import { account, same } from "./compare.mjs";
import { examples, side } from "./side.mjs";

/// Runs `talk` in both programs at the same time, and compares what they did.
///
/// `what` is that of `side`, but that `answer` makes the answers of one program's model. `talk` gets the side and starts its clients; what
/// it gives back is compared, too. `once` has prompts answered in the mode of events. `what.wanted` are differences that are wanted in this conversation alone (`compare.mjs`).
export async function both(t, what, talk) {
  await persistent(t, (attempt) => compared(attempt, what, talk));
}

/// Runs a comparison again, twice at most, where it fails: what two processes tell of at the same moment comes in one order or the other, in pi
/// as in agentd, and a busy machine changes it. A difference that is one comes each time.
///
/// `comparison` gets a context of the test whose `after` is the end of that attempt: the next one finds nothing of it.
export async function persistent(t, comparison) {
  for (let left = 2; ; left -= 1) {
    const cleanups = [];
    try {
      return await comparison({ name: t.name, after: (cleanup) => cleanups.push(cleanup) });
    } catch (error) {
      if (left === 0 || error.code !== "ERR_ASSERTION") throw error;
      t.diagnostic(`made again: ${error.message}`);
    } finally {
      for (const cleanup of cleanups.toReversed()) await cleanup();
    }
  }
}

async function compared(t, what, talk) {
  const [ours, theirs] = await Promise.all(["agentd", "pi"].map(async (program) => {
    const place = await side(t, program, { ...what, answer: what.answer(program) });
    const clients = [];
    const start = (args, answer) => {
      const client = place.start(args, answer);
      clients.push(client);
      return client;
    };
    const once = async (args) => clients.push({ records: await place.once(args), isOver: () => true });
    const given = await talk({ ...place, start, once });
    for (const client of clients) if (!client.isOver()) await client.end();
    return { given, account: account(place, clients, what) };
  }));
  // Requests that come at the same time come in any order.
  if (what.inParallel) for (const { account } of [ours, theirs]) account.asked.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  same(ours.account, theirs.account, t.name);
  assert.deepEqual(ours.given, theirs.given);
}

/// The path of an example of pi.
export const example = (name) => join(examples, name);

/// A call of a tool, as a model makes it.
export const call = (id, name, args) => ({ id, name, args });

/// Answers dialogs by their method: with what is there for it, or what a function makes of the request.
export const dialogs = (answers) => (request) => (typeof answers[request.method] === "function" ? answers[request.method](request) : answers[request.method]);
