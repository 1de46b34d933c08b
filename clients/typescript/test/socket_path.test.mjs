// The socket's path; that agentctl says the same is tested with the real one.
import assert from "node:assert/strict";
import { userInfo } from "node:os";
import { test } from "node:test";

import { AgentdError, socketPath } from "agentd-client";

const { uid } = userInfo();

for (const [env, expected] of [
  [{ HOME: "/h" }, "/h/.agentd/run/agentd.sock"],
  [{ HOME: "/h", AGENTD_DIR: "~/a" }, "/h/a/run/agentd.sock"],
  [{ HOME: "/h", AGENTD_DIR: "", PI_CODING_AGENT_DIR: "b" }, "/cwd/b/run/agentd.sock"],
  [{ HOME: "/h", AGENTD_SOCKET: "~/s" }, "/h/s"],
  [{ HOME: "/h", AGENTD_SOCKET: "s" }, "/cwd/s"],
  [{ HOME: "/h", XDG_RUNTIME_DIR: "/run/user/7" }, "/run/user/7/agentd/agentd.sock"],
  [{ HOME: "/h", XDG_RUNTIME_DIR: "relative" }, "/h/.agentd/run/agentd.sock"],
]) {
  test(JSON.stringify(env), () => assert.equal(socketPath(env, "/cwd"), expected));
}

test("a path that is too long moves to the temporary directory", () => {
  const long = `/${"x".repeat(120)}`;
  assert.match(socketPath({ AGENTD_DIR: long, TMPDIR: "/t" }, "/cwd"), new RegExp(`^/t/agentd-${uid}/agentd-[0-9a-f]{8}\\.sock$`));
  assert.match(socketPath({ AGENTD_DIR: long, TMPDIR: long }, "/cwd"), new RegExp(`^/tmp/agentd-${uid}/agentd-[0-9a-f]{8}\\.sock$`));
});

test("without a home there is none", () => {
  assert.throws(() => socketPath({}, "/cwd"), (error) => error instanceof AgentdError && error.hint.includes("AGENTD_DIR"));
});
