/** Loads extensions in order: import, then the factory, one after the other. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { createApi } from "../extension/api.ts";
import { Extension, type ExtensionSource } from "../extension/extension.ts";
import type { Generation } from "../extension/generation.ts";
import { actorOf, type HostPort } from "../extension/port.ts";
import type { ProviderRegistrar } from "../extension/providers.ts";
import { loadFailed, noFactory, pathMissing } from "../extension/texts.ts";
import type { Scope } from "../host/scope.ts";
import { messageOf } from "../protocol/errors.ts";
import { importEntry, type ModuleTable } from "./jiti.ts";
import { type UnavailableNames, watchModules } from "./missing.ts";

export interface LoadReport {
  ext: string;
  ok: boolean;
  error?: string;
  /** Import and factory together. */
  ms: number;
  missing?: string[];
}

type Factory = (pi: unknown) => unknown;

/** Exports that are not available and that one extension used: reported with its load, or as a warning afterwards. */
class Missing {
  private readonly seen = new Set<string>();
  private reported = false;

  constructor(private readonly warn: (text: string) => void) {}

  add(text: string): void {
    if (this.seen.has(text)) return;
    this.seen.add(text);
    if (this.reported) this.warn(text);
  }

  report(): string[] {
    this.reported = true;
    return [...this.seen];
  }
}

export interface LoaderOptions {
  modules(): ModuleTable;
  unavailable(): UnavailableNames;
  cacheDir: string;
}

export class Loader {
  private factories = new Map<string, Factory>();
  private cwd: string | undefined;

  constructor(
    private readonly host: HostPort,
    private readonly registrar: ProviderRegistrar,
    private readonly options: LoaderOptions,
  ) {}

  /** The next load imports everything anew. */
  clear(): void {
    this.factories = new Map();
  }

  async load(generation: Generation, source: ExtensionSource, cwd: string, within: number | undefined): Promise<LoadReport> {
    if (this.cwd !== cwd) this.clear();
    this.cwd = cwd;
    const started = performance.now();
    const missing = new Missing((text) => this.host.note({ generation, ext: source.ext }, "log", { level: "warn", text }));
    const scope: Scope = { ext: source.ext };
    if (within !== undefined) scope.within = within;
    const error = await this.host.scopes.run(scope, () => this.run(generation, source, missing));
    const report: LoadReport = { ext: source.ext, ok: error === undefined, ms: Math.round((performance.now() - started) * 10) / 10 };
    if (error !== undefined) report.error = error;
    const names = missing.report();
    if (names.length > 0) report.missing = names;
    return report;
  }

  /** The same for a function that is there already. */
  async loadFactory(generation: Generation, source: ExtensionSource, factory: Factory): Promise<LoadReport> {
    const started = performance.now();
    const error = await this.host.scopes.run({ ext: source.ext }, () => this.make(generation, source, async () => factory));
    const report: LoadReport = { ext: source.ext, ok: error === undefined, ms: Math.round((performance.now() - started) * 10) / 10 };
    if (error !== undefined) report.error = error;
    return report;
  }

  /** Returns why the extension was not loaded. */
  private async run(generation: Generation, source: ExtensionSource, missing: Missing): Promise<string | undefined> {
    if (!existsSync(source.entry)) return pathMissing(source.path);
    return this.make(generation, source, () => this.factory(source, missing));
  }

  private async make(generation: Generation, source: ExtensionSource, find: () => Promise<Factory | undefined>): Promise<string | undefined> {
    let extension: Extension | undefined;
    try {
      const factory = await find();
      if (factory === undefined) return noFactory(source.path);
      extension = new Extension(source, generation);
      generation.extensions.set(source.ext, extension);
      await factory(createApi(this.host, this.registrar, extension));
      const loaded = extension;
      loaded.commit((error) => this.host.reportError(actorOf(loaded), "register", error));
      return undefined;
    } catch (error) {
      extension?.discard();
      generation.extensions.delete(source.ext);
      return loadFailed(messageOf(error));
    }
  }

  private async factory(source: ExtensionSource, missing: Missing): Promise<Factory | undefined> {
    const entry = resolve(source.entry);
    const known = this.factories.get(entry);
    if (known !== undefined) return known;
    const modules = watchModules(this.options.modules(), this.options.unavailable(), (text) => missing.add(text));
    const value = await importEntry(entry, modules, this.options.cacheDir);
    if (typeof value !== "function") return undefined;
    this.factories.set(entry, value as Factory);
    return value as Factory;
  }
}
