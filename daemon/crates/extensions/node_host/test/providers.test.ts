import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallHandler, extension, FakeDaemon, type Json } from "./fake_daemon.ts";

const STREAM = `
  async function* events(model, context, options) {
    const message = { role: 'assistant', content: [], api: model.api, provider: model.provider, model: model.id, usage: { input: 0 }, stopReason: 'pending' };
    const replaced = await options.onPayload?.({ prompt: context.messages.length });
    await options.onResponse?.({ status: 200, headers: { a: 'b' } });
    await options.onProviderStreamEvent?.({ raw: 1 }, model);
    yield { type: 'start', partial: message };
    message.content.push({ type: 'text', text: '' });
    yield { type: 'text_start', contentIndex: 0, partial: message };
    message.content[0].text = JSON.stringify(replaced ?? null);
    message.usage = { input: 5 };
    yield { type: 'text_delta', contentIndex: 0, delta: message.content[0].text, partial: message };
    message.content.push({ type: 'toolCall', id: 'c9', name: 'bash', arguments: {} });
    yield { type: 'toolcall_start', contentIndex: 1, partial: message };
    if (options.wait) { console.error('streaming'); await new Promise((r) => options.signal.addEventListener('abort', r)); yield { type: 'error', reason: 'aborted', error: { ...message, stopReason: 'aborted' } }; return; }
    yield { type: 'done', reason: 'stop', message: { ...message, stopReason: 'stop' } };
  }`;

const register = (config: string) => extension(`${STREAM}\npi.registerProvider('p', ${config});`);

test("functions of a config become callbacks, data stays", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ one: register("{ name: 'P', api: 'x', baseUrl: 'http://localhost', models: [{ id: 'm', cost: {} }], streamSimple: events, oauth: { name: 'O', login() {}, getApiKey() {} } }") });
  const config = daemon.registered("provider")[0]?.["config"] as Json;
  const { streamSimple, oauth, ...data } = config;
  assert.deepEqual(data, { name: "P", api: "x", baseUrl: "http://localhost", models: [{ id: "m", cost: {} }] });
  const numbers = [streamSimple, (oauth as Json)["login"], (oauth as Json)["getApiKey"]].map((ref) => (ref as { cb: number }).cb);
  assert.equal(new Set(numbers).size, 3);
  assert.equal((oauth as Json)["name"], "O");
  await daemon.stop();
});

test("a stream sends events without the message so far, asks the wanted callbacks, and ends with the message", async () => {
  const answers: Record<string, CallHandler> = { "provider.payload": ({ payload }) => ({ payload: { replaced: payload } }), "provider.response": () => null, "provider.streamEvent": () => null };
  const daemon = await FakeDaemon.greeted({ calls: answers });
  await daemon.load({ one: register("{ api: 'x', baseUrl: 'http://localhost', streamSimple: events }") });
  const { cb } = (daemon.registered("provider")[0]?.["config"] as Json)["streamSimple"] as { cb: number };
  const model = { provider: "p", id: "m", api: "x" };
  const context = { messages: [{ m: "k", v: { role: "user", content: "u" } }] };
  const run = daemon.request("provider.stream", { cb, model, context, options: {}, hooks: ["payload", "response", "streamEvent"] });
  const { message } = (await run) as { message: Json };
  assert.equal(message["stopReason"], "stop");
  assert.deepEqual(
    daemon.notes("provider.event").map((note) => note["event"]),
    [
      { type: "start", message: { role: "assistant", content: [], api: "x", provider: "p", model: "m", usage: { input: 0 }, stopReason: "pending" } },
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: '{"replaced":{"prompt":1}}', usage: { input: 5 } },
      { type: "toolcall_start", contentIndex: 1, id: "c9", toolName: "bash" },
      { type: "done", reason: "stop" },
    ],
  );
  assert.deepEqual(daemon.callsOf("provider.response")[0]?.["params"], { call: run.id, status: 200, headers: { a: "b" } });
  await daemon.stop();
});

test("cancel aborts a stream", async () => {
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ one: register("{ api: 'x', baseUrl: 'http://localhost', streamSimple: events }") });
  const { cb } = (daemon.registered("provider")[0]?.["config"] as Json)["streamSimple"] as { cb: number };
  const run = daemon.request("provider.stream", { cb, model: {}, context: { messages: [] }, options: { wait: true } });
  await daemon.whenPrinted("streaming");
  daemon.cancel(run.id);
  assert.equal(((await run) as { message: Json }).message["stopReason"], "aborted");
  await daemon.stop();
});

test("a provider object crosses with its models and its methods, also those of its class", async () => {
  const body = `
    class Auth { constructor() { this.name = 'key'; } resolve(ctx) { return { auth: { apiKey: this.name + ctx.x } }; } }
    class Provider {
      id = 'n'; name = 'N'; baseUrl = 'http://localhost'; auth = { apiKey: new Auth() };
      getModels() { return [{ id: 'm' }]; }
      filterModels(models) { return models.slice(1); }
      stream() {} streamSimple() {}
    }
    pi.registerProvider(new Provider());`;
  const daemon = await FakeDaemon.greeted();
  await daemon.load({ one: extension(body) });
  const note = daemon.registered("provider")[0];
  assert.deepEqual([note?.["name"], note?.["native"]], ["n", true]);
  const provider = note?.["provider"] as Json;
  assert.deepEqual([provider["id"], provider["name"], provider["baseUrl"], provider["models"]], ["n", "N", "http://localhost", [{ id: "m" }]]);
  const cb = (ref: unknown) => (ref as { cb: number }).cb;
  const resolve = ((provider["auth"] as Json)["apiKey"] as Json)["resolve"];
  assert.deepEqual(await daemon.request("provider.auth", { cb: cb(resolve), args: [{ x: 1 }] }), { auth: { apiKey: "key1" } });
  assert.deepEqual(await daemon.request("provider.filter", { cb: cb(provider["filterModels"]), args: [[1, 2]] }), [2]);
  assert.equal(typeof cb(provider["streamSimple"]), "number");
  await daemon.stop();
});

test("a login asks by calls about its request; the other steps return their values", async () => {
  const body = `pi.registerProvider('p', { baseUrl: 'http://localhost', oauth: {
    name: 'O',
    async login(callbacks) {
      callbacks.onAuth({ url: 'http://login', instructions: 'go' });
      callbacks.onProgress('half');
      return { access: await callbacks.onPrompt({ message: 'code?' }), refresh: await callbacks.onManualCodeInput(), expires: callbacks.signal instanceof AbortSignal ? 1 : 0 };
    },
    refreshToken: async (credential, signal) => ({ ...credential, refreshed: signal instanceof AbortSignal }),
    getApiKey: (credential) => 'key-' + credential.access,
    modifyModels: (models, credential) => models.map((m) => ({ ...m, via: credential.access })),
  } });`;
  const answers: Record<string, CallHandler> = { "oauth.prompt": ({ kind, message }) => (kind === "prompt" ? `answer to ${String(message)}` : kind === "manualCode" ? "code" : null) };
  const daemon = await FakeDaemon.greeted({ calls: answers });
  await daemon.load({ one: extension(body) });
  const oauth = (daemon.registered("provider")[0]?.["config"] as Json)["oauth"] as Record<string, { cb: number }>;
  const step = (name: string, stepName: string, fields: Json = {}) => daemon.request("provider.oauth", { cb: oauth[name]?.cb, step: stepName, ...fields });
  assert.deepEqual(await step("login", "login"), { access: "answer to code?", refresh: "code", expires: 1 });
  assert.deepEqual(daemon.callsOf("oauth.prompt").map((call) => (call["params"] as Json)["kind"]), ["auth", "progress", "prompt", "manualCode"]);
  const credential = { access: "a" };
  assert.deepEqual(await step("refreshToken", "refresh", { credential }), { access: "a", refreshed: true });
  assert.equal(await step("getApiKey", "apiKey", { credential }), "key-a");
  assert.deepEqual(await step("modifyModels", "modifyModels", { credential, models: [{ id: "m" }] }), [{ id: "m", via: "a" }]);
  await daemon.stop();
});

test("refreshModels publishes by calls and returns the models", async () => {
  const body = "pi.registerProvider('p', { baseUrl: 'http://localhost', async refreshModels(ctx) { await ctx.publish({ persist: { a: 1 } }); return [{ id: ctx.credential.access, network: ctx.allowNetwork, aborted: ctx.signal.aborted }]; } });";
  const daemon = await FakeDaemon.greeted({ calls: { "provider.publish": () => null } });
  await daemon.load({ one: extension(body) });
  const { cb } = (daemon.registered("provider")[0]?.["config"] as Json)["refreshModels"] as { cb: number };
  const value = await daemon.request("provider.refresh", { cb, context: { credential: { access: "x" }, allowNetwork: true } });
  assert.deepEqual(value, { models: [{ id: "x", network: true, aborted: false }] });
  assert.deepEqual((daemon.callsOf("provider.publish")[0]?.["params"] as Json)["update"], { persist: { a: 1 } });
  await daemon.stop();
});

test("a router gets whole models and its state, and says whether the state changed", async () => {
  const body = `pi.registerVirtualModel({ provider: 'v', id: 'auto', name: 'Auto', thinkingLevels: ['off', 'high'], route(request, ctx) {
    if (request.reason === 'direct') throw new Error('no direct');
    const state = request.reason === 'user' ? { n: (request.state?.n ?? 0) + 1 } : request.state;
    return { model: ctx.modelRegistry.find('a', '1'), thinkingLevel: request.previous?.model.name ?? 'off', state };
  } });`;
  const models = [{ provider: "a", id: "1", name: "A1", api: "x" }];
  const daemon = await FakeDaemon.bound({ one: extension(body) }, { calls: { read: () => ({ etag: "1", value: { models, providers: {} } }) } });
  const note = daemon.registered("virtualModel")[0];
  assert.deepEqual(note?.["model"], { provider: "v", id: "auto", name: "Auto", thinkingLevels: ["off", "high"] });
  const route = (request: Json) => daemon.request("vmodel.route", { cb: note?.["cb"], request: { model: { provider: "v", id: "auto", api: "pi-virtual" }, thinkingLevel: "off", messages: [], ...request } });
  assert.deepEqual(await route({ reason: "user", state: { n: 1 } }), { provider: "a", modelId: "1", thinkingLevel: "off", keepState: false, state: { n: 2 } });
  assert.deepEqual(await route({ reason: "retry", state: { n: 1 }, previous: { model: { provider: "a", id: "1" } } }), { provider: "a", modelId: "1", thinkingLevel: "A1", keepState: true });
  await assert.rejects(route({ reason: "direct" }), /no direct/);
  await daemon.stop();
});

test("after bind, registrations take effect at once and invalid ones throw", async () => {
  const body = `pi.on('x', (event, ctx) => {
    const errors = [];
    const attempt = (run) => { try { run(); } catch (error) { errors.push(error.message); } };
    attempt(() => pi.registerProvider('q', { streamSimple() {} }));
    attempt(() => pi.registerVirtualModel({ provider: ' ', id: 'x' }));
    pi.registerMcpServer('a-b', { command: 'c' });
    attempt(() => pi.registerMcpServer('a_b', { command: 'c' }));
    pi.registerProvider('p', { baseUrl: 'http://localhost', name: 'first' });
    pi.registerProvider('p', { name: 'second' });
    const { baseUrl, name } = ctx.modelRegistry.getRegisteredProviderConfig('p');
    const servers = pi.getMcpServers().map((s) => s.name);
    pi.unregisterProvider('p'); pi.unregisterMcpServer('a-b'); pi.unregisterVirtualModel('v', 'w');
    return { errors, baseUrl, name, servers, left: ctx.modelRegistry.getRegisteredProviderIds() };
  });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  assert.deepEqual((await daemon.hook({ type: "x" }))[0]?.["value"], {
    errors: ['Provider q: "api" is required when registering streamSimple.', "Virtual model provider and id must not be empty.", 'MCP server "a_b" conflicts with registered server "a-b"'],
    baseUrl: "http://localhost",
    name: "second",
    servers: ["a-b"],
    left: [],
  });
  assert.deepEqual(
    daemon.notes("unregister").map(({ kind, name, provider, id }) => ({ kind, name, provider, id })),
    [
      { kind: "provider", name: "p", provider: undefined, id: undefined },
      { kind: "mcpServer", name: "a-b", provider: undefined, id: undefined },
      { kind: "virtualModel", name: undefined, provider: "v", id: "w" },
    ],
  );
  await daemon.stop();
});
