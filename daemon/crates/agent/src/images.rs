//! Images of a message, made such that a model can take them. One that no model takes would make the provider refuse the message,
//! and every later request with it.

use std::borrow::Cow;

use agentd_protocol::message::ImageContent;
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};

/// What stands in the message for an image that was left out.
pub(crate) const OMITTED: &str = "[Image omitted: it is no PNG, JPEG, GIF or WebP image in base64.]";

/// Takes base64 as programs write it: with its padding or without, whatever the last bits are.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The image with plain base64, and with the media type that its bytes have; `None` when its bytes are no image that models
/// take. A `data:` URL, line breaks, the alphabet of URLs and a missing padding are understood.
pub(crate) fn usable(image: ImageContent) -> Option<ImageContent> {
    if let Ok(bytes) = BASE64_STANDARD.decode(&image.data) {
        return media_type(&bytes).map(|kind| ImageContent { data: image.data, mime_type: kind.to_owned() });
    }
    let data = match image.data.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,")?.1,
        None => &image.data,
    };
    let bytes = LENIENT.decode(plain(data).as_bytes()).ok()?;
    let kind = media_type(&bytes)?;
    Some(ImageContent { data: BASE64_STANDARD.encode(&bytes), mime_type: kind.to_owned() })
}

/// Without line breaks, in the usual alphabet.
fn plain(data: &str) -> Cow<'_, str> {
    if !data.contains(|letter: char| letter.is_ascii_whitespace() || matches!(letter, '-' | '_')) {
        return Cow::Borrowed(data);
    }
    let letters = data.chars().filter(|letter| !letter.is_ascii_whitespace());
    letters
        .map(|letter| match letter {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect::<String>()
        .into()
}

/// By the first bytes, whatever the sender says.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    /// Bytes whose base64 has a `/`, and in the alphabet of URLs a `_`.
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0rest";

    fn image(data: &str) -> ImageContent {
        ImageContent { data: data.to_owned(), mime_type: "image/png".to_owned() }
    }

    fn check(data: &str, expected: Option<&[u8]>) {
        let found = usable(image(data)).map(|image| BASE64_STANDARD.decode(image.data).unwrap());
        assert_eq!(found.as_deref(), expected, "{data}");
    }

    #[test]
    fn whatever_can_be_read_is_taken() {
        let data = BASE64_STANDARD.encode(JPEG);
        check(&data, Some(JPEG));
        check(data.trim_end_matches('='), Some(JPEG));
        check(&format!("data:image/jpeg;base64,{data}"), Some(JPEG));
        check(&format!("{}\r\n{}\n", &data[..4], &data[4..]), Some(JPEG));
        check(&BASE64_URL_SAFE_NO_PAD.encode(JPEG), Some(JPEG));
    }

    #[test]
    fn what_is_no_image_is_not() {
        for data in ["", "!!!", "data:image/png;base64,", "data:image/png,x", "data:", "/9j", "é"] {
            check(data, None);
        }
        for bytes in [&b"hello"[..], b"BM", b"<svg/>", b"RIFF\0\0\0\0WAVE"] {
            check(&BASE64_STANDARD.encode(bytes), None);
        }
    }

    #[test]
    fn the_bytes_say_what_it_is() {
        for (start, kind) in [
            (JPEG, "image/jpeg"),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\0\0\0\0WEBP", "image/webp"),
        ] {
            assert_eq!(usable(image(&BASE64_STANDARD.encode(start))).unwrap().mime_type, kind);
        }
    }

    proptest! {
        #[test]
        fn an_image_in_plain_base64_stays_as_it_is(rest: Vec<u8>) {
            let data = BASE64_STANDARD.encode([JPEG, &rest].concat());
            prop_assert_eq!(usable(image(&data)).unwrap().data, data);
        }

        #[test]
        fn any_text_can_be_asked_about(data in "(data:[a-z/]{0,9};base64,)?[A-Za-z0-9+/=_\\- é]{0,30}") {
            if let Some(image) = usable(image(&data)) {
                prop_assert!(BASE64_STANDARD.decode(image.data).is_ok());
            }
        }
    }
}
