/** Splits a byte stream into lines that end with LF. Pure. */
export class LineSplitter {
  /** Bytes of the line that has not ended yet. */
  private parts: Buffer[] = [];
  private partBytes = 0;

  constructor(private maxLineBytes: number) {}

  setMaxLineBytes(bytes: number): void {
    this.maxLineBytes = bytes;
  }

  /**
   * Calls `onLine` for each line that `chunk` completes, in order, without its LF. Empty lines are skipped.
   * Throws when a line is longer than the limit.
   */
  push(chunk: Buffer, onLine: (line: string) => void): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(0x0a, start);
      if (end === -1) break;
      const line = this.complete(chunk.subarray(start, end));
      if (line.length > 0) onLine(line);
      start = end + 1;
    }
    if (start < chunk.length) this.keep(chunk.subarray(start));
  }

  private complete(last: Buffer): string {
    this.check(this.partBytes + last.length);
    if (this.parts.length === 0) return last.toString("utf8");
    this.parts.push(last);
    const line = Buffer.concat(this.parts, this.partBytes + last.length).toString("utf8");
    this.parts = [];
    this.partBytes = 0;
    return line;
  }

  private keep(rest: Buffer): void {
    this.partBytes += rest.length;
    this.check(this.partBytes);
    this.parts.push(rest);
  }

  private check(bytes: number): void {
    if (bytes > this.maxLineBytes) {
      throw new Error(`a line of agentd is longer than ${this.maxLineBytes} bytes`);
    }
  }
}
