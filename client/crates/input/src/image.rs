//! Tells images by their first bytes, never by their name.

/// The media type of an image that models take as it is; `None` for anything else.
///
/// An animated PNG is no image here, as in the daemon's `read` tool.
pub(crate) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xFF, 0xD8, 0xFF, kind, ..] if *kind != 0xF7 => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', chunks @ ..] => {
            (chunks.get(4..8) == Some(b"IHDR") && !is_animated(chunks)).then_some("image/png")
        }
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Whether an animation is announced before the picture.
fn is_animated(mut chunks: &[u8]) -> bool {
    while let [a, b, c, d, kind @ ..] = chunks {
        match kind.get(..4) {
            Some(b"acTL") => return true,
            Some(b"IDAT") | None => return false,
            Some(_) => {}
        }
        // Length, type and checksum stand around the data.
        let data = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        chunks = chunks.get(data.saturating_add(12)..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(chunks: &[&[u8; 4]]) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        for kind in chunks {
            bytes.extend_from_slice(&[0, 0, 0, 2]);
            bytes.extend_from_slice(*kind);
            bytes.extend_from_slice(b"xx\0\0\0\0");
        }
        bytes
    }

    #[test]
    fn the_first_bytes_decide() {
        assert_eq!(sniff(&png(&[b"IHDR", b"IDAT", b"acTL"])), Some("image/png"));
        assert_eq!(sniff(&png(&[b"IHDR", b"tEXt", b"acTL", b"IDAT"])), None);
        assert_eq!(sniff(&png(&[b"IDAT"])), None);
        assert_eq!(sniff(b"\xFF\xD8\xFF\xE0"), Some("image/jpeg"));
        assert_eq!(sniff(b"\xFF\xD8\xFF\xF7"), None);
        assert_eq!(sniff(b"GIF89a..."), Some("image/gif"));
        assert_eq!(sniff(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        for bytes in [&b""[..], b"text", b"RIFF\0\0\0\0WAVE", b"\x89PNG\r\n\x1a\n"] {
            assert_eq!(sniff(bytes), None, "{bytes:?}");
        }
        // A chunk that claims to be longer than the file ends the search.
        assert_eq!(sniff(b"\x89PNG\r\n\x1a\n\xFF\xFF\xFF\xFFIHDR"), Some("image/png"));
    }
}
