import "./stdio.ts";
import { createModules, createTheme, unavailable } from "./standin.ts";
import { runHost } from "./run.ts";

runHost(new URL("./connection_worker.mjs", import.meta.url), { createModules, createTheme, unavailable });
