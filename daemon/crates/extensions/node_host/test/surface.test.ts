/** The names of pi's API: none may be missing, none may be of our own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extension, FakeDaemon } from "./fake_daemon.ts";

const PI =
  "on registerTool registerCommand registerShortcut registerFlag getFlag registerMessageRenderer registerMarkdownTransformer registerEntryRenderer registerToolRenderer sendMessage sendUserMessage appendEntry setSessionName getSessionName setLabel exec getActiveTools getAllTools getSettings setActiveTools getCommands setModel getThinkingLevel setThinkingLevel registerProvider unregisterProvider registerMcpServer unregisterMcpServer getMcpServers registerVirtualModel unregisterVirtualModel events";
const CONTEXT =
  "ui mode hasUI cwd sessionManager modelRegistry model scopedModels thinkingLevel isIdle isProjectTrusted signal abort hasPendingMessages shutdown getContextUsage compact getSystemPrompt";
const COMMAND = `${CONTEXT} getSystemPromptOptions waitForIdle newSession fork navigateTree switchSession reload`;
const UI =
  "select confirm input notify onTerminalInput setStatus setWorkingMessage setWorkingVisible setWorkingIndicator setHiddenThinkingLabel setWidget setFooter setHeader setTitle custom pasteToEditor setEditorText getEditorText editor addAutocompleteProvider setEditorComponent getEditorComponent theme getAllThemes getTheme setTheme getToolsExpanded setToolsExpanded";
const SESSION =
  "getCwd getSessionDir getSessionId getSessionFile getLeafId getLeafEntry getEntry getLabel getBranch buildContextEntries buildSessionProjection getHeader getEntries getTree getSessionName";
const REGISTRY =
  "refresh getError getAll getAvailable find findOfType hasConfiguredAuth getApiKeyAndHeaders getProviderAuthStatus getProvider stream streamSimple complete getModelsOfType getAvailableOfType getModelOfType classify generateImages getProviderDisplayName getProviderAuth getApiKeyForProvider isUsingOAuth registerProvider unregisterProvider registerVirtualModel unregisterVirtualModel getRegisteredProviderConfig getRegisteredNativeProvider getRegisteredProviderIds";

const names = (list: string) => list.split(" ").sort();

test("pi, ctx, ui, the session view and the model registry have pi's names", async () => {
  const body = `
    const own = (value) => Object.keys(value).sort();
    const methods = (value) => Object.getOwnPropertyNames(Object.getPrototypeOf(value)).filter((name) => name !== 'constructor');
    pi.on('x', (event, ctx) => ({ pi: own(pi), ctx: own(ctx), ui: own(ctx.ui), session: own(ctx.sessionManager), registry: methods(ctx.modelRegistry), spread: typeof { ...ctx }.cwd }));
    pi.registerCommand('c', { handler(args, ctx) { console.error('command ' + own(ctx).join(' ') + ' end'); } });
    pi.registerTool({ name: 't', label: '', description: '', parameters: {}, execute: async (id, params, signal, onUpdate, ctx) => ({ content: [own(ctx), typeof ctx.executeTool, Array.isArray(ctx.tools)] }) });`;
  const daemon = await FakeDaemon.bound({ one: extension(body) });
  const value = (await daemon.hook({ type: "x" }))[0]?.["value"] as Record<string, string[] | string>;
  assert.deepEqual(value["pi"], names(PI));
  assert.deepEqual(value["ctx"], names(CONTEXT));
  assert.deepEqual(value["ui"], names(UI));
  assert.deepEqual(value["session"], names(SESSION));
  const registry = new Set(value["registry"]);
  assert.deepEqual(names(REGISTRY).filter((name) => !registry.has(name)), []);
  assert.equal(value["spread"], "string");
  await daemon.command("c", "", "one");
  await daemon.whenPrinted(" end");
  assert.equal(/command (.*) end/.exec(daemon.stderr)?.[1], names(COMMAND).join(" "));
  assert.deepEqual(await daemon.tool("t"), { content: [names(CONTEXT), "function", true] });
  await daemon.stop();
});
