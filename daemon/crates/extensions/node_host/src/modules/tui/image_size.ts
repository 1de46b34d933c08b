/** Sizes of images, read from the beginning of their files. Pure. */

export interface ImageDimensions {
  widthPx: number;
  heightPx: number;
}

function bytesOf(base64: string): Buffer {
  return Buffer.from(base64, "base64");
}

function guarded(read: () => ImageDimensions | null): ImageDimensions | null {
  try {
    return read();
  } catch (error) {
    // Reading past the end means that the file is cut off.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

export function getPngDimensions(base64Data: string): ImageDimensions | null {
  const bytes = bytesOf(base64Data);
  if (bytes.length < 24 || bytes.readUInt32BE(0) !== 0x89504e47) return null;
  return { widthPx: bytes.readUInt32BE(16), heightPx: bytes.readUInt32BE(20) };
}

/** Whether a JPEG marker begins a frame, which tells the size. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xc2;
}

export function getJpegDimensions(base64Data: string): ImageDimensions | null {
  const bytes = bytesOf(base64Data);
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return null;
  return guarded(() => {
    let at = 2;
    while (at < bytes.length - 9) {
      if (bytes[at] !== 0xff) {
        at += 1;
        continue;
      }
      if (isFrame(bytes.readUInt8(at + 1))) {
        return { widthPx: bytes.readUInt16BE(at + 7), heightPx: bytes.readUInt16BE(at + 5) };
      }
      const length = bytes.readUInt16BE(at + 2);
      if (length < 2) return null;
      at += 2 + length;
    }
    return null;
  });
}

export function getGifDimensions(base64Data: string): ImageDimensions | null {
  const bytes = bytesOf(base64Data);
  if (bytes.length < 10 || !/^GIF8[79]a/.test(bytes.toString("latin1", 0, 6))) return null;
  return { widthPx: bytes.readUInt16LE(6), heightPx: bytes.readUInt16LE(8) };
}

export function getWebpDimensions(base64Data: string): ImageDimensions | null {
  const bytes = bytesOf(base64Data);
  if (bytes.length < 30 || bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WEBP") {
    return null;
  }
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { widthPx: bytes.readUInt16LE(26) & 0x3fff, heightPx: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { widthPx: (bits & 0x3fff) + 1, heightPx: ((bits >> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { widthPx: bytes.readUIntLE(24, 3) + 1, heightPx: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}

/** Size of an image of one of the four supported types, or null. */
export function getImageDimensions(base64Data: string, mimeType: string): ImageDimensions | null {
  switch (mimeType) {
    case "image/png":
      return getPngDimensions(base64Data);
    case "image/jpeg":
      return getJpegDimensions(base64Data);
    case "image/gif":
      return getGifDimensions(base64Data);
    case "image/webp":
      return getWebpDimensions(base64Data);
    default:
      return null;
  }
}
