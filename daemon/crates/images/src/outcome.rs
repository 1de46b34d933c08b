//! What becomes of an image, and what the model is told about it. The sentences in brackets are the reference's.

use agentd_protocol::message::ImageContent;

/// An image that a model can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The image, in plain base64 and with the media type of its bytes.
    pub image: ImageContent,
    /// What was done to it, a line each; empty when it is as it came.
    pub hints: Vec<String>,
}

/// Why an image is left out; the text is for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Omission {
    /// It is no image, or not in base64.
    #[error("[Image omitted: it is no PNG, JPEG, GIF, WebP or BMP image in base64.]")]
    NoImage,
    /// It is damaged, of a variant that cannot be decoded, or has more pixels than are ever decoded.
    #[error("[Image omitted: could not be converted to a supported inline image format.]")]
    Unconvertible,
    /// Nothing makes it small enough.
    #[error("[Image omitted: could not be resized below the inline image size limit.]")]
    TooLarge,
}

/// The hint for an image that models do not take in the form it had.
pub(crate) fn converted(from: &str, to: &str) -> String {
    format!("[Image converted from {from} to {to}.]")
}

/// The hint for an image that was made smaller: how to get from what the model sees to what is in the file.
pub(crate) fn resized(from: (u32, u32), to: (u32, u32)) -> String {
    let scale = f64::from(from.0) / f64::from(to.0);
    format!(
        "[Image: original {}x{}, displayed at {}x{}. Multiply coordinates by {scale:.2} to map to original image.]",
        from.0, from.1, to.0, to.1
    )
}
