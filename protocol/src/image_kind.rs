//! Recognises images by their first bytes, never by their names or by what their sender calls them. Pure.

/// The number of bytes from the start of a file that decide its kind.
pub const SNIFFED: usize = 4100;

/// A kind of image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// GIF, still or animated.
    Gif,
    /// WebP, still or animated.
    WebP,
    /// Windows bitmap, which no model accepts.
    Bmp,
}

impl ImageKind {
    /// The kind of a file that begins with `start`, among files of all kinds.
    ///
    /// Reads at most [`SNIFFED`] bytes. An animated PNG and a lossless JPEG are no images: viewers and models do not show them.
    #[must_use]
    pub fn sniff(start: &[u8]) -> Option<Self> {
        let start = &start[..start.len().min(SNIFFED)];
        let kind = Self::by_signature(start)?;
        let is_shown = match kind {
            // F7 marks the lossless JPEG.
            Self::Jpeg => start.get(3) != Some(&0xf7),
            Self::Png => is_still_png(start),
            Self::Gif | Self::WebP | Self::Bmp => true,
        };
        is_shown.then_some(kind)
    }

    /// The kind by the signature alone, for bytes that their sender calls an image.
    #[must_use]
    pub fn by_signature(start: &[u8]) -> Option<Self> {
        match start {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ if start.starts_with(PNG_SIGNATURE) => Some(Self::Png),
            // Two letters are no signature, so the header must hold together.
            _ => is_bmp(start).then_some(Self::Bmp),
        }
    }

    /// The media type.
    #[must_use]
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
            Self::Bmp => "image/bmp",
        }
    }

    /// Whether models accept it and browsers show it without conversion.
    #[must_use]
    pub fn is_for_the_web(self) -> bool {
        self != Self::Bmp
    }
}

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Whether a PNG begins with its header and is not animated: an animated one has an `acTL` chunk before its first `IDAT`.
fn is_still_png(start: &[u8]) -> bool {
    let mut at = PNG_SIGNATURE.len();
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

/// Whether these bytes are the header of a Windows bitmap, and not just text that begins with "BM".
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

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PNG_SIGNATURE as SIGNATURE, *};

    fn png(chunks: &[(&[u8; 4], usize)]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
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

    /// What each start is, among files of all kinds and when somebody says that it is an image.
    #[test]
    fn images_are_told_by_their_start() {
        use ImageKind::{Bmp, Gif, Jpeg, Png, WebP};
        let rows: &[(&[u8], Option<ImageKind>, Option<ImageKind>)] = &[
            (b"\xff\xd8\xff\xe0", Some(Jpeg), Some(Jpeg)),
            (b"\xff\xd8\xff\xf7", None, Some(Jpeg)),
            (b"\xff\xd8", None, None),
            (b"GIF87a", Some(Gif), Some(Gif)),
            (b"GIF89a..", Some(Gif), Some(Gif)),
            (b"GIF88a..", None, None),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some(WebP), Some(WebP)),
            (b"RIFF\0\0\0\0WAVE", None, None),
            (b"RIFF", None, None),
            (&png(&[(b"IHDR", 13), (b"IDAT", 10)]), Some(Png), Some(Png)),
            (&png(&[(b"IHDR", 13), (b"gAMA", 4)]), Some(Png), Some(Png)),
            (&png(&[(b"IHDR", 13), (b"acTL", 8), (b"IDAT", 10)]), None, Some(Png)),
            (&png(&[(b"IHDR", 13), (b"tEXt", 40), (b"acTL", 8), (b"IDAT", 10)]), None, Some(Png)),
            (&png(&[(b"IHDR", 13), (b"IDAT", 10), (b"acTL", 8)]), Some(Png), Some(Png)),
            // An animation that is announced further back than anyone looks.
            (&png(&[(b"IHDR", 13), (b"tEXt", SNIFFED), (b"acTL", 8)]), Some(Png), Some(Png)),
            (&png(&[(b"tEXt", 13)]), None, Some(Png)),
            (SIGNATURE, None, Some(Png)),
            (&bmp(40, 1, 24), Some(Bmp), Some(Bmp)),
            (&bmp(40, 2, 24), None, None),
            (&bmp(41, 1, 24), None, None),
            (&bmp(40, 1, 7), None, None),
            (b"BM is how this text begins, and it goes on.", None, None),
            (b"<svg onload='alert(1)'>", None, None),
            (b"", None, None),
            (b"plain text", None, None),
        ];
        for (start, sniffed, signed) in rows {
            let shown = String::from_utf8_lossy(start);
            assert_eq!(ImageKind::sniff(start), *sniffed, "{shown:?}");
            assert_eq!(ImageKind::by_signature(start), *signed, "{shown:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_asked_about(
            start in prop::sample::select(vec![&b"BM"[..], SIGNATURE, b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"RIFF", b"\xff\xd8\xff", b""]),
            rest: Vec<u8>,
        ) {
            let bytes = [start, &rest].concat();
            let sniffed = ImageKind::sniff(&bytes);
            prop_assert!(sniffed.is_none() || sniffed == ImageKind::by_signature(&bytes));
        }
    }
}
