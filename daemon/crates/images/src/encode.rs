//! Encodes pixels as a file that is small enough.

use agentd_protocol::image_kind::ImageKind;
use image::{
    ExtendedColorType, ImageEncoder,
    codecs::{jpeg::JpegEncoder, png::PngEncoder},
};

use crate::{
    fit::{self, Limits, Size},
    raster::Raster,
};

/// The JPEG qualities that are tried at each size after the one that is wanted.
const QUALITIES: [u8; 4] = [85, 70, 55, 40];

/// An encoded image.
pub(crate) struct Encoding {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: ImageKind,
    pub(crate) size: Size,
}

/// The picture as a PNG of any size.
pub(crate) fn png(raster: &Raster) -> Option<Encoding> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new(&mut bytes);
    let size = raster.size();
    let written = if raster.is_opaque() {
        encoder.write_image(&raster.rgb(), size.0, size.1, ExtendedColorType::Rgb8)
    } else {
        encoder.write_image(&raster.rgba(), size.0, size.1, ExtendedColorType::Rgba8)
    };
    written.ok()?;
    Some(Encoding { bytes, kind: ImageKind::Png, size })
}

fn jpeg(raster: &Raster, quality: u8) -> Option<Encoding> {
    let mut bytes = Vec::new();
    let size = raster.size();
    JpegEncoder::new_with_quality(&mut bytes, quality)
        .write_image(&raster.rgb(), size.0, size.1, ExtendedColorType::Rgb8)
        .ok()?;
    Some(Encoding { bytes, kind: ImageKind::Jpeg, size })
}

/// The first file that is small enough: PNG, then JPEG of each quality, at `size`, then at ever smaller sizes. `None`
/// when there is none, or when stopped.
pub(crate) fn light(
    raster: &Raster,
    size: Size,
    limits: &Limits,
    stop: &impl Fn() -> bool,
) -> Option<Encoding> {
    let sizes = std::iter::successors(Some(size), |size| fit::smaller(*size));
    for size in sizes {
        if stop() {
            return None;
        }
        let resized = (size != raster.size()).then(|| raster.resized(size));
        let raster = resized.as_ref().unwrap_or(raster);
        let attempts = std::iter::once_with(|| png(raster))
            .chain(std::iter::once(limits.quality).chain(QUALITIES).map(|quality| jpeg(raster, quality)))
            .take_while(|_| !stop());
        let found = attempts.flatten().find(|encoding| limits.is_light(encoding.bytes.len()));
        if found.is_some() {
            return found;
        }
    }
    None
}
