// What the events of a run have to be, whatever the provider.

import assert from "node:assert/strict";

/// The answers of the model in these events, each checked against the deltas before it.
export function answers(events) {
  const answers = [];
  let blocks;
  for (const event of events) {
    if (event.type === "message_start" && event.message.role === "assistant") blocks = [];
    if (event.type === "message_update") update(blocks, event.assistantMessageEvent);
    if (event.type === "message_end" && event.message.role === "assistant") {
      check(blocks, event.message);
      answers.push(event.message);
      blocks = undefined;
    }
  }
  assert.equal(blocks, undefined, "an answer without an end");
  return answers;
}

function update(blocks, event) {
  assert.ok(blocks, `${event.type} outside of an answer`);
  const [kind, step] = event.type.split("_");
  if (step === "start") {
    assert.equal(event.contentIndex, blocks.length, "blocks are opened in order");
    blocks.push({ kind, text: "", id: event.id, name: event.toolName, ended: false });
    return;
  }
  const block = blocks[event.contentIndex];
  assert.ok(block && block.kind === kind && !block.ended, `${event.type} of block ${event.contentIndex}`);
  if (step === "delta") block.text += event.delta;
  else if (step === "end") {
    block.ended = true;
    if (kind !== "toolcall") assert.equal(event.content, block.text);
  } else assert.fail(`an event ${event.type}`);
}

function check(blocks, message) {
  if (!blocks) {
    // A request that was refused has no beginning.
    assert.deepEqual(message.content, []);
    return;
  }
  assert.equal(message.content.length, blocks.length);
  message.content.forEach((block, index) => {
    const { kind, text, id, name, ended } = blocks[index];
    assert.ok(ended || ["aborted", "error"].includes(message.stopReason), `block ${index} has no end`);
    if (block.type === "text") assert.deepEqual([kind, text], ["text", block.text]);
    else if (block.type === "thinking") assert.deepEqual([kind, text], ["thinking", block.thinking]);
    else {
      assert.deepEqual([block.type, kind, id, name], ["toolCall", "toolcall", block.id, block.name]);
      if (message.stopReason === "toolUse") assert.deepEqual(JSON.parse(text || "{}"), block.arguments);
    }
  });
}

export const text = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
export const thinking = (message) => message.content.filter((block) => block.type === "thinking").map((block) => block.thinking).join("");
export const calls = (message) => message.content.filter((block) => block.type === "toolCall");
