//! The chunks at the start of a PNG.

pub(crate) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Whether a PNG begins with its header, and is no animation: that has an `acTL` chunk before its first `IDAT`.
pub(crate) fn is_still(start: &[u8]) -> bool {
    let mut at = SIGNATURE.len();
    if start.get(at..at + 8) != Some(b"\0\0\0\x0dIHDR") {
        return false;
    }
    while let (Some(length), Some(kind)) = (be32(start, at), start.get(at + 4..at + 8)) {
        match kind {
            b"acTL" => return false,
            b"IDAT" => return true,
            // Length, kind and checksum are twelve bytes.
            _ => at = at.saturating_add(length as usize).saturating_add(12),
        }
    }
    true
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
