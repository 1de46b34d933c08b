/** Images and links in terminals. The host has no terminal, so that it draws neither unless it is told to. */
import { randomInt } from "node:crypto";
import { homedir } from "node:os";
import { isAbsolute, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { TerminalColorMode } from "./colors.ts";
import type { ImageDimensions } from "./image_size.ts";

export interface TerminalCapabilities {
  images: "kitty" | "iterm2" | null;
  trueColor: boolean;
  hyperlinks: boolean;
}

export interface CellDimensions {
  widthPx: number;
  heightPx: number;
}

export interface ImageRenderOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  preserveAspectRatio?: boolean;
  imageId?: number;
  moveCursor?: boolean;
}

const NONE: TerminalCapabilities = { images: null, trueColor: false, hyperlinks: false };

let capabilities: TerminalCapabilities = NONE;
let overrides: Partial<TerminalCapabilities> = {};
let cell: CellDimensions = { widthPx: 9, heightPx: 18 };

export function getCellDimensions(): CellDimensions {
  return cell;
}

export function setCellDimensions(dimensions: CellDimensions): void {
  cell = dimensions;
}

/** What a terminal could draw; without one, nothing. */
export function detectCapabilities(): TerminalCapabilities {
  return { ...NONE };
}

export function getCapabilities(): TerminalCapabilities {
  return { ...capabilities, ...overrides };
}

export function getTerminalColorMode(of: TerminalCapabilities = getCapabilities()): TerminalColorMode {
  return of.trueColor ? "truecolor" : "256color";
}

export function resetCapabilitiesCache(): void {
  capabilities = NONE;
}

export function setCapabilityOverrides(selected: Partial<TerminalCapabilities>): void {
  overrides = { ...selected };
}

export function setCapabilities(caps: TerminalCapabilities): void {
  capabilities = caps;
}

/** A random id for an image of the kitty protocol. */
export function allocateImageId(): number {
  return randomInt(1, 0xffffffff);
}

/** Longest payload of one kitty sequence. */
const KITTY_CHUNK = 4096;

export function encodeKitty(
  base64Data: string,
  options: { columns?: number; rows?: number; imageId?: number; moveCursor?: boolean } = {},
): string {
  const control = ["a=T", "f=100", "q=2"];
  if (options.moveCursor === false) control.push("C=1");
  if (options.columns) control.push(`c=${options.columns}`);
  if (options.rows) control.push(`r=${options.rows}`);
  if (options.imageId) control.push(`i=${options.imageId}`);
  const sequence = (keys: string, payload: string): string => `\x1b_G${keys};${payload}\x1b\\`;
  if (base64Data.length <= KITTY_CHUNK) return sequence(control.join(","), base64Data);
  let encoded = "";
  for (let at = 0; at < base64Data.length; at += KITTY_CHUNK) {
    const more = at + KITTY_CHUNK < base64Data.length ? "m=1" : "m=0";
    encoded += sequence(at === 0 ? [...control, more].join(",") : more, base64Data.slice(at, at + KITTY_CHUNK));
  }
  return encoded;
}

export function deleteKittyImage(imageId: number): string {
  return `\x1b_Ga=d,d=I,i=${imageId},q=2\x1b\\`;
}

export function deleteAllKittyImages(): string {
  return "\x1b_Ga=d,d=A,q=2\x1b\\";
}

export function encodeITerm2(
  base64Data: string,
  options: {
    width?: number | string;
    height?: number | string;
    name?: string;
    preserveAspectRatio?: boolean;
    inline?: boolean;
  } = {},
): string {
  const fields = [`inline=${options.inline === false ? 0 : 1}`, `size=${Buffer.byteLength(base64Data, "base64")}`];
  if (options.width !== undefined) fields.push(`width=${options.width}`);
  if (options.height !== undefined) fields.push(`height=${options.height}`);
  if (options.name) fields.push(`name=${Buffer.from(options.name).toString("base64")}`);
  if (options.preserveAspectRatio === false) fields.push("preserveAspectRatio=0");
  return `\x1b]1337;File=${fields.join(";")}:${base64Data}\x07`;
}

/** Rows that an image needs when it is `targetWidthCells` columns wide. */
export function calculateImageRows(
  image: ImageDimensions,
  targetWidthCells: number,
  cells: CellDimensions = cell,
): number {
  const scale = (targetWidthCells * cells.widthPx) / image.widthPx;
  return Math.max(1, Math.ceil((image.heightPx * scale) / cells.heightPx));
}

/** Columns and rows of an image that must fit into both limits. */
function fitCells(image: ImageDimensions, maxWidth: number, maxHeight: number | undefined): { columns: number; rows: number } {
  const rows = calculateImageRows(image, maxWidth);
  if (maxHeight === undefined || rows <= maxHeight) return { columns: maxWidth, rows };
  const scale = (maxHeight * cell.heightPx) / image.heightPx;
  return { columns: Math.max(1, Math.min(maxWidth, Math.ceil((image.widthPx * scale) / cell.widthPx))), rows: maxHeight };
}

const DEFAULT_WIDTH_CELLS = 80;

/** The sequence that draws an image, or null when the terminal draws none. */
export function renderImage(
  base64Data: string,
  image: ImageDimensions,
  options: ImageRenderOptions = {},
): { sequence: string; columns: number; rows: number; imageId?: number } | null {
  const protocol = getCapabilities().images;
  if (protocol === null) return null;
  const size = fitCells(image, options.maxWidthCells ?? DEFAULT_WIDTH_CELLS, options.maxHeightCells);
  if (protocol === "iterm2") {
    const sequence = encodeITerm2(base64Data, {
      width: size.columns,
      height: "auto",
      ...(options.preserveAspectRatio === undefined ? {} : { preserveAspectRatio: options.preserveAspectRatio }),
    });
    return { sequence, ...size };
  }
  const id = options.imageId === undefined ? {} : { imageId: options.imageId };
  const cursor = options.moveCursor === undefined ? {} : { moveCursor: options.moveCursor };
  return { sequence: encodeKitty(base64Data, { ...size, ...id, ...cursor }), ...size, ...id };
}

export function hyperlink(text: string, url: string): string {
  return `\x1b]8;;${url}\x1b\\${text}\x1b]8;;\x1b\\`;
}

function shownPath(path: string): string {
  const home = homedir();
  if (path === home) return "~";
  return path.startsWith(home + sep) ? `~${path.slice(home.length)}` : path;
}

/** Text that stands for an image that cannot be drawn. */
export function imageFallback(mimeType: string, dimensions?: ImageDimensions, filename?: string): string {
  const parts: string[] = [];
  if (filename) {
    const absolute = isAbsolute(filename);
    const name = absolute ? shownPath(filename) : filename;
    parts.push(absolute && getCapabilities().hyperlinks ? hyperlink(name, pathToFileURL(filename).href) : name);
  }
  parts.push(`[${mimeType}]`);
  if (dimensions) parts.push(`${dimensions.widthPx}x${dimensions.heightPx}`);
  return `[Image: ${parts.join(" ")}]`;
}
