use proptest::prelude::*;

use super::{png::SIGNATURE, *};

fn png(chunks: &[(&[u8; 4], usize)]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    for (kind, length) in chunks {
        bytes.extend((*length as u32).to_be_bytes());
        bytes.extend(*kind);
        bytes.extend(vec![0; length + 4]);
    }
    bytes
}

fn bmp(header: u32, planes: u16, depth: u16) -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    bytes.extend(1000u32.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend((14 + header).to_le_bytes());
    bytes.extend(header.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(planes.to_le_bytes());
    bytes.extend(depth.to_le_bytes());
    bytes
}

/// What each start is, among files of all kinds and when somebody says that it is an image.
#[test]
fn images_are_told_by_their_start() {
    use ImageKind::{Bmp, Gif, Jpeg, Png, WebP};
    let rows: &[(&[u8], Option<ImageKind>, Option<ImageKind>)] = &[
        (b"\xff\xd8\xff\xe0", Some(Jpeg), Some(Jpeg)),
        (b"\xff\xd8\xff\xf7", None, Some(Jpeg)),
        (b"\xff\xd8", None, None),
        (b"GIF87a", Some(Gif), Some(Gif)),
        (b"GIF89a..", Some(Gif), Some(Gif)),
        (b"GIF88a..", None, None),
        (b"RIFF\0\0\0\0WEBPVP8 ", Some(WebP), Some(WebP)),
        (b"RIFF\0\0\0\0WAVE", None, None),
        (b"RIFF", None, None),
        (&png(&[(b"IHDR", 13), (b"IDAT", 10)]), Some(Png), Some(Png)),
        (&png(&[(b"IHDR", 13), (b"gAMA", 4)]), Some(Png), Some(Png)),
        (&png(&[(b"IHDR", 13), (b"acTL", 8), (b"IDAT", 10)]), None, Some(Png)),
        (&png(&[(b"IHDR", 13), (b"tEXt", 40), (b"acTL", 8), (b"IDAT", 10)]), None, Some(Png)),
        (&png(&[(b"IHDR", 13), (b"IDAT", 10), (b"acTL", 8)]), Some(Png), Some(Png)),
        // An animation that is announced further back than anyone looks.
        (&png(&[(b"IHDR", 13), (b"tEXt", SNIFFED), (b"acTL", 8)]), Some(Png), Some(Png)),
        (&png(&[(b"tEXt", 13)]), None, Some(Png)),
        (SIGNATURE, None, Some(Png)),
        (&bmp(40, 1, 24), Some(Bmp), Some(Bmp)),
        (&bmp(40, 2, 24), None, None),
        (&bmp(41, 1, 24), None, None),
        (&bmp(40, 1, 7), None, None),
        (b"BM is how this text begins, and it goes on.", None, None),
        (b"<svg onload='alert(1)'>", None, None),
        (b"", None, None),
        (b"plain text", None, None),
    ];
    for (start, sniffed, signed) in rows {
        let shown = String::from_utf8_lossy(start);
        assert_eq!(ImageKind::sniff(start), *sniffed, "{shown:?}");
        assert_eq!(ImageKind::by_signature(start), *signed, "{shown:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_can_be_asked_about(
        start in prop::sample::select(vec![&b"BM"[..], SIGNATURE, b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"RIFF", b"\xff\xd8\xff", b""]),
        rest: Vec<u8>,
    ) {
        let bytes = [start, &rest].concat();
        let sniffed = ImageKind::sniff(&bytes);
        prop_assert!(sniffed.is_none() || sniffed == ImageKind::by_signature(&bytes));
    }
}
