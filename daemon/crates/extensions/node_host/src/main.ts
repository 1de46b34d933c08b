/**
 * The first file of the host. It is small, so that the connection's thread starts while the main thread is still
 * reading the rest.
 */
import "./stdio.ts";
import * as nodeModule from "node:module";
import { fileURLToPath } from "node:url";
import { readDescriptors } from "./connection/descriptors.ts";
import { Link } from "./connection/link.ts";

const link = new Link(new URL("./connection_worker.mjs", import.meta.url), readDescriptors(process.env["AGENTD_HOST_FD"]));
// Node 22 keeps compiled code. The folder belongs to this version of the host alone.
const { enableCompileCache } = nodeModule as { enableCompileCache?: (folder: string) => unknown };
enableCompileCache?.(fileURLToPath(new URL("./compile-cache", import.meta.url)));
const runtimeFile = new URL("./runtime.mjs", import.meta.url).href;
const { runHost } = (await import(runtimeFile)) as typeof import("./runtime.ts");
runHost(link);
