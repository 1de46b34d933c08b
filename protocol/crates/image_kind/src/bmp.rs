//! The header of a Windows bitmap.

/// Whether this is such a header and not just text that begins with "BM".
pub(crate) fn is_bmp(start: &[u8]) -> bool {
    if !start.starts_with(b"BM") {
        return false;
    }
    let (Some(size), Some(pixels), Some(header)) = (le32(start, 2), le32(start, 10), le32(start, 14)) else {
        return false;
    };
    let planes_at = if header == 12 { 22 } else { 26 };
    let (Some(planes), Some(depth)) = (le16(start, planes_at), le16(start, planes_at + 2)) else {
        return false;
    };
    let header_end = 14u32.saturating_add(header);
    matches!(header, 12 | 40 | 52 | 56 | 64 | 108 | 124)
        && planes == 1
        && matches!(depth, 1 | 4 | 8 | 16 | 24 | 32)
        && pixels >= header_end
        && (size == 0 || size > pixels)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}
