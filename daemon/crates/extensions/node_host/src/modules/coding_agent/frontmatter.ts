/** YAML at the beginning of Markdown files. Pure. */
import { loadYaml } from "../lazy.ts";

const FENCE = "---";

function split(content: string): { yaml: string | undefined; body: string } {
  const text = content.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const end = text.startsWith(FENCE) ? text.indexOf(`\n${FENCE}`, FENCE.length) : -1;
  if (end < 0) return { yaml: undefined, body: text };
  const close = end + 1 + FENCE.length;
  return { yaml: text.slice(FENCE.length + 1, end), body: text.slice(close).trim() };
}

/** The frontmatter and what follows it. Throws when the frontmatter is no YAML. */
export function parseFrontmatter<T extends Record<string, unknown> = Record<string, unknown>>(
  content: string,
): { frontmatter: T; body: string } {
  const { yaml, body } = split(content);
  const frontmatter = yaml === undefined ? {} : ((loadYaml().parse(yaml) as T | null) ?? {});
  return { frontmatter: frontmatter as T, body };
}

/** What follows the frontmatter. */
export function stripFrontmatter(content: string): string {
  return parseFrontmatter(content).body;
}
