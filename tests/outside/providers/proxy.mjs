// What stands between agentd and a mock server: keeps every request as it came, and sees who hangs up.

import { createServer, request as ask } from "node:http";

/// Starts it in front of `target`, and gives back its address. `rewrite` may change a path.
export async function record(target, rewrite = (path) => path) {
  const requests = [];
  const server = createServer((incoming, outgoing) => {
    const pieces = [];
    incoming.on("data", (piece) => pieces.push(piece));
    incoming.on("end", () => {
      const body = Buffer.concat(pieces);
      const record = { method: incoming.method, path: incoming.url, headers: incoming.headers, body: parsed(body), left: false };
      requests.push(record);
      const url = new URL(rewrite(incoming.url), target);
      const upstream = ask(url, { method: incoming.method, headers: { ...incoming.headers, host: url.host } }, (answer) => {
        record.status = answer.statusCode;
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      });
      upstream.on("error", () => outgoing.destroy());
      outgoing.on("close", () => {
        if (outgoing.writableFinished) return;
        record.left = true;
        upstream.destroy();
        server.emit("left");
      });
      upstream.end(body);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`, requests,
    /// Resolves once a client has hung up in the middle of an answer.
    left: () => (requests.some((request) => request.left) ? Promise.resolve() : new Promise((resolve) => server.once("left", resolve))),
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
