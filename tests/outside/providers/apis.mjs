// The provider APIs: their configuration in agentd, and what a strict server requires of a request.

import assert from "node:assert/strict";

/// Calls and results, told apart by the rules of each API: every call is answered once, right behind it.
function paired(turns, body) {
  let open = [];
  for (const { calls, results } of turns) {
    assert.deepEqual([...results].sort(), [...open].sort(), `calls and results in ${JSON.stringify(body)}`);
    open = calls;
  }
  assert.deepEqual(open, [], `calls without a result in ${JSON.stringify(body)}`);
}

function chat(body) {
  assert.equal(body.stream, true);
  let open = [];
  for (const message of body.messages) {
    if (message.role === "tool") {
      assert.ok(open.includes(message.tool_call_id), JSON.stringify(body));
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    assert.deepEqual(open, [], JSON.stringify(body));
    open = (message.tool_calls ?? []).map((call) => call.id);
    for (const call of message.tool_calls ?? []) assert.equal(typeof JSON.parse(call.function.arguments), "object");
  }
  assert.deepEqual(open, [], JSON.stringify(body));
}

function mistral(body) {
  chat(body);
  for (const message of body.messages) {
    for (const call of message.tool_calls ?? []) assert.match(call.id, /^[A-Za-z0-9]{9}$/);
  }
}

function messages(body) {
  assert.ok(body.max_tokens > 0 && body.stream === true);
  assert.equal(body.messages[0].role, "user");
  const blocks = (message, type) => (Array.isArray(message.content) ? message.content : []).filter((block) => block.type === type);
  paired(body.messages.map((message) => ({
    calls: blocks(message, "tool_use").map((block) => block.id), results: blocks(message, "tool_result").map((block) => block.tool_use_id),
  })), body);
}

function responses(body) {
  assert.equal(body.stream, true);
  const open = [];
  for (const item of body.input) {
    if (item.type === "function_call") open.push(item.call_id);
    if (item.type === "function_call_output") {
      assert.ok(open.includes(item.call_id), JSON.stringify(body));
      open.splice(open.indexOf(item.call_id), 1);
    }
  }
  assert.deepEqual(open, [], JSON.stringify(body));
}

function google(body) {
  const parts = (turn, kind) => turn.parts.filter((part) => part[kind]).map((part) => part[kind].name);
  for (const turn of body.contents) {
    assert.ok(["user", "model"].includes(turn.role) && turn.parts.length > 0, JSON.stringify(body));
  }
  paired(body.contents.map((turn) => ({ calls: parts(turn, "functionCall"), results: parts(turn, "functionResponse") })), body);
}

function bedrock(body) {
  let role = "assistant";
  const parts = (message, kind) => message.content.filter((part) => part[kind]).map((part) => part[kind].toolUseId);
  for (const message of body.messages) {
    assert.notEqual(message.role, role, `turns alternate: ${JSON.stringify(body)}`);
    role = message.role;
  }
  paired(body.messages.map((message) => ({ calls: parts(message, "toolUse"), results: parts(message, "toolResult") })), body);
}

const tooLong = {
  status: 400, message: "Your input exceeds the context window of this model. Please adjust your input and try again.", code: "context_length_exceeded",
};

/// A token of a ChatGPT login, which names the account.
function token(name) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({})}.${part({ "https://api.openai.com/auth": { chatgpt_account_id: name } })}.c2lnbmF0dXJl`;
}

/// One row for each API. `at` is where it is served, behind the server's address; `path` what its requests look like; `thinks`
/// whether the mock can send thinking; `cut` the stop reason at the output limit where the mock does not say that it was that;
/// `overflow` what the vendor says of too long a prompt. Optional: `key`, `wrongKey`, `env`, `usage` (where the mock has no counts),
/// and `rewrite` for a path that the mock knows by another name.
export const apis = [
  {
    api: "azure-openai-responses", at: "/v1", path: /^\/v1\/responses\?api-version=v1$/, thinks: true, legal: responses, cut: "error",
    overflow: tooLong,
  },
  {
    api: "google-generative-ai", at: "/v1beta", path: /^\/v1beta\/models\/model:streamGenerateContent\?alt=sse$/, thinks: true, legal: google,
    overflow: { status: 400, message: "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", type: "INVALID_ARGUMENT" },
  },
  {
    api: "google-vertex", at: "/v1/projects/p/locations/us-east1", thinks: true, legal: google,
    path: /^\/v1\/projects\/p\/locations\/us-east1\/publishers\/google\/models\/model:streamGenerateContent\?alt=sse$/,
    overflow: { status: 400, message: "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).", type: "INVALID_ARGUMENT" },
  },
  {
    api: "mistral-conversations", at: "", path: /^\/v1\/chat\/completions$/, thinks: false, legal: mistral,
    // The mock reports usage only to those who ask for it, which is not Mistral's way.
    usage: [0, 0],
    overflow: { status: 400, message: "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", code: "3051" },
  },
  {
    api: "openai-codex-responses", at: "/backend-api", path: /^\/backend-api\/codex\/responses$/, thinks: true, legal: responses, cut: "error",
    key: token("right"), wrongKey: token("wrong"), rewrite: () => "/v1/responses", overflow: tooLong,
  },
  {
    api: "bedrock-converse-stream", at: "", path: /^\/model\/model\/converse-stream$/, thinks: true, legal: bedrock,
    overflow: { status: 400, message: "Input is too long for requested model.", type: "ValidationException" },
  },
  {
    api: "openai-completions", at: "/v1", path: /^\/v1\/chat\/completions$/, thinks: true, legal: chat,
    overflow: { status: 400, message: "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.", code: "context_length_exceeded" },
  },
  {
    api: "anthropic-messages", at: "", path: /^\/v1\/messages(\?beta=true)?$/, thinks: true, legal: messages,
    overflow: { status: 400, message: "prompt is too long: 213462 tokens > 200000 maximum", type: "invalid_request_error" },
  },
  {
    api: "openai-responses", at: "/v1", path: /^\/v1\/responses$/, thinks: true, legal: responses, cut: "error",
    overflow: tooLong,
  },
];
