// A model on a loopback port, which says what a test wants: chat completions, Anthropic's messages and Google's generateContent.

import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";

/// A server that answers requests by `answer(asked)`.
///
/// `asked` is `{api, body, headers, prompt, results, text}`: the last texts of a user, the number of tool results after them, and all that is
/// in the request as one string. The answer is
/// `{text?, pieces?, thinking?, calls?: [{id, name, args}], usage?: {input, output}, fail?: {status, message}, hold?: promise, pause?: ms}`: `hold` is waited
/// for between the text and the end, `pause` is the time in milliseconds between two events. Pages are `page(path, url)`: `{type, body}`, or nothing.
export async function modelServer(answer, page = () => undefined) {
  const requests = [], broken = [], listeners = new Set();
  const server = createServer(async (request, response) => {
    try {
      if (request.method === "GET") {
        const found = page(request.url, url());
        response.writeHead(found === undefined ? 404 : 200, { "content-type": found?.type ?? "text/plain" });
        response.end(found?.body ?? "There is no such page.\n");
        return;
      }
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const api = apiOf(request.url);
      const asked = understood(api, JSON.parse(Buffer.concat(chunks).toString() || "{}"));
      asked.headers = request.headers;
      asked.web = url();
      asked.closed = new Promise((resolve) => response.on("close", resolve));
      let speak;
      asked.spoken = new Promise((resolve) => (speak = resolve));
      requests.push(asked);
      for (const listener of [...listeners]) listener(asked);
      const said = (await answer(asked)) ?? { text: "Well." };
      if (said.fail) {
        response.writeHead(said.fail.status, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message: said.fail.message, type: "stub", code: said.fail.status } }));
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const [name, event] of apis[api].events(asked, said)) {
        if (name === "hold") {
          speak();
          await Promise.race([said.hold, asked.closed]);
        }
        else {
          if (said.pause) await setTimeout(said.pause);
          response.write(`${name === "" ? "" : `event: ${name}\n`}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
        }
      }
      response.end();
    } catch (error) {
      broken.push(error);
      response.destroy();
    }
  });
  const url = () => `http://127.0.0.1:${server.address().port}`;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: url(),
    /// What was asked so far.
    requests,
    /// The next request that `fits`. Its `spoken` is settled when the answer is held, `closed` when its connection is.
    next: (fits) => new Promise((resolve) => {
      const listener = (asked) => {
        if (!fits(asked)) return;
        listeners.delete(listener);
        resolve(asked);
      };
      listeners.add(listener);
    }),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      if (broken.length > 0) throw new AggregateError(broken, "the model server failed");
    },
  };
}

function apiOf(url) {
  const name = Object.keys(apis).find((name) => apis[name].path.test(url));
  if (name === undefined) throw new Error(`no model API is at ${url}`);
  return name;
}

const textOf = (content) => {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("");
};

/// The last texts of a user and the number of tool results after them, from `[kind, text]` of each message.
function last(messages) {
  const isOf = (kinds) => ([kind]) => kinds.includes(kind);
  const end = messages.findLastIndex(isOf(["user"]));
  const begin = messages.slice(0, Math.max(end, 0)).findLastIndex(isOf(["assistant", "result"])) + 1;
  const texts = messages.slice(begin, end + 1).filter(isOf(["user"])).map(([, text]) => text);
  return { prompt: texts.join("\n"), results: messages.slice(end + 1).filter(isOf(["result"])).length };
}

function understood(api, body) {
  return { api, body, text: JSON.stringify(body), ...last(apis[api].messages(body)) };
}

const usageOf = (said) => ({ input: said.usage?.input ?? 10, output: said.usage?.output ?? 5 });
/// Two pieces, so that there is something to put together.
const pieces = (text, count = 2) => {
  const length = Math.max(1, Math.ceil(text.length / count));
  return Array.from({ length: Math.ceil(text.length / length) }, (_, at) => text.slice(at * length, (at + 1) * length));
};

const apis = {
  completions: {
    path: /\/chat\/completions$/,
    messages: (body) => body.messages.map((message) => [message.role === "tool" ? "result" : message.role, textOf(message.content)]),
    *events(asked, said) {
      const chunk = (delta, more = {}) => ["", { id: "r1", object: "chat.completion.chunk", created: 1, model: asked.body.model, choices: [{ index: 0, delta, finish_reason: null, ...more }] }];
      yield chunk({ role: "assistant", content: "" });
      for (const piece of pieces(said.thinking ?? "")) yield chunk({ reasoning_content: piece });
      for (const piece of pieces(said.text ?? "", said.pieces)) yield chunk({ content: piece });
      for (const [index, call] of (said.calls ?? []).entries()) {
        yield chunk({ tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }] });
        for (const piece of pieces(JSON.stringify(call.args))) yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
      }
      if (said.hold) yield ["hold"];
      yield chunk({}, { finish_reason: said.calls?.length ? "tool_calls" : "stop" });
      const { input, output } = usageOf(said);
      yield ["", { id: "r1", object: "chat.completion.chunk", created: 1, model: asked.body.model, choices: [], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } }];
      yield ["", "[DONE]"];
    },
  },
  anthropic: {
    path: /\/v1\/messages(\?.*)?$/,
    messages: (body) => body.messages.flatMap((message) => {
      const parts = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
      const results = parts.filter((part) => part.type === "tool_result");
      return results.length > 0 ? results.map((part) => ["result", textOf(part.content)]) : [[message.role, textOf(parts)]];
    }),
    *events(asked, said) {
      const { input, output } = usageOf(said);
      const event = (value) => [value.type, value];
      yield event({ type: "message_start", message: { id: "m1", type: "message", role: "assistant", model: asked.body.model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: input, output_tokens: 1, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 } } });
      let index = 0;
      const block = function* (start, deltas) {
        yield event({ type: "content_block_start", index, content_block: start });
        for (const delta of deltas) yield event({ type: "content_block_delta", index, delta });
        yield event({ type: "content_block_stop", index });
        index += 1;
      };
      if (said.thinking) {
        yield* block({ type: "thinking", thinking: "", signature: "" }, [
          ...pieces(said.thinking).map((thinking) => ({ type: "thinking_delta", thinking })), { type: "signature_delta", signature: "c2ln" },
        ]);
      }
      if (said.text) yield* block({ type: "text", text: "" }, pieces(said.text).map((text) => ({ type: "text_delta", text })));
      for (const call of said.calls ?? []) {
        yield* block({ type: "tool_use", id: call.id, name: call.name, input: {} }, pieces(JSON.stringify(call.args)).map((partial_json) => ({ type: "input_json_delta", partial_json })));
      }
      if (said.hold) yield ["hold"];
      yield event({ type: "message_delta", delta: { stop_reason: said.calls?.length ? "tool_use" : "end_turn", stop_sequence: null }, usage: { output_tokens: output } });
      yield event({ type: "message_stop" });
    },
  },
  google: {
    path: /:streamGenerateContent/,
    messages: (body) => body.contents.map((message) => [message.role === "model" ? "assistant" : "user", textOf(message.parts)]),
    *events(asked, said) {
      const { input, output } = usageOf(said);
      const usageMetadata = { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output };
      for (const piece of pieces(said.text ?? "")) yield ["", { candidates: [{ content: { role: "model", parts: [{ text: piece }] }, index: 0 }] }];
      if (said.hold) yield ["hold"];
      yield ["", { candidates: [{ content: { role: "model", parts: [{ text: "" }] }, finishReason: "STOP", index: 0 }], usageMetadata }];
    },
  },
};

/// An `answer` from a list: each step is `{when?, say}`, and the first one whose `when` fits is taken, any number of times. `when` is a
/// part of the prompt, a pair of that and the number of tool results after it, or a function of what was asked.
export function scripted(...steps) {
  const fits = (when, asked) => {
    if (when === undefined) return true;
    if (typeof when === "function") return when(asked);
    const [part, results] = Array.isArray(when) ? when : [when, undefined];
    return asked.prompt.includes(part) && (results === undefined || results === asked.results);
  };
  return (asked) => {
    const step = steps.find(([when]) => fits(when, asked));
    return step === undefined ? { text: "Well." } : typeof step[1] === "function" ? step[1](asked) : step[1];
  };
}
