//! Prepares one image. Blocks.

use agentd_protocol::image_kind::ImageKind;
use agentd_protocol::message::ImageContent;

use crate::{
    Omission, Prepared, content,
    decode::Encoded,
    encode, fit,
    outcome::{converted, resized},
    raster::Raster,
};

/// How to prepare an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Make it upright, and small if it is too large.
    Fit,
    /// Keep its size; convert only unsupported kinds.
    Convert,
}

/// An image of a known kind.
pub(crate) struct Job {
    bytes: Vec<u8>,
    kind: ImageKind,
    /// The bytes in plain base64, if they came that way.
    base64: Option<String>,
    wish: Wish,
}

impl Job {
    /// An image in `bytes`.
    pub(crate) fn of_bytes(bytes: Vec<u8>, wish: Wish) -> Result<Self, Omission> {
        let kind = ImageKind::by_signature(&bytes).ok_or(Omission::NoImage)?;
        Ok(Self { bytes, kind, base64: None, wish })
    }

    /// An image in base64.
    pub(crate) fn of_base64(data: String, wish: Wish) -> Result<Self, Omission> {
        let (bytes, is_plain) = content::decode(&data).ok_or(Omission::NoImage)?;
        Ok(Self { base64: is_plain.then_some(data), ..Self::of_bytes(bytes, wish)? })
    }

    /// The memory that the work takes, in bytes, about.
    pub(crate) fn memory(&self) -> Result<u64, Omission> {
        if self.stays_unseen() {
            return Ok(0);
        }
        let image = self.open()?;
        // Resizing mixes pixels in floating point.
        let mixing = if fit::is_small(image.size()) { 0 } else { 192 << 20 };
        Ok(image.memory + mixing)
    }

    /// Whether the pixels need not be decoded.
    fn stays_unseen(&self) -> bool {
        self.wish == Wish::Convert && self.kind.is_for_the_web()
    }

    fn open(&self) -> Result<Encoded<'_>, Omission> {
        Encoded::open(&self.bytes, self.kind).ok_or(Omission::Unconvertible)
    }

    /// Does the work; `stop` returns whether the caller has stopped waiting.
    pub(crate) fn run(self, stop: impl Fn() -> bool) -> Result<Prepared, Omission> {
        if self.stays_unseen() {
            return Ok(self.unchanged());
        }
        let image = self.open()?;
        let (size, stored) = (image.size(), image.stored);
        let (orientation, layout) = (image.orientation, image.layout);
        // Decode even if the image stays unchanged: a provider refuses the whole transcript for one damaged image.
        let pixels = image.pixels().ok_or(Omission::Unconvertible)?;
        if self.kind.is_for_the_web() && fit::is_small(size) && fit::is_light(self.bytes.len()) {
            drop(pixels);
            return Ok(self.unchanged());
        }
        let target = if self.wish == Wish::Fit { fit::largest(size) } else { size };
        let raster = Raster::new(&pixels, stored, layout, orientation, size, target);
        drop(pixels);
        let encoding = match self.wish {
            Wish::Fit => encode::light(&raster, target, &stop).ok_or(Omission::TooLarge)?,
            Wish::Convert => encode::png(&raster).ok_or(Omission::Unconvertible)?,
        };
        let mut hints = Vec::new();
        if !self.kind.is_for_the_web() {
            hints.push(converted(self.kind.mime_type(), encoding.kind.mime_type()));
        }
        if encoding.size != size {
            hints.push(resized(size, encoding.size));
        }
        let image = ImageContent {
            data: content::encode(&encoding.bytes),
            mime_type: encoding.kind.mime_type().to_owned(),
        };
        Ok(Prepared { image, hints })
    }

    fn unchanged(self) -> Prepared {
        let data = self.base64.unwrap_or_else(|| content::encode(&self.bytes));
        let mime_type = self.kind.mime_type().to_owned();
        Prepared { image: ImageContent { data, mime_type }, hints: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
