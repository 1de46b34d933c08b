//! The limits of an image's size, and the sizes to try.

/// The most pixels in each direction.
const MAX_SIDE: u32 = 2000;

/// Base64 must be shorter than this, in bytes: 4.5 MiB.
const MAX_BASE64: usize = 4_718_592;

/// Width and height.
pub(crate) type Size = (u32, u32);

/// Whether both sides are small enough.
pub(crate) fn is_small((width, height): Size) -> bool {
    width <= MAX_SIDE && height <= MAX_SIDE
}

/// Whether that many bytes are few enough in base64.
pub(crate) fn is_light(bytes: usize) -> bool {
    bytes.div_ceil(3) * 4 < MAX_BASE64
}

/// The largest size of the same shape that is small enough.
pub(crate) fn largest((width, height): Size) -> Size {
    let (mut width, mut height) = (width, height);
    if width > MAX_SIDE {
        height = scaled(height, MAX_SIDE, width);
        width = MAX_SIDE;
    }
    if height > MAX_SIDE {
        width = scaled(width, MAX_SIDE, height);
        height = MAX_SIDE;
    }
    (width, height)
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
        assert!(is_light(3_538_941));
        assert!(!is_light(3_538_942));
    }

    proptest! {
        #[test]
        fn every_size_becomes_small(width in 1u32..=u32::MAX, height in 1u32..=u32::MAX) {
            let (small_width, small_height) = largest((width, height));
            prop_assert!(is_small((small_width, small_height)));
            prop_assert!(small_width > 0 && small_height > 0);
            prop_assert!(small_width <= width && small_height <= height);
        }
    }
}
