/** System messages of a transcript and the state they add up to. Pure. */
import type { Context, Message, SystemMessage, TextContent, Tool } from "./types.ts";

type Messages = readonly { role: string }[];

function systemMessages(messages: Messages): SystemMessage[] {
  return messages.filter((message): message is SystemMessage => message.role === "system");
}

/** Text of content, its text blocks joined. */
export function contentText(content: string | readonly { type: string; text?: string }[], separator = "\n"): string {
  if (typeof content === "string") return content;
  return content
    .filter((block) => block.type === "text")
    .map((block) => block.text ?? "")
    .join(separator);
}

const PARAGRAPH = "\n\n";

function sectionTexts(sections: SystemMessage["sections"]): string[] {
  return Object.values(sections ?? {}).filter((text): text is string => text !== null);
}

/** A system message as a whole prompt: its content, then its sections. */
export function getSystemMessageText(message: SystemMessage): string {
  return [contentText(message.content), ...sectionTexts(message.sections)].filter((text) => text !== "").join(PARAGRAPH);
}

/** A later system message as text that a model can relate to the prompt it changes. */
export function renderSystemMessageUpdate(message: SystemMessage): string {
  const parts = [contentText(message.content)];
  for (const [name, text] of Object.entries(message.sections ?? {})) {
    parts.push(
      text === null
        ? `The section "${name}" of the system prompt no longer applies.`
        : `The section "${name}" of the system prompt is now:${PARAGRAPH}${text}`,
    );
  }
  return parts.filter((part) => part !== "").join(PARAGRAPH);
}

/** The leading system message for a prompt and tools, or undefined when there is neither. */
export function createInitialSystemMessage(
  systemPrompt: string | undefined,
  tools: Tool[] | undefined,
): SystemMessage | undefined {
  const hasTools = tools !== undefined && tools.length > 0;
  if (!systemPrompt && !hasTools) return undefined;
  return {
    role: "system",
    content: systemPrompt ?? "",
    ...(hasTools ? { toolsAdded: tools } : {}),
    timestamp: 0,
  };
}

/** Folds a prompt and tools of a context into its leading system message. */
export function normalizeContext(context: Context): { messages: Message[] } {
  const initial = createInitialSystemMessage(context.systemPrompt, context.tools);
  return { messages: initial ? [initial as unknown as Message, ...context.messages] : context.messages };
}

export function getInitialSystemMessage(messages: Messages): SystemMessage | undefined {
  const first = messages[0];
  return first?.role === "system" ? (first as SystemMessage) : undefined;
}

export function withoutInitialSystemMessage<T extends { role: string }>(messages: T[]): T[] {
  return getInitialSystemMessage(messages) ? messages.slice(1) : messages;
}

/** The tools that are there after all changes. */
export function getCurrentTools(messages: Messages): Tool[] {
  const tools = new Map<string, Tool>();
  for (const message of systemMessages(messages)) applyTools(tools, message);
  return [...tools.values()];
}

function applyTools(tools: Map<string, Tool>, message: SystemMessage): void {
  for (const { name } of message.toolsRemoved ?? []) tools.delete(name);
  for (const tool of message.toolsAdded ?? []) tools.set(tool.name, tool);
}

/** One system message that holds the present prompt and tools, or undefined when there is none. */
export function getCurrentSystemMessage(messages: Messages): SystemMessage | undefined {
  const all = systemMessages(messages);
  const first = all[0];
  if (!first) return undefined;
  const sections: Record<string, string> = {};
  for (const message of all) {
    for (const [name, text] of Object.entries(message.sections ?? {})) {
      if (text === null) delete sections[name];
      else sections[name] = text;
    }
  }
  const tools = getCurrentTools(messages);
  const texts = all.map((message) => contentText(message.content)).filter((text) => text !== "");
  return {
    role: "system",
    content: texts.join(PARAGRAPH),
    ...(Object.keys(sections).length > 0 ? { sections } : {}),
    ...(tools.length > 0 ? { toolsAdded: tools } : {}),
    timestamp: first.timestamp,
  };
}

export function getCurrentSystemPrompt(messages: Messages): string {
  const message = getCurrentSystemMessage(messages);
  return message ? getSystemMessageText(message) : "";
}

/** The transcript with its system messages replaced by one leading one. */
export function collapseSystemMessages<T extends { messages: Message[] }>(context: T): T {
  const current = getCurrentSystemMessage(context.messages);
  if (!current) return context;
  const rest = context.messages.filter((message) => message.role !== "system");
  return { ...context, messages: [current as unknown as Message, ...rest] };
}

/** Keeps later system messages where a model takes them. */
export function resolveTranscript<T extends { messages: Message[] }>(
  context: T,
  supportsMidConvoSystemMessages: boolean | undefined,
): T {
  return supportsMidConvoSystemMessages ? context : collapseSystemMessages(context);
}

/** What of a tool is told to a model. */
export function toToolDeclaration(tool: Tool): Tool {
  const { name, description, parameters, constrainedSampling } = tool;
  return JSON.parse(JSON.stringify({ name, description, parameters, constrainedSampling })) as Tool;
}

export function declarationsEqual(left: Tool, right: Tool): boolean {
  return JSON.stringify(toToolDeclaration(left)) === JSON.stringify(toToolDeclaration(right));
}

export interface ToolStateChanges {
  toolsAdded: Tool[];
  toolsRemoved: { name: string }[];
}

/** What leads from one set of tools to another. A changed tool is removed and added. */
export function getToolStateChanges(previous: readonly Tool[], current: readonly Tool[]): ToolStateChanges {
  const before = new Map(previous.map((tool) => [tool.name, tool]));
  const after = new Map(current.map((tool) => [tool.name, tool]));
  const same = (left: Tool, right: Tool | undefined): boolean => right !== undefined && declarationsEqual(left, right);
  return {
    toolsAdded: current.filter((tool) => !same(tool, before.get(tool.name))).map(toToolDeclaration),
    toolsRemoved: previous.filter((tool) => !same(tool, after.get(tool.name))).map(({ name }) => ({ name })),
  };
}

/** Every tool that was ever declared, in its last form, in the order of first declarations. */
export function getDeclaredTools(messages: Messages): Tool[] {
  const tools = new Map<string, Tool>();
  for (const message of systemMessages(messages)) {
    for (const tool of message.toolsAdded ?? []) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}

export function hasToolRedefinitions(messages: Messages): boolean {
  const tools = new Map<string, Tool>();
  for (const tool of systemMessages(messages).flatMap((message) => message.toolsAdded ?? [])) {
    const earlier = tools.get(tool.name);
    if (earlier && !declarationsEqual(earlier, tool)) return true;
    tools.set(tool.name, tool);
  }
  return false;
}

/** Whether a system message takes a tool away or declares one again. */
function isNonAdditive(message: SystemMessage, declared: Set<string>): boolean {
  let again = false;
  for (const tool of message.toolsAdded ?? []) {
    again ||= declared.has(tool.name);
    declared.add(tool.name);
  }
  return again || (message.toolsRemoved ?? []).length > 0;
}

export function hasNonAdditiveToolChanges(messages: Messages): boolean {
  const declared = new Set<string>();
  return systemMessages(messages).some((message) => isNonAdditive(message, declared));
}

/** Splits declarations into those of the request and those that stand in the transcript. */
export function resolveTranscriptTools(
  messages: Messages,
  support: "none" | "additions" | "changes",
): { requestTools: Tool[]; foldedSystemMessages: number } {
  const all = systemMessages(messages);
  if (support === "changes") return { requestTools: [], foldedSystemMessages: 0 };
  if (support === "none") return { requestTools: getCurrentTools(messages), foldedSystemMessages: all.length };
  const declared = new Set<string>();
  let folded = getInitialSystemMessage(messages) ? 1 : 0;
  all.forEach((message, index) => {
    if (isNonAdditive(message, declared)) folded = Math.max(folded, index + 1);
  });
  return { requestTools: getCurrentTools(all.slice(0, folded)), foldedSystemMessages: folded };
}

export type { TextContent };
