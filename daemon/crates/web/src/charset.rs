//! Bytes of a page as text, by the encoding that the page or its server names. Pure.

use encoding_rs::{Encoding, UTF_8};

/// How far into a page its own word on its encoding is looked for.
const LOOKED_AT: usize = 2048;

/// The text of a body. `content_type` is the header; `is_markup` says whether the body may name its encoding itself.
pub(crate) fn decode(bytes: &[u8], content_type: &str, is_markup: bool) -> String {
    let named = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let named = named.or_else(|| labelled(parameter(content_type, "charset")?));
    let named = named.or_else(|| if is_markup { of_markup(bytes) } else { None });
    // What is not named is UTF-8, unless its bytes cannot be.
    let encoding = named.unwrap_or_else(|| {
        if std::str::from_utf8(&bytes[..bytes.len().min(64 << 10)]).is_ok_or_cut() {
            UTF_8
        } else {
            encoding_rs::WINDOWS_1252
        }
    });
    encoding.decode(bytes).0.into_owned()
}

trait OrCut {
    fn is_ok_or_cut(&self) -> bool;
}

impl OrCut for Result<&str, std::str::Utf8Error> {
    fn is_ok_or_cut(&self) -> bool {
        match self {
            Ok(_) => true,
            Err(error) => error.error_len().is_none(),
        }
    }
}

fn labelled(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.trim().as_bytes())
}

/// A parameter of a media type, without quotes.
pub(crate) fn parameter<'a>(content_type: &'a str, name: &str) -> Option<&'a str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// The encoding that a page says in its `meta` or its XML declaration.
fn of_markup(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]).to_ascii_lowercase();
    let declared = start.strip_prefix("<?xml").and_then(|rest| {
        let declaration = rest.split("?>").next()?;
        declaration.split_once("encoding=").map(|(_, value)| value)
    });
    let label = declared.or_else(|| {
        let meta = start
            .split("<meta")
            .skip(1)
            .find(|meta| meta.split('>').next().is_some_and(|tag| tag.contains("charset=")))?;
        meta.split_once("charset=").map(|(_, value)| value)
    })?;
    let label = label.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(['"', '\'', ' ', ';', '>', '/', '?']).unwrap_or(label.len());
    // A page that could be read so far is in no encoding of 16 bits.
    labelled(&label[..end]).map(|found| if found.is_ascii_compatible() { found } else { UTF_8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_the_server_or_the_page() {
        assert_eq!(decode(b"caf\xe9", "text/plain; charset=ISO-8859-1", false), "caf\u{e9}");
        assert_eq!(
            decode(b"<meta charset=\"windows-1251\">\xef", "text/html", true),
            "<meta charset=\"windows-1251\">\u{43f}"
        );
        assert_eq!(
            decode(b"<?xml version='1.0' encoding='latin1'?>\xe9", "", true).chars().last(),
            Some('\u{e9}')
        );
        assert_eq!(decode("\u{feff}ä".as_bytes(), "text/plain; charset=latin1", false), "ä");
        assert_eq!(decode(b"\xff\xfea\0", "text/html", true), "a");
        assert_eq!(decode("ä".as_bytes(), "text/html", true), "ä");
        assert_eq!(decode(b"\xe9t\xe9", "text/html", true), "été");
        assert_eq!(decode(b"a\xe4", "text/html; charset=nonsense", false), "a\u{fffd}");
    }
}
