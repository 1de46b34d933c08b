use image::{Rgb, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::*;
use crate::testing::{bmp, gif, jpeg, jpeg_with_orientation, noise, png, png_that_claims, quarters, webp};

fn prepare(bytes: &[u8], wish: Wish) -> Result<Prepared, Omission> {
    let job = Job::of_bytes(bytes.to_vec(), wish)?;
    job.memory()?;
    job.run(|| false)
}

fn fit(bytes: &[u8]) -> Prepared {
    prepare(bytes, Wish::Fit(Limits::default())).unwrap()
}

fn decoded(image: &ImageContent) -> RgbImage {
    let (bytes, _) = content::decode(&image.data).unwrap();
    let kind = ImageKind::sniff(&bytes).unwrap();
    assert_eq!(kind.mime_type(), image.mime_type);
    image::load_from_memory(&bytes).unwrap().to_rgb8()
}

/// Whether the quarters are where they belong, whatever became of their edges.
fn assert_upright(image: &RgbImage) {
    let (width, height) = image.dimensions();
    let wanted = [(1, 1, [255, 0, 0]), (3, 1, [0, 255, 0]), (1, 3, [0, 0, 255]), (3, 3, [255, 255, 255])];
    for (x, y, colour) in wanted {
        let Rgb(found) = *image.get_pixel(width * x / 4, height * y / 4);
        let near = found.iter().zip(colour).all(|(found, wanted): (&u8, u8)| found.abs_diff(wanted) < 12);
        assert!(near, "{found:?} at {x}/4, {y}/4 of {width}x{height}, not {colour:?}");
    }
}

#[test]
fn what_fits_stays_as_it_is() {
    let picture = quarters(20, 10);
    for bytes in [png(&picture), jpeg(&picture), webp(&picture), gif(&picture)] {
        for wish in [Wish::Fit(Limits::default()), Wish::Convert] {
            let prepared = prepare(&bytes, wish).unwrap();
            assert_eq!(content::decode(&prepared.image.data), Some((bytes.clone(), true)));
            assert_eq!(prepared.hints, [""; 0]);
        }
    }
    let edge = png(&RgbImage::new(2000, 2000));
    assert_eq!(fit(&edge).image.data, content::encode(&edge));
}

#[test]
fn what_is_too_large_is_made_smaller_and_says_so() {
    let picture = quarters(2500, 1000);
    for bytes in [png(&picture), jpeg(&picture), webp(&picture), gif(&picture)] {
        let prepared = fit(&bytes);
        let image = decoded(&prepared.image);
        assert_eq!(image.dimensions(), (2000, 800));
        assert_upright(&image);
        assert_eq!(
            prepared.hints,
            [
                "[Image: original 2500x1000, displayed at 2000x800. Multiply coordinates by 1.25 to map to original image.]"
            ]
        );
        // Unless nobody wants that.
        assert_eq!(prepare(&bytes, Wish::Convert).unwrap().image.data, content::encode(&bytes));
    }
    // So small in the end that whole squares are put together first.
    let prepared = fit(&png(&quarters(9001, 30)));
    assert_eq!(decoded(&prepared.image).dimensions(), (2000, 7));
    assert!(prepared.hints[0].contains("by 4.50 to"), "{prepared:?}");
}

#[test]
fn bitmaps_are_converted() {
    for wish in [Wish::Fit(Limits::default()), Wish::Convert] {
        let prepared = prepare(&bmp(&quarters(20, 10)), wish).unwrap();
        assert_eq!(prepared.image.mime_type, "image/png");
        assert_eq!(prepared.hints, ["[Image converted from image/bmp to image/png.]"]);
        assert_eq!(decoded(&prepared.image), quarters(20, 10));
    }
    let large = bmp(&quarters(2002, 4));
    assert_eq!(
        fit(&large).hints,
        [
            "[Image converted from image/bmp to image/png.]",
            "[Image: original 2002x4, displayed at 2000x4. Multiply coordinates by 1.00 to map to original image.]"
        ]
    );
    assert_eq!(decoded(&prepare(&large, Wish::Convert).unwrap().image).dimensions(), (2002, 4));
}

#[test]
fn what_png_cannot_make_light_becomes_a_jpeg() {
    let prepared = fit(&png(&noise(1500, 1000)));
    assert_eq!(prepared.image.mime_type, "image/jpeg");
    assert_eq!(decoded(&prepared.image).dimensions(), (1500, 1000));
    // The size is as it was, so there is nothing to say.
    assert_eq!(prepared.hints, [""; 0]);
}

#[test]
fn every_orientation_is_made_upright() {
    let upright = quarters(2400, 600);
    for orientation in 1..=8 {
        let stored = as_stored(&upright, orientation);
        let prepared = fit(&jpeg_with_orientation(&stored, orientation));
        let image = decoded(&prepared.image);
        assert_eq!(image.dimensions(), (2000, 500), "orientation {orientation}");
        assert_upright(&image);
        assert!(prepared.hints[0].contains("original 2400x600, displayed at 2000x500."), "{prepared:?}");
    }
}

/// How a camera stores `upright`, that notes this orientation: as the standard names where row 0 and column 0 are.
fn as_stored(upright: &RgbImage, orientation: u8) -> RgbImage {
    let (width, height) = upright.dimensions();
    let size = if orientation < 5 { (width, height) } else { (height, width) };
    RgbImage::from_fn(size.0, size.1, |x, y| {
        let (right, bottom) = (size.0 - 1 - x, size.1 - 1 - y);
        let (x, y) = match orientation {
            1 => (x, y),
            2 => (right, y),
            3 => (right, bottom),
            4 => (x, bottom),
            5 => (y, x),
            6 => (bottom, x),
            7 => (bottom, right),
            _ => (y, right),
        };
        *upright.get_pixel(x, y)
    })
}

#[test]
fn what_cannot_be_seen_colours_nothing() {
    // Green that is transparent, beside red that is not.
    let picture =
        RgbaImage::from_fn(
            2100,
            2,
            |x, _| if x % 2 == 0 { Rgba([255, 0, 0, 255]) } else { Rgba([0, 255, 0, 0]) },
        );
    let mut bytes = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    image::ImageEncoder::write_image(encoder, &picture, 2100, 2, image::ExtendedColorType::Rgba8).unwrap();
    let prepared = fit(&bytes);
    let (bytes, _) = content::decode(&prepared.image.data).unwrap();
    let shown = image::load_from_memory(&bytes).unwrap().to_rgba8();
    for Rgba([red, green, _, opacity]) in shown.pixels().copied() {
        assert_eq!(green, 0);
        assert!(red == 255 || opacity == 0, "{red} {opacity}");
    }
}

#[test]
fn pixels_of_every_kind_are_understood() {
    use image::{DynamicImage, ImageFormat};
    let picture = DynamicImage::ImageRgb8(quarters(2100, 100));
    let kinds = [
        DynamicImage::ImageLuma8(picture.to_luma8()),
        DynamicImage::ImageLumaA8(picture.to_luma_alpha8()),
        DynamicImage::ImageRgba8(picture.to_rgba8()),
        DynamicImage::ImageLuma16(picture.to_luma16()),
        DynamicImage::ImageLumaA16(picture.to_luma_alpha16()),
        DynamicImage::ImageRgb16(picture.to_rgb16()),
        DynamicImage::ImageRgba16(picture.to_rgba16()),
    ];
    for kind in kinds {
        let mut bytes = std::io::Cursor::new(Vec::new());
        kind.write_to(&mut bytes, ImageFormat::Png).unwrap();
        let image = decoded(&fit(&bytes.into_inner()).image);
        let expected = kind.to_rgb8();
        for (x, y) in [(500, 20), (1500, 20), (500, 70), (1500, 70)] {
            let (Rgb(found), Rgb(wanted)) = (*image.get_pixel(x * 20 / 21, y), *expected.get_pixel(x, y));
            let is_near = found.iter().zip(wanted).all(|(found, wanted)| found.abs_diff(wanted) <= 1);
            assert!(is_near, "{found:?} at {x}, {y} of {:?}, not {wanted:?}", kind.color());
        }
    }
}

#[test]
fn what_is_damaged_or_no_image_is_left_out() {
    let check = |bytes: &[u8], expected| {
        assert_eq!(prepare(bytes, Wish::Fit(Limits::default())).unwrap_err(), expected)
    };
    check(b"hello", Omission::NoImage);
    check(b"", Omission::NoImage);
    check(b"<svg/>", Omission::NoImage);
    for bytes in [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        b"GIF89a".to_vec(),
        b"RIFF\0\0\0\0WEBPVP8 ".to_vec(),
        b"\xff\xd8\xff\xe0rest".to_vec(),
    ] {
        check(&bytes, Omission::Unconvertible);
    }
    let picture = noise(200, 200);
    for bytes in [png(&picture), gif(&picture), webp(&picture), bmp(&picture)] {
        check(&bytes[..bytes.len() / 3], Omission::Unconvertible);
    }
    // Of a JPEG, viewers show what came; so it needs no more than a start of its pixels.
    check(&jpeg(&picture)[..200], Omission::Unconvertible);
}

#[test]
fn pixel_bombs_are_not_even_unpacked() {
    for (width, height) in [(60_000, 60_000), (u32::MAX >> 1, 2), (10_001, 10_000), (0, 5)] {
        let bomb = png_that_claims(width, height);
        let job = Job::of_bytes(bomb, Wish::Fit(Limits::default())).unwrap();
        assert_eq!(job.memory(), Err(Omission::Unconvertible), "{width}x{height}");
    }
    // Within the bounds, what it claims is asked for, and is not there.
    assert_eq!(
        prepare(&png_that_claims(3000, 3000), Wish::Fit(Limits::default())).unwrap_err(),
        Omission::Unconvertible
    );
}

/// 81 megapixels in 79 kilobytes: large, but within the bounds.
#[test]
fn a_picture_that_is_packed_well_is_shown() {
    let mut bytes = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    let pixels = vec![7u8; 9000 * 9000];
    image::ImageEncoder::write_image(encoder, &pixels, 9000, 9000, image::ExtendedColorType::L8).unwrap();
    let image = decoded(&fit(&bytes).image);
    assert_eq!(image.dimensions(), (2000, 2000));
    assert!(image.pixels().all(|pixel| *pixel == Rgb([7, 7, 7])));
}

#[test]
fn base64_is_kept_where_it_is_plain() {
    let data = content::encode(&png(&quarters(4, 4)));
    for given in [data.clone(), format!("data:image/gif;base64,{data}"), format!("{data}\n")] {
        let prepared = Job::of_base64(given, Wish::Fit(Limits::default())).unwrap().run(|| false).unwrap();
        assert_eq!(prepared.image, ImageContent { data: data.clone(), mime_type: "image/png".into() });
    }
    for given in ["%%%", "aGVsbG8="] {
        assert_eq!(Job::of_base64(given.into(), Wish::Fit(Limits::default())).err(), Some(Omission::NoImage));
    }
}

#[test]
fn work_that_nobody_waits_for_ends() {
    let job = Job::of_bytes(png(&quarters(2500, 10)), Wish::Fit(Limits::default())).unwrap();
    assert_eq!(job.run(|| true), Err(Omission::TooLarge));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_picture_fits_in_the_end(
        width in prop_oneof![1u32..40, 1900u32..2600, 5000u32..12_000],
        height in 1u32..60,
        swapped: bool,
        kind in 0..4usize,
    ) {
        let (width, height) = if swapped { (height, width) } else { (width, height) };
        let picture = noise(width, height);
        let bytes = [png, jpeg, bmp, webp][kind](&picture);
        let prepared = fit(&bytes);
        let image = decoded(&prepared.image);
        prop_assert!(Limits::default().is_small(image.dimensions()));
        prop_assert!(prepared.image.data.len() < 4_718_592);
        let is_smaller = prepared.hints.iter().any(|hint| hint.contains("displayed at"));
        prop_assert_eq!(is_smaller, image.dimensions() != (width, height));
        // What was prepared once is not changed again.
        prop_assert_eq!(fit(&content::decode(&prepared.image.data).unwrap().0), Prepared { hints: Vec::new(), ..prepared });
    }

    #[test]
    fn damage_is_survived(at in 0usize..2000, byte: u8, kind in 0..5usize, cut in 0usize..3000) {
        let mut bytes = [png, jpeg, bmp, webp, gif][kind](&quarters(40, 30));
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length.saturating_sub(cut % length));
        let _ = prepare(&bytes, Wish::Fit(Limits::default()));
        let _ = prepare(&bytes, Wish::Convert);
    }
}
