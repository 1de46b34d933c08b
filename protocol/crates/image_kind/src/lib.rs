//! Tells images by their first bytes, never by their names or by what their sender calls them.
//!
//! The daemon and its client agree on this, so it stands alone: without decoders, without any dependency.

mod bmp;
mod png;

/// How many bytes from the start of a file decide what it is.
pub const SNIFFED: usize = 4100;

/// A kind of image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// GIF, also one that moves.
    Gif,
    /// WebP, also one that moves.
    WebP,
    /// Windows bitmap, which no model takes.
    Bmp,
}

impl ImageKind {
    /// The kind of a file that begins with `start`: what counts as an image among files of all kinds.
    ///
    /// At most [`SNIFFED`] bytes are looked at. A PNG that moves is no image, and neither is a lossless JPEG: viewers and
    /// models do not show them.
    #[must_use]
    pub fn sniff(start: &[u8]) -> Option<Self> {
        let start = &start[..start.len().min(SNIFFED)];
        let kind = Self::by_signature(start)?;
        let is_shown = match kind {
            // F7 marks the lossless JPEG.
            Self::Jpeg => start.get(3) != Some(&0xf7),
            Self::Png => png::is_still(start),
            Self::Gif | Self::WebP | Self::Bmp => true,
        };
        is_shown.then_some(kind)
    }

    /// The kind by the signature alone: for what somebody says is an image.
    #[must_use]
    pub fn by_signature(start: &[u8]) -> Option<Self> {
        match start {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ if start.starts_with(png::SIGNATURE) => Some(Self::Png),
            // Two letters are no signature, so the header must hold together.
            _ => bmp::is_bmp(start).then_some(Self::Bmp),
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

    /// Whether models take it, and browsers show it, as it is.
    #[must_use]
    pub fn is_for_the_web(self) -> bool {
        self != Self::Bmp
    }
}

#[cfg(test)]
mod tests;
