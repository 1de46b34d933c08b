//! The limits of an image's size, and the sizes to try.

/// Width and height.
pub(crate) type Size = (u32, u32);

/// The limits of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The most pixels in each direction.
    pub(crate) sides: Size,
    /// Base64 must be shorter than this, in bytes.
    pub(crate) base64: usize,
    /// The JPEG quality that is tried first.
    pub(crate) quality: u8,
}

impl Default for Limits {
    /// 2000 by 2000 pixels, in 4.5 MiB of base64.
    fn default() -> Self {
        Self { sides: (2000, 2000), base64: 4_718_592, quality: 80 }
    }
}

impl Limits {
    /// Whether both sides are small enough.
    pub(crate) fn is_small(&self, (width, height): Size) -> bool {
        width <= self.sides.0 && height <= self.sides.1
    }

    /// Whether that many bytes are few enough in base64.
    pub(crate) fn is_light(&self, bytes: usize) -> bool {
        bytes.div_ceil(3) * 4 < self.base64
    }

    /// The largest size of the same shape that is small enough.
    pub(crate) fn largest(&self, (width, height): Size) -> Size {
        let (mut width, mut height) = (width, height);
        let (max_width, max_height) = self.sides;
        if width > max_width {
            height = scaled(height, max_width, width);
            width = max_width;
        }
        if height > max_height {
            width = scaled(width, max_height, height);
            height = max_height;
        }
        (width, height)
    }
}

/// The next smaller size; `None` after a single pixel.
pub(crate) fn smaller((width, height): Size) -> Option<Size> {
    let three_quarters = |side: u32| (side - side.div_ceil(4)).max(1);
    ((width, height) != (1, 1)).then(|| (three_quarters(width), three_quarters(height)))
}

/// `side * to / from`, rounded, at least 1.
fn scaled(side: u32, to: u32, from: u32) -> u32 {
    let scaled = (u64::from(side) * u64::from(to) + u64::from(from) / 2) / u64::from(from);
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn largest(size: Size) -> Size {
        Limits::default().largest(size)
    }

    #[test]
    fn the_longer_side_decides() {
        assert_eq!(largest((2000, 2000)), (2000, 2000));
        assert_eq!(largest((2001, 1)), (2000, 1));
        assert_eq!(largest((4000, 3000)), (2000, 1500));
        assert_eq!(largest((3000, 4000)), (1500, 2000));
        assert_eq!(largest((60_000, 3)), (2000, 1));
        assert_eq!(largest((3333, 5)), (2000, 3));
    }

    #[test]
    fn sizes_shrink_to_one_pixel_and_end() {
        let sizes: Vec<Size> = std::iter::successors(Some((9, 2)), |size| smaller(*size)).collect();
        assert_eq!(sizes, [(9, 2), (6, 1), (4, 1), (3, 1), (2, 1), (1, 1)]);
    }

    #[test]
    fn base64_counts_with_its_padding() {
        assert!(Limits::default().is_light(3_538_941));
        assert!(!Limits::default().is_light(3_538_942));
    }

    proptest! {
        #[test]
        fn every_size_becomes_small(
            width in 1u32..=u32::MAX, height in 1u32..=u32::MAX, max_width in 1u32..9000, max_height in 1u32..9000,
        ) {
            let limits = Limits { sides: (max_width, max_height), ..Limits::default() };
            let (small_width, small_height) = limits.largest((width, height));
            prop_assert!(limits.is_small((small_width, small_height)));
            prop_assert!(small_width > 0 && small_height > 0);
            prop_assert!(small_width <= width && small_height <= height);
        }
    }
}
