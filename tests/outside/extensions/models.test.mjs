// Models that make images and that classify, of providers of extensions, in agentd and in pi: the same extension.

import { test } from "node:test";

import { both } from "./conversation.mjs";
import { scripted } from "./model_server.mjs";

const source = `
  class Painter {
    count = 0;
    async generateImages(model, context, options) {
      if (context.input[0].text === "fail") throw new Error("no colour left");
      if (context.input[0].text === "wait") await new Promise((resolve, reject) => options.signal.addEventListener("abort", () => reject(new Error("given up"))));
      return { api: model.api, provider: model.provider, model: model.id, output: [{ type: "text", text: JSON.stringify({ count: ++this.count, baseUrl: model.baseUrl, key: options.apiKey, headers: options.headers, n: options.n, said: context.input[0].text }) }], stopReason: "stop", timestamp: 1 };
    }
  }
  const judge = { classify: async (model, context) => ({ api: model.api, provider: model.provider, model: model.id, answers: { is: context.state.is }, stopReason: "stop", timestamp: 1 }) };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const shown = ({ timestamp, ...result }) => result;

  export default function (pi) {
    const painter = new Painter();
    pi.registerProvider("media", {
      name: "Media", apiKey: "sk-media", baseUrl: "http://127.0.0.1:1/v1", headers: { "x-team": "blue" },
      models: [
        { type: "image", id: "i", name: "I", api: "shapes", input: ["text"], output: ["image"], cost },
        { type: "image", id: "j", name: "J", api: "lines", baseUrl: "http://127.0.0.1:2", input: ["text"], output: ["image"], cost },
        { type: "classifier", id: "i", name: "C", api: "judge", input: ["text"], cost, contextWindow: 1000 },
      ],
      images: { shapes: { generateImages: (...args) => painter.generateImages(...args) } },
      classifiers: { judge },
    });
    pi.registerCommand("media", { description: "Runs models", handler: async (args, ctx) => {
      const { modelRegistry: models } = ctx;
      const [image, lines, classifier] = [models.findOfType("image", "media", "i"), models.findOfType("image", "media", "j"), models.findOfType("classifier", "media", "i")];
      const facts = ({ type, provider, id, api, baseUrl, input, output, contextWindow } = {}) => ({ type, provider, id, api, baseUrl, input, output, contextWindow });
      const draw = async (model, text, options) => shown(await models.generateImages(model, { input: [{ type: "text", text }] }, options));
      const said = {
        listed: [image, lines, classifier].map(facts),
        chat: [models.find("media", "i")?.id, models.getAll().filter((model) => model.provider === "media").length],
        available: (await models.getAvailableOfType("image", "media")).map((model) => model.id),
        drawn: [await draw(image, "a circle", { n: 2, headers: { "x-asked": "yes" } }), await draw(image, "a square", { apiKey: "sk-own" })],
        failed: [await draw(image, "fail"), await draw(lines, "a line"), await draw(classifier, "a circle"), await draw({ ...image, provider: "nobody" }, "a circle")],
        judged: shown(await models.classify(classifier, { state: { is: "round" }, questions: [] })),
        refused: [shown(await models.classify(image, { state: {} })), shown(await models.classify(classifier, { state: {}, images: [{ type: "image", data: "", mimeType: "image/png" }] }))],
      };
      const giveUp = new AbortController();
      const waiting = draw(image, "wait", { signal: giveUp.signal });
      setTimeout(() => giveUp.abort(), 100);
      const { stopReason, output } = await waiting;
      ctx.ui.notify(JSON.stringify({ ...said, givenUp: { stopReason, output } }, null, 1));
    } });
  }`;

test("models of an extension's provider make images and classify", (t) =>
  both(t, { files: { "agent/extensions/media.ts": source }, answer: () => scripted() }, async (place) => {
    await place.start().command("/media");
  }));
