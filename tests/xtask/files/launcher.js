'use strict';
// Starts a program of agentd that npm installed for this platform, in the place of this process where Node can do that.

const { spawn } = require('node:child_process');
const path = require('node:path');
const manifest = require('../package.json');

/** The path of a program in the first platform package that is installed and fits this machine. */
function find(program) {
  const begin = `${manifest.name}-${process.platform}-${process.arch}`;
  for (const name of Object.keys(manifest.optionalDependencies)) {
    if (name !== begin && !name.startsWith(`${begin}-`)) continue;
    try {
      return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin', program);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return undefined;
}

function fail(text) {
  process.stderr.write(`${manifest.name}: ${text}\n`);
  process.exit(1);
}

exports.start = (program) => {
  const file = find(program);
  const args = process.argv.slice(2);
  if (file === undefined) {
    const packages = Object.keys(manifest.optionalDependencies).join(', ');
    fail(`no programs for ${process.platform}-${process.arch}: none of ${packages} is installed. ` +
      'They are optional dependencies: install without --omit=optional.');
  }
  if (typeof process.execve === 'function') {
    // It is marked as experimental: the warning would go to the user's stderr.
    process.removeAllListeners('warning');
    process.execve(file, [file, ...args], process.env);
  }
  const child = spawn(file, args, { stdio: 'inherit' });
  child.on('error', (error) => fail(`${file} cannot be started: ${error.message}`));
  // Keys such as Ctrl-C reach the program by itself; this process only has to outlive it.
  const passed = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
  for (const signal of passed) process.on(signal, () => child.kill(signal));
  for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, () => {});
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    for (const each of [...passed, 'SIGINT', 'SIGQUIT']) process.removeAllListeners(each);
    process.kill(process.pid, signal);
  });
};
