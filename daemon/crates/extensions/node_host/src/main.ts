import "./stdio.ts";
import { createModules, createTheme, unavailable } from "./modules/index.ts";
import { runHost } from "./run.ts";

runHost(new URL("./connection_worker.mjs", import.meta.url), { createModules, createTheme, unavailable });
