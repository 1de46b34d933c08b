/** What models are told of the built-in tools: the same as the daemon's own tools tell. */
import { DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, formatSize } from "../truncate.ts";

export type ToolName = "read" | "bash" | "edit" | "write" | "grep" | "find" | "ls";

export interface ToolSpec {
  name: ToolName;
  label: string;
  description: string;
  promptSnippet: string;
  promptGuidelines?: string[];
  parameters: object;
  outputSchema?: object;
  constrainedSampling?: { type: "json_schema"; strict: "prefer" };
}

const SIZE = formatSize(DEFAULT_MAX_BYTES);
const PREFER_STRICT = { type: "json_schema", strict: "prefer" } as const;

export const GREP_MATCHES = 100;
export const FIND_RESULTS = 1000;
export const LS_ENTRIES = 500;

function text(description: string): object {
  return { type: "string", description };
}

function number(description: string): object {
  return { type: "number", description };
}

function flag(description: string): object {
  return { type: "boolean", description };
}

function object(properties: Record<string, object>, required: string[] = []): object {
  return { type: "object", ...(required.length > 0 ? { required } : {}), properties };
}

const FILE = text("The file, relative to the working directory or absolute");

export const TOOL_SPECS: Record<ToolName, ToolSpec> = {
  read: {
    name: "read",
    label: "read",
    description:
      "Read a text file or an image (jpg, png, gif, webp, bmp). Images come back as images. Of text, at most " +
      `${DEFAULT_MAX_LINES} lines or ${SIZE} come back at once, whichever is less; for the rest of a longer file, ` +
      "call again with the offset that the result names.",
    promptSnippet: "Read the content of a file",
    promptGuidelines: ["Look at files with read, not with cat or sed."],
    parameters: object(
      {
        path: FILE,
        offset: number("The line to start at; the first line is 1"),
        limit: number("How many lines to read at most"),
      },
      ["path"],
    ),
    constrainedSampling: PREFER_STRICT,
  },
  bash: {
    name: "bash",
    label: "bash",
    description:
      "Runs a bash command in the current working directory and returns what it writes to stdout and stderr. Long " +
      `output is cut to its last ${DEFAULT_MAX_LINES} lines or ${SIZE}, whichever is less; all of it is then kept in a ` +
      "temporary file that the result names. A timeout in seconds can be given; there is none by default.",
    promptSnippet: "Run bash commands: list files, search, build, test, use git",
    promptGuidelines: [
      "The PI_* environment variables of a bash command tell about this session (its id, file, provider and model); inspect them when that helps.",
    ],
    parameters: object(
      {
        command: text("The bash command to run"),
        timeout: number("Seconds after which the command is killed (optional; no limit by default)"),
      },
      ["command"],
    ),
    constrainedSampling: PREFER_STRICT,
  },
  edit: {
    name: "edit",
    label: "edit",
    description:
      "Change one file by replacing exact pieces of its text. Each oldText must occur once in the file as it is now, " +
      "and no two may overlap. All edits of a call see the original file, never the result of each other.",
    promptSnippet: "Replace exact pieces of text in a file, several separate ones in one call",
    promptGuidelines: [
      "Make all changes to one file in one edit call with several entries in edits.",
      "Keep each oldText of edit as short as it can be while it is exact and unique in the file, and let no two overlap.",
    ],
    parameters: object(
      {
        path: FILE,
        edits: {
          type: "array",
          description: "The replacements; put changes close to each other into one",
          items: object(
            {
              oldText: text("The text to replace, exactly as in the file and unique there"),
              newText: text("The text to put there instead"),
            },
            ["oldText", "newText"],
          ),
        },
      },
      ["path", "edits"],
    ),
    constrainedSampling: PREFER_STRICT,
  },
  write: {
    name: "write",
    label: "write",
    description: "Write a file: creates it, with the folders it needs, or replaces all of its content.",
    promptSnippet: "Create a file, or replace a whole one",
    promptGuidelines: ["Use write only for new files and complete rewrites; change parts of a file with edit."],
    parameters: object({ path: FILE, content: text("The whole new content of the file") }, ["path", "content"]),
    constrainedSampling: PREFER_STRICT,
  },
  grep: {
    name: "grep",
    label: "grep",
    description:
      "Search file contents for a pattern. Gives matching lines with file and line number. Files that .gitignore names " +
      `are left out, hidden files are searched. At most ${GREP_MATCHES} matches (limit) or ${SIZE} come back, whichever ` +
      "is less; long lines are cut to 500 characters.",
    promptSnippet: "Search file contents; respects .gitignore",
    parameters: object(
      {
        pattern: text("The regular expression (Rust syntax), or the text with literal"),
        path: text("The folder or file to search; by default the working directory"),
        glob: text("Only files that fit this glob, such as '*.ts' or 'src/**/*.rs'; with a leading ! all others"),
        ignoreCase: flag("Whether upper and lower case are the same; default false"),
        literal: flag("Whether the pattern is plain text; default false"),
        context: number("Lines to show before and after each match; default 0"),
        limit: number(`How many matches to give at most; default ${GREP_MATCHES}`),
      },
      ["pattern"],
    ),
  },
  find: {
    name: "find",
    label: "find",
    description:
      "Find files and folders by a glob. Gives paths relative to the folder that is searched. What .gitignore names is " +
      `left out, hidden files are not. At most ${FIND_RESULTS} results (limit) or ${SIZE} come back, whichever is less.`,
    promptSnippet: "Find files by a glob; respects .gitignore",
    parameters: object(
      {
        pattern: text("The glob, such as '*.ts', '**/*.json' or 'src/**/*.spec.ts'"),
        path: text("The folder to search; by default the working directory"),
        limit: number(`How many results to give at most; default ${FIND_RESULTS}`),
      },
      ["pattern"],
    ),
  },
  ls: {
    name: "ls",
    label: "ls",
    description:
      "List what is in a folder, sorted by name, hidden files included; folders end with a slash. At most " +
      `${LS_ENTRIES} entries (limit) or ${SIZE} come back, whichever is less.`,
    promptSnippet: "List a folder",
    parameters: object({
      path: text("The folder; by default the working directory"),
      limit: number(`How many entries to give at most; default ${LS_ENTRIES}`),
    }),
  },
};
