/** YAML at the beginning of Markdown files. Pure. */
import { parse } from "yaml";

const FENCED = /^---[ \t]*\n(?:([\s\S]*?)\n)?---[ \t]*(?:\n|$)([\s\S]*)$/;

function split(content: string): { yaml: string | undefined; body: string } {
  const text = content.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const match = FENCED.exec(text);
  if (!match) return { yaml: undefined, body: text };
  return { yaml: match[1] ?? "", body: (match[2] ?? "").trim() };
}

/** The frontmatter and what follows it. Throws when the frontmatter is no YAML. */
export function parseFrontmatter<T extends Record<string, unknown> = Record<string, unknown>>(
  content: string,
): { frontmatter: T; body: string } {
  const { yaml, body } = split(content);
  const frontmatter = yaml === undefined ? {} : ((parse(yaml) as T | null) ?? {});
  return { frontmatter: frontmatter as T, body };
}

/** What follows the frontmatter. */
export function stripFrontmatter(content: string): string {
  return parseFrontmatter(content).body;
}
