//! Images for tests.

use std::io::Cursor;

use image::{
    ExtendedColorType, ImageEncoder, Rgb, RgbImage,
    codecs::{bmp::BmpEncoder, gif::GifEncoder, jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
};

/// A picture with red, green, blue and white quarters: top left, top right, bottom left, bottom right.
pub(crate) fn quarters(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => Rgb([255, 0, 0]),
        (false, true) => Rgb([0, 255, 0]),
        (true, false) => Rgb([0, 0, 255]),
        (false, false) => Rgb([255, 255, 255]),
    })
}

/// A picture that does not compress, the same each time.
pub(crate) fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    RgbImage::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [red, green, blue, ..] = state.to_le_bytes();
        Rgb([red, green, blue])
    })
}

pub(crate) fn png(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(picture, PngEncoder::new(&mut bytes));
    bytes
}

pub(crate) fn jpeg(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(picture, JpegEncoder::new_with_quality(&mut bytes, 95));
    bytes
}

pub(crate) fn webp(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(picture, WebPEncoder::new_lossless(&mut bytes));
    bytes
}

pub(crate) fn bmp(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    write(picture, BmpEncoder::new(&mut bytes));
    bytes.into_inner()
}

/// An animation of two pictures; the second is black.
pub(crate) fn gif(picture: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (width, height) = picture.dimensions();
    let mut encoder = GifEncoder::new(&mut bytes);
    for picture in [picture, &RgbImage::new(width, height)] {
        encoder.encode(picture, width, height, ExtendedColorType::Rgb8).unwrap();
    }
    drop(encoder);
    bytes
}

fn write(picture: &RgbImage, encoder: impl ImageEncoder) {
    let (width, height) = picture.dimensions();
    encoder.write_image(picture, width, height, ExtendedColorType::Rgb8).unwrap();
}

/// A JPEG with an orientation tag, from 1 to 8.
pub(crate) fn jpeg_with_orientation(picture: &RgbImage, orientation: u8) -> Vec<u8> {
    let mut tiff = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01".to_vec();
    tiff.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]);
    let mut bytes = jpeg(picture);
    let length = u16::try_from(tiff.len() + 2).unwrap().to_be_bytes();
    let segment = [&[0xff, 0xe1][..], &length, &tiff].concat();
    bytes.splice(2..2, segment);
    bytes
}

/// A PNG that claims any size: its header, and pixels that end at once.
pub(crate) fn png_that_claims(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat();
    // The smallest zlib stream: empty, with its checksum.
    for (kind, data) in [(b"IHDR", &header[..]), (b"IDAT", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]), (b"IEND", &[])] {
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        let checked = [&kind[..], data].concat();
        bytes.extend(&checked);
        bytes.extend(crc32(&checked).to_be_bytes());
    }
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}
