// A home of its own with agentd, a registry that answers npm, and repositories that git finds under a host's name.

import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const bin = process.env.AGENTD_BIN_DIR;

/** The packages that a registry on a free port has: `publish` adds a version of one. */
class Registry {
  #versions = new Map();
  requests = [];

  async start() {
    this.server = createServer((request, response) => this.#answer(request, response));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/`;
    return this;
  }

  publish(manifest, tarball) {
    const versions = this.#versions.get(manifest.name) ?? new Map();
    versions.set(manifest.version, { manifest, tarball });
    this.#versions.set(manifest.name, versions);
  }

  #answer(request, response) {
    const path = decodeURIComponent(request.url.slice(1));
    this.requests.push(path);
    const tarball = path.match(/^(.+)\/-\/(.+)\.tgz$/);
    const found = this.#versions.get(tarball ? tarball[1] : path);
    if (!found || (tarball && !found.has(tarball[2]))) {
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":"not found"}');
    } else if (tarball) {
      response.writeHead(200).end(found.get(tarball[2]).tarball);
    } else {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(this.#about(path, found)));
    }
  }

  #about(name, found) {
    const versions = {};
    for (const [version, { manifest, tarball }] of found) {
      const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
      versions[version] = { ...manifest, dist: { tarball: `${this.url}${name}/-/${version}.tgz`, integrity } };
    }
    return { name, versions, "dist-tags": { latest: [...found.keys()].at(-1) } };
  }
}

export class World {
  static async start() {
    const world = new World();
    world.root = realpathSync(mkdtempSync(join(tmpdir(), "agentd-install-")));
    world.registry = await new Registry().start();
    for (const folder of ["home", "agent", "project", "repositories", "packages", "cache"]) {
      mkdirSync(world.path(folder));
    }
    world.write("gitconfig", `[url "${world.path("repositories")}/"]\n\tinsteadOf = https://git.example/\n[user]\n\tname = t\n\temail = t@example\n[init]\n\tdefaultBranch = main\n`);
    return world;
  }

  end() {
    this.registry.server.closeAllConnections();
    this.registry.server.close();
    rmSync(this.root, { recursive: true, force: true });
  }

  path(below) {
    return join(this.root, below);
  }

  write(below, text) {
    mkdirSync(dirname(this.path(below)), { recursive: true });
    writeFileSync(this.path(below), text);
  }

  read(below) {
    return readFileSync(this.path(below), "utf8");
  }

  exists(below) {
    return existsSync(this.path(below));
  }

  environment(more = {}) {
    return {
      PATH: process.env.PATH,
      HOME: this.path("home"),
      AGENTD_DIR: this.path("agent"),
      TMPDIR: tmpdir(),
      GIT_CONFIG_GLOBAL: this.path("gitconfig"),
      GIT_CONFIG_NOSYSTEM: "1",
      npm_config_registry: this.registry.url,
      npm_config_cache: this.path("cache"),
      npm_config_fetch_retries: "0",
      npm_config_update_notifier: "false",
      ...more,
    };
  }

  run(program, args, { cwd = this.path("project"), env = {} } = {}) {
    return new Promise((resolve) => {
      execFile(program, args, { cwd, env: this.environment(env), timeout: 120_000 }, (error, stdout, stderr) => {
        resolve({ code: error ? (error.code ?? -1) : 0, stdout, stderr });
      });
    });
  }

  agentctl(args, options) {
    return this.run(join(bin, "agentctl"), args, options);
  }

  /** Packs a package of these files and puts it into the registry. */
  async publish(name, version, files, more = {}) {
    const folder = this.path(`packages/${name}-${version}`);
    const manifest = { name, version, ...more };
    for (const [path, text] of Object.entries({ ...files, "package.json": JSON.stringify(manifest) })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    const packed = await this.run("npm", ["pack", "--json", "--ignore-scripts"], { cwd: folder });
    const [{ filename }] = JSON.parse(packed.stdout);
    this.registry.publish(manifest, readFileSync(join(folder, filename)));
  }

  git(cwd, ...args) {
    return this.run("git", args, { cwd });
  }

  /** Commits these files to a repository, which is made where it is not there. */
  async commit(name, files, tag) {
    const folder = this.path(`repositories/${name}`);
    if (!existsSync(folder)) {
      mkdirSync(folder, { recursive: true });
      await this.git(folder, "init", "--quiet");
    }
    for (const [path, text] of Object.entries(files)) {
      this.write(`repositories/${name}/${path}`, text);
    }
    await this.git(folder, "add", "-A");
    await this.git(folder, "commit", "--quiet", "-m", "x");
    if (tag) await this.git(folder, "tag", tag);
  }

  /** What a new session answers to these commands, the end of its input after them. */
  async session(commands, args = [], env = {}) {
    const child = spawn(join(bin, "agentd"), ["--stdio", "--no-session", ...args], {
      cwd: this.path("project"),
      env: this.environment(env),
      stdio: ["pipe", "pipe", "ignore"],
    });
    const answers = [];
    const lines = createInterface({ input: child.stdout });
    const done = new Promise((resolve) => lines.on("close", resolve));
    lines.on("line", (line) => {
      const record = JSON.parse(line);
      if (record.type === "response") answers.push(record);
      if (answers.length === commands.length) child.stdin.end();
    });
    for (const command of commands) child.stdin.write(`${JSON.stringify(command)}\n`);
    await done;
    return answers.map((answer) => answer.data);
  }
}
