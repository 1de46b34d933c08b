/** The life of a host: greeting, loading, binding, unloading, end. */
import type { ExtensionSource } from "../extension/extension.ts";
import type { LoadReport } from "../loader/loader.ts";
import { type DaemonRecord, HOST_FEATURES, isObject, type JsonObject, listField, numberField, objectField, PROTOCOL_VERSION, ProtocolError, stringField } from "../protocol/records.ts";
import type { Hello } from "../services.ts";
import type { Host } from "./host.ts";

const HOST_NAME = "agentd-node-host";
const HOST_VERSION = "1";

/** Variable of the greeting with the script that starts the daemon in pi's form. Becomes `process.argv[1]`. */
const SHIM_VARIABLE = "AGENTD_PI_SHIM";

export function serveHello(host: Host, request: DaemonRecord): JsonObject {
  if (request["protocol"] !== PROTOCOL_VERSION) {
    throw new ProtocolError(`This host speaks protocol ${PROTOCOL_VERSION}, not ${String(request["protocol"])}`);
  }
  const hello = readHello(request);
  if (!host.isNested) setEnvironment(hello);
  host.greet(hello);
  return {
    protocol: PROTOCOL_VERSION,
    host: { name: HOST_NAME, version: HOST_VERSION, runtime: `node ${process.version}`, pid: process.pid },
    features: [...HOST_FEATURES],
  };
}

function readHello(request: DaemonRecord): Hello {
  const limits = objectField(request, "limits");
  return {
    protocol: PROTOCOL_VERSION,
    daemon: (isObject(request["daemon"]) ? request["daemon"] : { name: "agentd", version: "" }) as Hello["daemon"],
    epoch: numberField(request, "epoch"),
    sessionId: stringField(request, "sessionId"),
    cwd: stringField(request, "cwd"),
    agentDir: stringField(request, "agentDir"),
    configDirName: typeof request["configDirName"] === "string" ? request["configDirName"] : ".pi",
    mode: request["mode"] as Hello["mode"],
    hasUI: request["hasUI"] === true,
    trusted: request["trusted"] === true,
    env: (isObject(request["env"]) ? request["env"] : {}) as Record<string, string>,
    limits: {
      maxLineBytes: numberField(limits, "maxLineBytes"),
      syncCallMs: typeof limits["syncCallMs"] === "number" ? limits["syncCallMs"] : 5000,
    },
    cacheDir: stringField(request, "cacheDir"),
    ansi: request["ansi"] !== false,
    features: Array.isArray(request["features"]) ? request["features"].map(String) : [],
  };
}

/** Published extensions read these variables, and start `process.argv[1]` as a child agent. */
function setEnvironment(hello: Hello): void {
  Object.assign(process.env, { PI_CODING_AGENT: "true", AI_AGENT: "pi", PI_CODING_AGENT_DIR: hello.agentDir });
  for (const [name, value] of Object.entries(hello.env)) process.env[name] = String(value);
  const shim = process.env[SHIM_VARIABLE];
  if (shim !== undefined) process.argv[1] = shim;
  // Children of extensions are no hosts.
  delete process.env[SHIM_VARIABLE];
  delete process.env["AGENTD_HOST_FD"];
}

export async function serveLoad(host: Host, request: DaemonRecord): Promise<{ extensions: LoadReport[] }> {
  const epoch = numberField(request, "epoch");
  const generation = host.generationFor(epoch);
  followSession(host.hello, request["session"]);
  if (request["clearCache"] === true) host.loader.clear();
  if (isObject(request["flags"])) generation.setFlags(request["flags"]);
  const extensions: LoadReport[] = [];
  for (const item of listField(request, "extensions")) extensions.push(await host.load(generation, readSource(item), request.id));
  host.loaded();
  return { extensions };
}

/** A replaced session has another id, and possibly another folder and trust. */
function followSession(hello: Hello, session: unknown): void {
  if (!isObject(session)) return;
  if (typeof session["sessionId"] === "string") hello.sessionId = session["sessionId"];
  if (typeof session["cwd"] === "string") hello.cwd = session["cwd"];
  if (typeof session["trusted"] === "boolean") hello.trusted = session["trusted"];
}

function readSource(item: unknown): ExtensionSource {
  if (!isObject(item)) throw new ProtocolError("load: an extension must be an object");
  const record = { type: "load", ...item };
  const source: ExtensionSource = { ext: stringField(record, "ext"), path: stringField(record, "path"), entry: stringField(record, "entry") };
  if (typeof item["baseDir"] === "string") source.baseDir = item["baseDir"];
  if (isObject(item["sourceInfo"])) source.sourceInfo = item["sourceInfo"];
  return source;
}

export function serveBind(host: Host, request: DaemonRecord): null {
  const generation = host.living(request);
  if (isObject(request["flags"])) generation.setFlags(request["flags"]);
  host.mirror.bind(objectField(request, "core"));
  generation.bound = true;
  host.hasBound();
  return null;
}

export function serveUnload(host: Host, request: DaemonRecord): null {
  host.unload(numberField(request, "epoch"));
  return null;
}

export function serveShutdown(host: Host): null {
  host.shutDown();
  return null;
}
