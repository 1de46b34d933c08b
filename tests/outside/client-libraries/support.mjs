// A home of its own for each test, with the scripted model in it, and a way to cut connections.
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: start this with tests/outside/run client-libraries`);
  return value;
}

export const binaries = required("AGENTD_BIN_DIR");
const script = required("AGENTD_CLIENT_SCRIPT");

/** A temporary home whose models are `script/one` and `script/never`. `t` is the test that it belongs to. */
export function home(t) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "agentd-client-")));
  const at = (...names) => join(root, ...names);
  const env = {
    HOME: root, AGENTD_DIR: at("agent"), TMPDIR: at("tmp"), PATH: `${binaries}:${process.env.PATH}`, LANG: "C.UTF-8",
  };
  for (const name of ["agent", "project", "tmp"]) mkdirSync(at(name), { mode: 0o700 });
  t.after(() => {
    spawnSync(join(binaries, "agentctl"), ["down", "--abort"], { env });
    rmSync(root, { recursive: true, force: true });
  });
  copyFileSync(script, at("script.json"));
  const models = [{ id: "one" }, { id: "never" }];
  writeFileSync(at("agent/models.json"), JSON.stringify({
    providers: { script: { api: "scripted", baseUrl: at("script.json"), apiKey: "none", models } },
  }));
  writeFileSync(at("agent/settings.json"), JSON.stringify({ defaultProvider: "script", defaultModel: "one" }));
  execFileSync("mkfifo", [at("gate")]);
  return {
    env, at, project: at("project"),
    /** Lets the answer to "Wait." go on. Fails where no answer waits any more. */
    openGate: () => execFileSync("timeout", ["60", "/bin/sh", "-c", `echo > '${at("gate")}'`]),
    agentctl: (...args) => execFileSync(join(binaries, "agentctl"), args, { env, encoding: "utf8", cwd: at("project") }),
  };
}

/** A socket between client and daemon. `cut` breaks all connections; until `mend` new ones are refused. */
export async function proxy(t, path, target) {
  const pairs = new Set();
  let isCut = false;
  let isDeaf = false;
  const server = createServer((client) => {
    if (isCut) return client.destroy();
    const daemon = connectSocket(target);
    const pair = [client, daemon];
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on("error", end).on("close", end);
    client.on("data", (bytes) => daemon.write(bytes));
    daemon.on("data", (bytes) => { if (!isDeaf) client.write(bytes); });
  });
  await new Promise((resolve) => server.listen(path, resolve));
  const close = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  t.after(() => {
    close();
    server.close();
  });
  return {
    /** What the daemon says is lost from now on. */
    deafen: () => { isDeaf = true; },
    cut: () => {
      isCut = true;
      close();
    },
    mend: () => { isCut = isDeaf = false; },
  };
}

/** The first event that fits. */
export async function first(events, fits) {
  for await (const event of events) if (fits(event)) return event;
  throw new Error("the events have ended before it came");
}

/** A promise and how to settle it. */
export function promised() {
  let resolve;
  const promise = new Promise((settle) => { resolve = settle; });
  return { promise, resolve };
}
