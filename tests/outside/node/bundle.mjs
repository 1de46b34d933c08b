// Loaded with --import: pi's package by its name is its bundle. Its other entry point needs packages that are not
// in the registry.

import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const name = "@earendil-works/pi-coding-agent";
const bundle = join(process.env.AGENTD_OUTSIDE_PACKAGES, "pi-1.5/node_modules", name, "dist/bundle/index.js");

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === name ? { url: pathToFileURL(bundle).href, shortCircuit: true } : next(specifier, context),
});
