/** Images: their type, size, and resizing. The daemon resizes; the host has no image code. */
import { open } from "node:fs/promises";
import type { HostServices } from "../../services.ts";
import { getImageDimensions } from "../tui/image_size.ts";

export interface ImageResizeOptions {
  maxWidth?: number;
  maxHeight?: number;
  maxBytes?: number;
  jpegQuality?: number;
}

export interface ResizedImage {
  data: string;
  mimeType: string;
  originalWidth: number;
  originalHeight: number;
  width: number;
  height: number;
  wasResized: boolean;
}

const MAX_SIDE = 2000;
/** Longest base64 text of an image. */
const MAX_BASE64 = 4.5 * 1024 * 1024;
const SNIFFED_BYTES = 4100;

/** Type of a file by its first bytes, or null when it is none of the supported image types. */
export async function detectSupportedImageMimeTypeFromFile(filePath: string): Promise<string | null> {
  const file = await open(filePath, "r");
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(SNIFFED_BYTES), 0, SNIFFED_BYTES, 0);
    return detectImageMimeType(buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

function detectImageMimeType(bytes: Buffer): string | null {
  const ascii = (from: number, to: number): string => bytes.toString("latin1", from, to);
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return bytes[3] === 0xf7 ? null : "image/jpeg";
  if (ascii(0, 8) === "\x89PNG\r\n\x1a\n") return ascii(12, 16) === "IHDR" && !isAnimatedPng(bytes) ? "image/png" : null;
  if (/^GIF8[79]a/.test(ascii(0, 6))) return "image/gif";
  if (ascii(0, 4) === "RIFF" && ascii(8, 12) === "WEBP") return "image/webp";
  return isBmp(bytes) ? "image/bmp" : null;
}

/** Whether a chunk of animation stands before the first image data. */
function isAnimatedPng(bytes: Buffer): boolean {
  let at = 8;
  while (at + 8 <= bytes.length) {
    const type = bytes.toString("latin1", at + 4, at + 8);
    if (type === "acTL") return true;
    if (type === "IDAT") return false;
    at += 12 + bytes.readUInt32BE(at);
  }
  return false;
}

/** Sizes of the header that a BMP file can have. */
const BMP_HEADERS = [12, 40, 52, 56, 64, 108, 124];

function isBmp(bytes: Buffer): boolean {
  return bytes.length >= 18 && bytes.toString("latin1", 0, 2) === "BM" && BMP_HEADERS.includes(bytes.readUInt32LE(14));
}

/** The line that tells a model how to map coordinates, or undefined when the image has its own size. */
export function formatDimensionNote(image: ResizedImage): string | undefined {
  if (!image.wasResized) return undefined;
  const scale = (image.originalWidth / image.width).toFixed(2);
  return `[Image: original ${image.originalWidth}x${image.originalHeight}, displayed at ${image.width}x${image.height}. Multiply coordinates by ${scale} to map to original image.]`;
}

/** An image that is small enough already, as the result of a resizing. */
function unchanged(data: string, mimeType: string, options: ImageResizeOptions): ResizedImage | undefined {
  const size = getImageDimensions(data, mimeType);
  if (!size) return undefined;
  const fits =
    size.widthPx <= (options.maxWidth ?? MAX_SIDE) &&
    size.heightPx <= (options.maxHeight ?? MAX_SIDE) &&
    data.length <= (options.maxBytes ?? MAX_BASE64);
  if (!fits) return undefined;
  const { widthPx: width, heightPx: height } = size;
  return { data, mimeType, originalWidth: width, originalHeight: height, width, height, wasResized: false };
}

function isUnsupported(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === "unsupported";
}

export interface ImageFunctions {
  resizeImage(bytes: Uint8Array, mimeType: string, options?: ImageResizeOptions): Promise<ResizedImage | null>;
  convertToPng(base64Data: string, mimeType: string): Promise<{ data: string; mimeType: string } | null>;
}

/** The functions that need image code; null means, as in pi, that an image cannot be changed. */
export function imageFunctions(services: HostServices): ImageFunctions {
  const resize = async (params: object): Promise<ResizedImage | null> => {
    try {
      return (await services.call("image.resize", params)) as ResizedImage | null;
    } catch (error) {
      if (isUnsupported(error)) return null;
      throw error;
    }
  };
  return {
    async resizeImage(bytes, mimeType, options = {}) {
      const data = Buffer.from(bytes).toString("base64");
      return unchanged(data, mimeType, options) ?? resize({ data, mimeType, ...options });
    },
    async convertToPng(data, mimeType) {
      if (mimeType === "image/png") return { data, mimeType };
      const converted = await resize({ data, mimeType, format: "image/png" });
      return converted && { data: converted.data, mimeType: converted.mimeType };
    },
  };
}
