//! Prepares one image. Blocks.

use agentd_protocol::image_kind::ImageKind;
use agentd_protocol::message::ImageContent;

use crate::{
    Omission, Prepared, content,
    decode::Encoded,
    encode,
    fit::{Limits, Size},
    outcome::{converted, resized as resized_hint},
    raster::Raster,
};

/// An image, with its upright sizes before and after.
pub(crate) struct Resized {
    pub(crate) image: ImageContent,
    pub(crate) original: Size,
    pub(crate) size: Size,
    /// Whether the bytes are those that came.
    pub(crate) is_unchanged: bool,
}

/// How to prepare an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Make it upright, and small if it is too large.
    Fit(Limits),
    /// Keep its size; convert only unsupported kinds.
    Convert,
    /// Keep its size, and make it a PNG.
    Png,
}

impl Wish {
    /// The limits that the size has to fit.
    fn limits(self) -> Option<Limits> {
        match self {
            Self::Fit(limits) => Some(limits),
            Self::Convert | Self::Png => None,
        }
    }

    /// Whether an image of that kind may stay as it is.
    fn takes(self, kind: ImageKind) -> bool {
        match self {
            Self::Fit(_) | Self::Convert => kind.is_for_the_web(),
            Self::Png => kind == ImageKind::Png,
        }
    }
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
        let is_mixed = self.wish.limits().is_some_and(|limits| !limits.is_small(image.size()));
        let mixing = if is_mixed { 192 << 20 } else { 0 };
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
            return Ok(Prepared { image: self.unchanged(), hints: Vec::new() });
        }
        let kind = self.kind.mime_type();
        let is_converted = !self.kind.is_for_the_web();
        let resized = self.resize(stop)?;
        let mut hints = Vec::new();
        if is_converted {
            hints.push(converted(kind, &resized.image.mime_type));
        }
        if resized.original != resized.size {
            hints.push(resized_hint(resized.original, resized.size));
        }
        Ok(Prepared { image: resized.image, hints })
    }

    /// The same, with the sizes before and after.
    pub(crate) fn resize(self, stop: impl Fn() -> bool) -> Result<Resized, Omission> {
        let image = self.open()?;
        let (size, stored) = (image.size(), image.stored);
        let (orientation, layout) = (image.orientation, image.layout);
        // Decode even if the image stays unchanged: a provider refuses the whole transcript for one damaged image.
        let pixels = image.pixels().ok_or(Omission::Unconvertible)?;
        let limits = self.wish.limits();
        let fits = |limits: Limits| limits.is_small(size) && limits.is_light(self.bytes.len());
        if self.wish.takes(self.kind) && limits.is_none_or(fits) {
            drop(pixels);
            return Ok(Resized { image: self.unchanged(), original: size, size, is_unchanged: true });
        }
        let target = limits.map_or(size, |limits| limits.largest(size));
        let raster = Raster::new(&pixels, stored, layout, orientation, size, target);
        drop(pixels);
        let encoding = match limits {
            Some(limits) => encode::light(&raster, target, &limits, &stop).ok_or(Omission::TooLarge)?,
            None => encode::png(&raster).ok_or(Omission::Unconvertible)?,
        };
        let image = ImageContent {
            data: content::encode(&encoding.bytes),
            mime_type: encoding.kind.mime_type().to_owned(),
        };
        Ok(Resized { image, original: size, size: encoding.size, is_unchanged: false })
    }

    fn unchanged(self) -> ImageContent {
        let data = self.base64.unwrap_or_else(|| content::encode(&self.bytes));
        ImageContent { data, mime_type: self.kind.mime_type().to_owned() }
    }
}

#[cfg(test)]
mod tests;
