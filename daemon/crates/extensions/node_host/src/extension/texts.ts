/** Texts of pi's extension system that extensions and their users may know. */

export const STALE =
  "This extension ctx is stale after session replacement or reload. Do not use a captured pi or command ctx after ctx.newSession(), ctx.fork(), ctx.switchSession(), or ctx.reload(). For newSession, fork, and switchSession, move post-replacement work into withSession and use the ctx passed to withSession. For reload, do not use the old ctx after await ctx.reload().";

export const NOT_INITIALIZED = "Extension runtime not initialized. Action methods cannot be called during extension loading.";

/** Of `setModel`, which rejects. */
export const NOT_INITIALIZED_MODEL = "Extension runtime not initialized";

export const failedToLoad = (path: string) => `Extension "${path}" failed to load and its API is no longer active.`;

export const pathMissing = (path: string) => `Extension path does not exist: ${path}`;

export const noFactory = (path: string) => `Extension does not export a valid factory function: ${path}`;

export const loadFailed = (message: string) => `Failed to load extension: ${message}`;

export const INVALID_USER_BASH =
  "Invalid user_bash handler result: return undefined for local execution or exactly one valid { operations } or { result } object";
