/** Identifiers that sort by time. */
import { randomBytes } from "node:crypto";

const MAX_TIMESTAMP = 2 ** 48 - 1;

let lastTimestamp = -1;
/** Counter within one millisecond, in the 12 bits behind the version. */
let sequence = 0;

/** A UUIDv7. Those made without a timestamp ascend within the process. */
export function uuidv7(timestampMs?: number): string {
  const timestamp = timestampMs ?? Date.now();
  if (!Number.isInteger(timestamp) || timestamp < 0 || timestamp > MAX_TIMESTAMP) {
    throw new Error(`UUIDv7 timestamp must be an integer between 0 and ${MAX_TIMESTAMP}`);
  }
  const bytes = randomBytes(16);
  let time = timestamp;
  if (timestampMs === undefined) {
    if (timestamp > lastTimestamp) {
      lastTimestamp = timestamp;
      sequence = bytes.readUInt16BE(6) & 0x7ff;
    } else {
      sequence += 1;
      if (sequence > 0xfff) {
        sequence = 0;
        lastTimestamp += 1;
      }
    }
    time = lastTimestamp;
    bytes.writeUInt16BE(sequence, 6);
  }
  bytes.writeUIntBE(time, 0, 6);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
