//! The result of preparing an image, and the hints for the model. The sentences in brackets are pi's.

use agentd_protocol::message::ImageContent;

/// An image that a model can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The image, in plain base64 and with the media type of its bytes.
    pub image: ImageContent,
    /// What was done to it, a line each; empty when it is unchanged.
    pub hints: Vec<String>,
}

/// Why an image is left out. Displayed for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Omission {
    /// It is no image, or not in base64.
    #[error("[Image omitted: it is no PNG, JPEG, GIF, WebP or BMP image in base64.]")]
    NoImage,
    /// It is damaged, of an unsupported variant, or has too many pixels.
    #[error("[Image omitted: could not be converted to a supported inline image format.]")]
    Unconvertible,
    /// No size makes it small enough.
    #[error("[Image omitted: could not be resized below the inline image size limit.]")]
    TooLarge,
}

/// The hint for a converted image.
pub(crate) fn converted(from: &str, to: &str) -> String {
    format!("[Image converted from {from} to {to}.]")
}

/// The hint for a resized image: how to map coordinates to the original.
pub(crate) fn resized(from: (u32, u32), to: (u32, u32)) -> String {
    let scale = f64::from(from.0) / f64::from(to.0);
    format!(
        "[Image: original {}x{}, displayed at {}x{}. Multiply coordinates by {scale:.2} to map to original image.]",
        from.0, from.1, to.0, to.1
    )
}
