//! Checks the images of a transcript.

use agentd_protocol::image_kind::ImageKind;
use agentd_protocol::message::ImageContent;
use base64::{Engine, prelude::BASE64_STANDARD};

/// An image that a page may show: its format is one that browsers show without running anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture<'a> {
    /// Determined from the content, whatever the transcript says.
    pub(crate) mime_type: &'static str,
    /// The bytes in base64, checked to be nothing else.
    pub(crate) data: &'a str,
    /// The length of the decoded image.
    pub(crate) bytes: usize,
}

impl<'a> Picture<'a> {
    /// `None` for anything but PNG, JPEG, GIF or WebP in base64.
    pub(crate) fn new(image: &'a ImageContent) -> Option<Self> {
        let data = image.data.as_str();
        let bytes = BASE64_STANDARD.decode(data).ok()?;
        let kind = ImageKind::by_signature(&bytes).filter(|kind| kind.is_for_the_web())?;
        Some(Self { mime_type: kind.mime_type(), data, bytes: bytes.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(bytes: &[u8], called: &str) -> Option<&'static str> {
        let image = ImageContent { data: BASE64_STANDARD.encode(bytes), mime_type: called.into() };
        let picture = Picture::new(&image)?;
        assert_eq!(picture.bytes, bytes.len());
        Some(picture.mime_type)
    }

    #[test]
    fn the_content_counts_not_the_name() {
        assert_eq!(kind_of(b"\x89PNG\r\n\x1a\nrest", "text/html"), Some("image/png"));
        assert_eq!(kind_of(b"\xff\xd8\xff\xe0", "image/png"), Some("image/jpeg"));
        assert_eq!(kind_of(b"GIF89a", ""), Some("image/gif"));
        assert_eq!(kind_of(b"RIFF\0\0\0\0WEBPVP8 ", ""), Some("image/webp"));
        assert_eq!(kind_of(b"<svg onload='alert(1)'>", "image/svg+xml"), None);
        assert_eq!(kind_of(b"", "image/png"), None);
    }

    #[test]
    fn only_base64_passes() {
        for data in ["iVBORw0KGgo\"><script>", "iVBORw0K\nGgo=", "%%%"] {
            let image = ImageContent { data: data.into(), mime_type: "image/png".into() };
            assert_eq!(Picture::new(&image), None, "{data}");
        }
    }
}
