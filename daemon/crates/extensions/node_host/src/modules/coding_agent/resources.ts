/** Skills and context files, as pi finds them. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { parseFrontmatter } from "./frontmatter.ts";
import { createSyntheticSourceInfo, type SourceInfo } from "./guards.ts";

export interface Skill {
  name: string;
  description: string;
  filePath: string;
  baseDir: string;
  sourceInfo: SourceInfo;
  disableModelInvocation: boolean;
}

interface Diagnostic {
  type: "warning" | "collision";
  message: string;
  path: string;
}

export interface LoadSkillsResult {
  skills: Skill[];
  diagnostics: Diagnostic[];
}

const CONTEXT_FILES = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
const SKILL_FILE = "SKILL.md";
const SKILL_NAME = /^[a-z0-9-]{1,64}$/;
const DESCRIPTION_CHARACTERS = 1024;

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Folders from the root to `cwd`. */
function ancestors(cwd: string): string[] {
  const folders = [resolve(cwd)];
  for (;;) {
    const parent = dirname(folders[0] as string);
    if (parent === folders[0]) return folders;
    folders.unshift(parent);
  }
}

/** The context files of the agent's folder and of the working directory with its parents. */
export function loadProjectContextFiles(options: { cwd: string; agentDir: string }): { path: string; content: string }[] {
  const folders = new Set([resolve(options.agentDir), ...ancestors(options.cwd)]);
  return [...folders].flatMap((folder) => {
    const path = CONTEXT_FILES.map((name) => join(folder, name)).find(isFile);
    return path === undefined ? [] : [{ path, content: readFileSync(path, "utf8").replace(/^\ufeff/, "") }];
  });
}

function readSkill(filePath: string, source: string, result: LoadSkillsResult): void {
  const warn = (message: string): void => void result.diagnostics.push({ type: "warning", message, path: filePath });
  let frontmatter: Record<string, unknown>;
  try {
    ({ frontmatter } = parseFrontmatter(readFileSync(filePath, "utf8")));
  } catch (error) {
    return warn(error instanceof Error ? error.message : String(error));
  }
  const baseDir = dirname(filePath);
  const { name: given, description } = frontmatter;
  const name = typeof given === "string" && given ? given : basename(baseDir);
  if (typeof description !== "string" || description.trim() === "") return warn("description is required");
  if (!SKILL_NAME.test(name)) warn(`name "${name}" should have 1 to 64 of the characters a-z, 0-9 and -`);
  if (description.length > DESCRIPTION_CHARACTERS) warn(`description is longer than ${DESCRIPTION_CHARACTERS} characters`);
  result.skills.push({
    name,
    description,
    filePath,
    baseDir,
    sourceInfo: createSyntheticSourceInfo(filePath, { source, baseDir }),
    disableModelInvocation: frontmatter["disable-model-invocation"] === true,
  });
}

function scan(folder: string, source: string, isRoot: boolean, result: LoadSkillsResult): void {
  const own = join(folder, SKILL_FILE);
  if (isFile(own)) return readSkill(own, source, result);
  for (const name of readdirSync(folder).sort()) {
    if (name.startsWith(".") || name === "node_modules") continue;
    const path = join(folder, name);
    if (isFolder(path)) scan(path, source, false, result);
    else if (isRoot && name.endsWith(".md") && isFile(path)) readSkill(path, source, result);
  }
}

/** The skills of a folder. A folder with `SKILL.md` is one skill and is not searched further. */
export function loadSkillsFromDir(options: { dir: string; source: string }): LoadSkillsResult {
  const result: LoadSkillsResult = { skills: [], diagnostics: [] };
  if (isFolder(options.dir)) scan(options.dir, options.source, true, result);
  return result;
}

/** The skills of several places; of two with the same name, the first. */
export function loadSkills(options: {
  cwd: string;
  agentDir: string;
  skillPaths: string[];
  includeDefaults: boolean;
}): LoadSkillsResult {
  const found: LoadSkillsResult = { skills: [], diagnostics: [] };
  const places = options.includeDefaults
    ? [
        { path: join(options.agentDir, "skills"), source: "user" },
        { path: join(options.cwd, ".pi", "skills"), source: "project" },
      ]
    : [];
  places.push(...options.skillPaths.map((path) => ({ path: resolve(options.cwd, path), source: "path" })));
  for (const { path, source } of places) {
    if (isFile(path)) {
      readSkill(path, source, found);
      continue;
    }
    const { skills, diagnostics } = loadSkillsFromDir({ dir: path, source });
    found.skills.push(...skills);
    found.diagnostics.push(...diagnostics);
  }
  const byName = new Map<string, Skill>();
  for (const skill of found.skills) {
    const first = byName.get(skill.name);
    if (!first) byName.set(skill.name, skill);
    else if (first.filePath !== skill.filePath) {
      const message = `name "${skill.name}" is taken by ${first.filePath}`;
      found.diagnostics.push({ type: "collision", message, path: skill.filePath });
    }
  }
  return { skills: [...byName.values()], diagnostics: found.diagnostics };
}

function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&apos;");
}

const READERS = {
  read: "Read a skill's file with the read tool when a task fits its description.",
  bash: "Read a skill's file with the bash tool when a task fits its description.",
  indirect: "Read a skill's file when a task fits its description.",
};

/** The list of skills for a system prompt; empty when no skill may be used by models. */
export function formatSkillsForPrompt(skills: Skill[], fileReadTool: keyof typeof READERS = "read"): string {
  const usable = skills.filter((skill) => !skill.disableModelInvocation);
  if (usable.length === 0) return "";
  const entries = usable.map(
    ({ name, description, filePath }) =>
      `  <skill>\n    <name>${escapeXml(name)}</name>\n    <description>${escapeXml(description)}</description>\n    <location>${escapeXml(filePath)}</location>\n  </skill>`,
  );
  return [
    "\n\nSkills hold instructions for certain tasks.",
    READERS[fileReadTool],
    "Paths in a skill are relative to the folder of its file; give tools absolute ones.",
    "",
    "<available_skills>",
    ...entries,
    "</available_skills>",
  ].join("\n");
}

/** What of a project's folder needs the user's trust. */
const TRUST_REQUIRING = [
  "settings.json", "mcp.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md",
];

/** Whether a project has something that is used only with the user's trust. */
export function hasTrustRequiringProjectResources(cwd: string): boolean {
  if (TRUST_REQUIRING.some((name) => existsSync(join(cwd, ".pi", name)))) return true;
  const own = join(homedir(), ".agents", "skills");
  return ancestors(cwd).some((folder) => {
    const skills = join(folder, ".agents", "skills");
    return skills !== own && existsSync(skills);
  });
}
