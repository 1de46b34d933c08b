//! Decodes bytes to pixels, within limits.

use std::io::Cursor;

use agentd_protocol::image_kind::ImageKind;
use image::{
    ImageDecoder, ImageResult, Limits,
    codecs::{bmp::BmpDecoder, gif::GifDecoder, jpeg::JpegDecoder, png::PngDecoder, webp::WebPDecoder},
    metadata::Orientation,
};

use crate::{fit::Size, raster::Layout};

/// The most pixels that are decoded: a file of a few kilobytes can claim any number.
const MAX_PIXELS: u64 = 100_000_000;

/// The most memory of one decoder, in bytes: 512 MiB.
const MAX_MEMORY: u64 = 512 << 20;

/// An image whose header was read.
pub(crate) struct Encoded<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    /// How to turn the pixels upright.
    pub(crate) orientation: Orientation,
    /// How the pixels lie in memory.
    pub(crate) layout: Layout,
    /// The size as stored.
    pub(crate) stored: Size,
    /// The memory that decoding takes, in bytes, about.
    pub(crate) memory: u64,
}

impl<'a> Encoded<'a> {
    /// Reads the header. `None` for an invalid header, or one beyond the limits.
    pub(crate) fn open(bytes: &'a [u8], kind: ImageKind) -> Option<Self> {
        let mut decoder = decoder(bytes, kind).ok()?;
        let stored = decoder.dimensions();
        let layout = Layout::of(decoder.color_type())?;
        let pixels = u64::from(stored.0) * u64::from(stored.1);
        let memory = decoder.total_bytes().saturating_mul(copies(bytes, kind));
        if pixels == 0 || pixels > MAX_PIXELS || memory > MAX_MEMORY {
            return None;
        }
        // Ignore a damaged orientation: the image itself can still be shown.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        Some(Self { decoder, orientation, layout, stored, memory })
    }

    /// The size when upright.
    pub(crate) fn size(&self) -> Size {
        let (width, height) = self.stored;
        match self.orientation {
            Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH => (height, width),
            _ => (width, height),
        }
    }

    /// The pixels as stored; of an animation, the first picture.
    pub(crate) fn pixels(self) -> Option<Vec<u8>> {
        let mut pixels = vec![0; usize::try_from(self.decoder.total_bytes()).ok()?];
        self.decoder.read_image_boxed(&mut pixels).ok()?;
        Some(pixels)
    }
}

fn decoder(bytes: &[u8], kind: ImageKind) -> ImageResult<Box<dyn ImageDecoder + '_>> {
    let input = Cursor::new(bytes);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY);
    let mut decoder: Box<dyn ImageDecoder + '_> = match kind {
        // Limits apply from the start: compressed texts precede the pixels.
        ImageKind::Png => return Ok(Box::new(PngDecoder::with_limits(input, limits)?)),
        ImageKind::Jpeg => Box::new(JpegDecoder::new(input)?),
        ImageKind::Gif => Box::new(GifDecoder::new(input)?),
        ImageKind::WebP => Box::new(WebPDecoder::new(input)?),
        ImageKind::Bmp => Box::new(BmpDecoder::new(input)?),
    };
    decoder.set_limits(limits)?;
    Ok(decoder)
}

/// How many times the size of its pixels a decoder takes at most.
fn copies(bytes: &[u8], kind: ImageKind) -> u64 {
    match kind {
        ImageKind::Png | ImageKind::Bmp => 1,
        ImageKind::Gif | ImageKind::WebP => 2,
        // The decoder keeps the coefficients of all passes as 16-bit numbers until the last pass.
        ImageKind::Jpeg if is_progressive(bytes) => 3,
        ImageKind::Jpeg => 1,
    }
}

/// Whether a JPEG is progressive.
fn is_progressive(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) {
        match marker {
            0xc2 | 0xc6 | 0xca | 0xce => return true,
            // Another kind of frame (C4, C8 and CC are no frames), or the pixels.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => return false,
            0xda => return false,
            // Filling before a marker.
            0xff => at += 1,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    // Assume the worst of a file that only the decoder understands.
    true
}
