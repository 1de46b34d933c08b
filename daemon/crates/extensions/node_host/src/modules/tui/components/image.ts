/** Images, shown by their name and size. */
import { getImageDimensions, type ImageDimensions } from "../image_size.ts";
import { truncateToWidth } from "../slice.ts";
import { allocateImageId, getCapabilities, imageFallback, renderImage } from "../terminal_image.ts";
import type { Component, TextStyler } from "./component.ts";

export type ImageTranscoder = (base64Data: string, mimeType: string) => string | null;

/** A transcoder serves terminals that draw images; there is none. */
export function setImageTranscoder(_transcoder: ImageTranscoder | undefined): void {}

export interface ImageOptions {
  maxWidthCells?: number;
  maxHeightCells?: number;
  filename?: string;
  imageId?: number;
}

export class Image implements Component {
  #data: string;
  #mimeType: string;
  #dimensions: ImageDimensions | undefined;
  #theme: { fallbackColor: TextStyler };
  #options: ImageOptions;
  #imageId: number | undefined;

  constructor(
    base64Data: string,
    mimeType: string,
    theme: { fallbackColor: TextStyler },
    options: ImageOptions = {},
    dimensions?: ImageDimensions,
  ) {
    this.#data = base64Data;
    this.#mimeType = mimeType;
    this.#theme = theme;
    this.#options = options;
    this.#dimensions = dimensions ?? getImageDimensions(base64Data, mimeType) ?? undefined;
    this.#imageId = options.imageId;
  }

  getImageId(): number | undefined {
    return this.#imageId;
  }

  invalidate(): void {}

  render(width: number): string[] {
    const drawn = this.#draw(width);
    if (drawn) return drawn;
    const text = imageFallback(this.#mimeType, this.#dimensions, this.#options.filename);
    return [truncateToWidth(this.#theme.fallbackColor(text), width)];
  }

  /** Lines with the drawing sequence, where somebody has declared that the terminal draws images. */
  #draw(width: number): string[] | undefined {
    if (!this.#dimensions || getCapabilities().images === null) return undefined;
    this.#imageId ??= allocateImageId();
    const image = renderImage(this.#data, this.#dimensions, {
      maxWidthCells: Math.max(1, Math.min(width, this.#options.maxWidthCells ?? width)),
      imageId: this.#imageId,
      ...(this.#options.maxHeightCells === undefined ? {} : { maxHeightCells: this.#options.maxHeightCells }),
    });
    return image ? [image.sequence, ...Array.from({ length: image.rows - 1 }, () => "")] : undefined;
  }
}
