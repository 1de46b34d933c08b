/** Rebuilds the message that an assistant's stream has produced so far, from its start and deltas. */
import { isObject, type JsonObject } from "../protocol/records.ts";
import { parsePartialJson } from "./partial_json.ts";

interface Block extends JsonObject {
  type: string;
}

export class PartialMessage {
  private readonly base: JsonObject;
  private readonly blocks: Block[] = [];
  /** Texts of tool arguments by index of their block. */
  private readonly argumentTexts = new Map<number, string>();

  /** `start` is the message at the start of the stream; its content comes again as deltas. */
  constructor(start: JsonObject) {
    this.base = { ...start };
  }

  apply(event: JsonObject): void {
    if (isObject(event["usage"])) this.base["usage"] = event["usage"];
    const index = event["contentIndex"];
    if (typeof index !== "number") return;
    switch (event["type"]) {
      case "text_start":
        this.blocks[index] = { type: "text", text: "" };
        break;
      case "text_delta":
        this.grow(index, "text", "text", event["delta"]);
        break;
      case "text_end":
        this.finish(index, "text", "text", event["content"]);
        break;
      case "thinking_start":
        this.blocks[index] = { type: "thinking", thinking: "" };
        break;
      case "thinking_delta":
        this.grow(index, "thinking", "thinking", event["delta"]);
        break;
      case "thinking_end":
        this.finish(index, "thinking", "thinking", event["content"]);
        break;
      case "toolcall_start":
        this.blocks[index] = { type: "toolCall", id: event["id"] ?? "", name: event["toolName"] ?? "", arguments: {} };
        this.argumentTexts.set(index, "");
        break;
      case "toolcall_delta":
        this.argumentTexts.set(index, (this.argumentTexts.get(index) ?? "") + String(event["delta"] ?? ""));
        break;
      case "toolcall_end":
        this.argumentTexts.delete(index);
        if (isObject(event["toolCall"])) this.blocks[index] = event["toolCall"] as Block;
        break;
    }
  }

  /** The message so far. Later events do not change it. */
  snapshot(): JsonObject {
    const content = Array.from(this.blocks, (block, index) => this.copyBlock(block, index)).filter((block) => block !== undefined);
    return { ...this.base, content };
  }

  private copyBlock(block: Block | undefined, index: number): Block | undefined {
    if (block === undefined) return undefined;
    const copy = { ...block };
    const text = this.argumentTexts.get(index);
    // Parsed only when read: most handlers never look at unfinished arguments.
    if (text !== undefined) defineLazy(copy, "arguments", () => parsePartialJson(text));
    return copy;
  }

  private grow(index: number, type: string, field: string, delta: unknown): void {
    const block = this.blocks[index];
    if (block === undefined) this.blocks[index] = { type, [field]: String(delta ?? "") };
    else block[field] = String(block[field] ?? "") + String(delta ?? "");
  }

  private finish(index: number, type: string, field: string, content: unknown): void {
    const block = (this.blocks[index] ??= { type });
    if (typeof content === "string") block[field] = content;
  }
}

function defineLazy(target: object, name: string, compute: () => unknown): void {
  Object.defineProperty(target, name, {
    configurable: true,
    enumerable: true,
    get() {
      const value = compute();
      Object.defineProperty(target, name, { configurable: true, enumerable: true, writable: true, value });
      return value;
    },
  });
}
