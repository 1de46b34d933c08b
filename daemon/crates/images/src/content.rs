//! Decodes base64 as programs write it.

use std::borrow::Cow;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};

/// Accepts base64 with or without padding, with any trailing bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes, and whether `data` was plain base64, which need not be encoded again. Accepts a `data:` URL, line breaks,
/// the URL-safe alphabet and missing padding.
pub(crate) fn decode(data: &str) -> Option<(Vec<u8>, bool)> {
    if let Ok(bytes) = BASE64_STANDARD.decode(data) {
        return Some((bytes, true));
    }
    let data = match data.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,")?.1,
        None => data,
    };
    LENIENT.decode(plain(data).as_bytes()).ok().map(|bytes| (bytes, false))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Removes line breaks, and translates the URL-safe alphabet.
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

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    /// Bytes whose base64 has a `/`, and a `_` in the URL-safe alphabet.
    const BYTES: &[u8] = b"\xff\xd8\xff\xe0rest";

    fn check(data: &str, expected: Option<(&[u8], bool)>) {
        let decoded = decode(data);
        assert_eq!(decoded.as_ref().map(|(bytes, plain)| (&bytes[..], *plain)), expected, "{data}");
    }

    #[test]
    fn whatever_can_be_read_is_taken() {
        let data = BASE64_STANDARD.encode(BYTES);
        check(&data, Some((BYTES, true)));
        check(data.trim_end_matches('='), Some((BYTES, false)));
        check(&format!("data:image/jpeg;base64,{data}"), Some((BYTES, false)));
        check(&format!("{}\r\n{}\n", &data[..4], &data[4..]), Some((BYTES, false)));
        check(&BASE64_URL_SAFE_NO_PAD.encode(BYTES), Some((BYTES, false)));
    }

    #[test]
    fn what_is_no_base64_is_not() {
        for data in ["!!!", "data:image/png,x", "data:", "é"] {
            check(data, None);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_asked_about(data in "(data:[a-z/]{0,9};base64,)?[A-Za-z0-9+/=_\\- é]{0,30}") {
            if let Some((bytes, true)) = decode(&data) {
                prop_assert_eq!(encode(&bytes), data);
            }
        }
    }
}
