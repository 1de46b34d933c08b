//! Pixels in one form: eight bits each of red, green, blue and opacity, with colours multiplied by opacity.
//!
//! With multiplied colours, invisible pixels do not colour their neighbours when pixels are mixed.

use image::{
    ColorType, RgbaImage,
    imageops::{self, FilterType},
    metadata::Orientation,
};

use crate::fit::Size;

/// How the pixels of a decoder lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    channels: usize,
    /// Bytes per channel: 1 or 2.
    width: usize,
}

impl Layout {
    /// `None` for colour types that no used decoder produces.
    pub(crate) fn of(color: ColorType) -> Option<Self> {
        let (channels, width) = match color {
            ColorType::L8 => (1, 1),
            ColorType::La8 => (2, 1),
            ColorType::Rgb8 => (3, 1),
            ColorType::Rgba8 => (4, 1),
            ColorType::L16 => (1, 2),
            ColorType::La16 => (2, 2),
            ColorType::Rgb16 => (3, 2),
            ColorType::Rgba16 => (4, 2),
            _ => return None,
        };
        Some(Self { channels, width })
    }

    fn bytes(self) -> usize {
        self.channels * self.width
    }

    /// Red, green, blue and opacity of one pixel. Of 16-bit channels, in the machine's byte order, the upper eight bits
    /// count.
    fn rgba(self, pixel: &[u8]) -> [u8; 4] {
        let upper = if self.width == 2 && cfg!(target_endian = "little") { 1 } else { 0 };
        let channel = |index: usize| pixel[index * self.width + upper];
        match self.channels {
            1 => [channel(0), channel(0), channel(0), 255],
            2 => [channel(0), channel(0), channel(0), channel(1)],
            3 => [channel(0), channel(1), channel(2), 255],
            _ => [channel(0), channel(1), channel(2), channel(3)],
        }
    }
}

/// A picture.
#[derive(Debug, Clone)]
pub(crate) struct Raster {
    pixels: RgbaImage,
    is_opaque: bool,
}

impl Raster {
    /// Takes pixels as stored, and turns them upright. If they are at least twice as large as `target`, the next wanted
    /// upright size, in both directions, it first shrinks them by a whole factor.
    pub(crate) fn new(
        stored: &[u8],
        (width, height): Size,
        layout: Layout,
        orientation: Orientation,
        upright: Size,
        target: Size,
    ) -> Self {
        let factor = (upright.0 / target.0.max(1)).min(upright.1 / target.1.max(1)) / 2;
        let mut raster = Self { pixels: RgbaImage::new(0, 0), is_opaque: true };
        raster.pixels = raster.averaged(stored, (width, height), layout, factor.max(1));
        raster.turn(orientation);
        raster
    }

    /// Each pixel is the mean of a square of `factor` by `factor`.
    fn averaged(&mut self, stored: &[u8], (width, height): Size, layout: Layout, factor: u32) -> RgbaImage {
        let row = width as usize * layout.bytes();
        RgbaImage::from_fn(width.div_ceil(factor), height.div_ceil(factor), |x, y| {
            let (left, top) = (x * factor, y * factor);
            let (right, bottom) = ((left + factor).min(width), (top + factor).min(height));
            let mut sums = [0u64; 4];
            for line in top..bottom {
                let start = line as usize * row;
                let part =
                    &stored[start + left as usize * layout.bytes()..start + right as usize * layout.bytes()];
                for pixel in part.chunks_exact(layout.bytes()) {
                    let [colours @ .., opacity] = layout.rgba(pixel);
                    for (sum, colour) in sums.iter_mut().zip(colours) {
                        *sum += u64::from(colour) * u64::from(opacity);
                    }
                    sums[3] += u64::from(opacity);
                }
            }
            let count = u64::from(right - left) * u64::from(bottom - top);
            self.is_opaque &= sums[3] == count * 255;
            let mean = |sum: u64, of: u64| u8::try_from((sum + of / 2) / of).unwrap_or(u8::MAX);
            let colour = |index: usize| mean(sums[index], count * 255);
            image::Rgba([colour(0), colour(1), colour(2), mean(sums[3], count)])
        })
    }

    fn turn(&mut self, orientation: Orientation) {
        let flipped = |mut pixels: RgbaImage| {
            imageops::flip_horizontal_in_place(&mut pixels);
            pixels
        };
        self.pixels = match orientation {
            Orientation::NoTransforms => return,
            Orientation::Rotate90 => imageops::rotate90(&self.pixels),
            Orientation::Rotate180 => imageops::rotate180(&self.pixels),
            Orientation::Rotate270 => imageops::rotate270(&self.pixels),
            Orientation::FlipHorizontal => return imageops::flip_horizontal_in_place(&mut self.pixels),
            Orientation::FlipVertical => return imageops::flip_vertical_in_place(&mut self.pixels),
            Orientation::Rotate90FlipH => flipped(imageops::rotate90(&self.pixels)),
            Orientation::Rotate270FlipH => flipped(imageops::rotate270(&self.pixels)),
        };
    }

    pub(crate) fn size(&self) -> Size {
        self.pixels.dimensions()
    }

    /// The same picture at another size.
    pub(crate) fn resized(&self, (width, height): Size) -> Self {
        let pixels = imageops::resize(&self.pixels, width, height, FilterType::Lanczos3);
        Self { pixels, is_opaque: self.is_opaque }
    }

    /// Whether all pixels are opaque.
    pub(crate) fn is_opaque(&self) -> bool {
        self.is_opaque
    }

    /// Red, green, blue and opacity, as files store them.
    pub(crate) fn rgba(&self) -> Vec<u8> {
        let unmultiplied = |pixel: &image::Rgba<u8>| {
            let [red, green, blue, opacity] = pixel.0;
            let colour = |value: u8| match opacity {
                0 => 0,
                255 => value,
                _ => {
                    let colour = (u32::from(value) * 255 + u32::from(opacity) / 2) / u32::from(opacity);
                    u8::try_from(colour).unwrap_or(u8::MAX)
                }
            };
            [colour(red), colour(green), colour(blue), opacity]
        };
        self.pixels.pixels().flat_map(unmultiplied).collect()
    }

    /// Red, green and blue, on white where pixels are transparent.
    pub(crate) fn rgb(&self) -> Vec<u8> {
        let on_white = |pixel: &image::Rgba<u8>| {
            let [colours @ .., opacity] = pixel.0;
            colours.map(|colour| colour.saturating_add(255 - opacity))
        };
        self.pixels.pixels().flat_map(on_white).collect()
    }
}
