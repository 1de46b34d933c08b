// Stands in for a package that is not in the registry: its machine is a folder of this one.

import { spawn } from "node:child_process";
import { promises as fs } from "node:fs";

export class RealFSProvider {
  constructor(root) {
    this.root = root;
  }
}

export class VM {
  static async create({ vfs }) {
    return new VM(vfs.mounts["/workspace"].root);
  }

  constructor(root) {
    this.id = "stand-in-machine";
    const here = (path) => (path.startsWith("/workspace") ? root + path.slice("/workspace".length) : path);
    this.here = here;
    this.fs = {
      readFile: (path, options) => fs.readFile(here(path), options?.encoding),
      writeFile: (path, content) => fs.writeFile(here(path), content),
      access: (path) => fs.access(here(path)),
      mkdir: (path, options) => fs.mkdir(here(path), options),
      stat: (path) => fs.stat(here(path)),
      listDir: async (path) => (await fs.readdir(here(path))).sort(),
    };
  }

  exec([program, ...args], { cwd = "/workspace", env, signal } = {}) {
    const child = spawn(program, args, { cwd: this.here(cwd), env: env ?? process.env, signal, stdio: ["ignore", "pipe", "pipe"] });
    const chunks = [];
    child.stdout.on("data", (data) => chunks.push(data));
    const ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (exitCode) => resolve({ exitCode, stdout: Buffer.concat(chunks).toString() }));
    });
    return {
      then: (...handlers) => ended.then(...handlers),
      async *output() {
        await ended;
        for (const data of chunks) yield { data };
      },
    };
  }

  async close() {}
}
