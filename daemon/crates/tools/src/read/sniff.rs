//! Tells images by their first bytes, never by their names.

/// How many bytes from the start decide.
pub(super) const SNIFFED: usize = 4100;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The media type of the image that begins with `start`, or `None` when it is none of the known kinds.
pub(super) fn image_type(start: &[u8]) -> Option<&'static str> {
    let start = &start[..start.len().min(SNIFFED)];
    if start.starts_with(b"\xff\xd8\xff") {
        // F7 marks the lossless JPEG that no viewer shows.
        return (start.get(3) != Some(&0xf7)).then_some("image/jpeg");
    }
    if start.starts_with(PNG) {
        return is_still_png(start).then_some("image/png");
    }
    if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    is_bmp(start).then_some("image/bmp")
}

/// Whether a PNG begins with its header, and is no animation: that has an `acTL` chunk before its first `IDAT`.
fn is_still_png(start: &[u8]) -> bool {
    let mut at = PNG.len();
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

/// Whether this is the header of a Windows bitmap and not just text that begins with "BM".
fn is_bmp(start: &[u8]) -> bool {
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

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png(chunks: &[(&[u8; 4], usize)]) -> Vec<u8> {
        let mut bytes = PNG.to_vec();
        for (kind, length) in chunks {
            bytes.extend((*length as u32).to_be_bytes());
            bytes.extend(*kind);
            bytes.extend(vec![0; length + 4]);
        }
        bytes
    }

    fn bmp(header: u32, planes: u16, depth: u16) -> Vec<u8> {
        let mut bytes = b"BM".to_vec();
        bytes.extend(1000u32.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend((14 + header).to_le_bytes());
        bytes.extend(header.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(planes.to_le_bytes());
        bytes.extend(depth.to_le_bytes());
        bytes
    }

    #[test]
    fn images_are_told_by_their_start() {
        let rows: &[(&[u8], Option<&str>)] = &[
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"\xff\xd8\xff\xf7", None),
            (b"GIF87a", Some("image/gif")),
            (b"GIF89a..", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (&png(&[(b"IHDR", 13), (b"IDAT", 10)]), Some("image/png")),
            (&png(&[(b"IHDR", 13), (b"gAMA", 4)]), Some("image/png")),
            (&png(&[(b"IHDR", 13), (b"acTL", 8), (b"IDAT", 10)]), None),
            (&png(&[(b"IHDR", 13), (b"IDAT", 10), (b"acTL", 8)]), Some("image/png")),
            (&png(&[(b"tEXt", 13)]), None),
            (PNG, None),
            (&bmp(40, 1, 24), Some("image/bmp")),
            (&bmp(40, 2, 24), None),
            (&bmp(41, 1, 24), None),
            (&bmp(40, 1, 7), None),
            (b"BM is how this text begins, and it goes on.", None),
            (b"", None),
            (b"plain text", None),
        ];
        for (start, expected) in rows {
            assert_eq!(image_type(start), *expected, "{:?}", String::from_utf8_lossy(start));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_asked_about(start in prop::sample::select(vec![&b"BM"[..], PNG, b"RIFF", b""]), rest: Vec<u8>) {
            let _ = image_type(&[start, &rest].concat());
        }
    }
}
