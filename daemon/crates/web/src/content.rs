//! The kind of what a server sent, by its media type and its first bytes. Pure.

use agentd_protocol::image_kind::ImageKind;

use crate::archive::Packed;

/// The kind of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    Markdown,
    Json,
    XmlFeed,
    Text,
    Image,
    Pdf,
    /// An archive, or a document that is one.
    Packed(Packed),
    Binary,
}

/// Bytes that are looked at.
const LOOKED_AT: usize = 4096;

/// The kind of a body.
pub(crate) fn kind(media_type: &str, body: &[u8]) -> Kind {
    if ImageKind::sniff(body).is_some() {
        return Kind::Image;
    }
    let start = &body[..body.len().min(LOOKED_AT)];
    if start.starts_with(b"%PDF-") || media_type == "application/pdf" {
        return Kind::Pdf;
    }
    if let Some(packed) = Packed::sniff(start) {
        return Kind::Packed(packed);
    }
    let by_type = match media_type {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "text/markdown" | "text/x-markdown" => Some(Kind::Markdown),
        "application/json" | "text/json" => Some(Kind::Json),
        "application/rss+xml" | "application/atom+xml" | "application/rdf+xml" => Some(Kind::XmlFeed),
        "application/xml" | "text/xml" => Some(Kind::XmlFeed),
        "application/javascript"
        | "application/x-javascript"
        | "application/x-sh"
        | "application/yaml"
        | "application/toml"
        | "application/sql"
        | "application/x-yaml"
        | "application/x-ndjson" => Some(Kind::Text),
        other if other.ends_with("+json") => Some(Kind::Json),
        other if other.ends_with("+xml") && other != "image/svg+xml" => Some(Kind::XmlFeed),
        other if other.starts_with("text/") || other == "image/svg+xml" => Some(Kind::Text),
        _ => None,
    };
    let is_binary = start.contains(&0) && !start.starts_with(b"\xff\xfe") && !start.starts_with(b"\xfe\xff");
    match by_type {
        // A server that says nothing, or says that it is text of some kind.
        Some(Kind::Text)
            if looks_like_html(start) && !media_type.contains("svg") && media_type == "text/plain" =>
        {
            Kind::Text
        }
        Some(kind) if !is_binary || matches!(kind, Kind::Html) => kind,
        _ if is_binary => Kind::Binary,
        _ if looks_like_html(start) => Kind::Html,
        _ if std::str::from_utf8(start).is_ok() || media_type.is_empty() => Kind::Text,
        _ => match std::str::from_utf8(start) {
            // Cut in the middle of a character.
            Err(error) if error.error_len().is_none() => Kind::Text,
            _ => Kind::Binary,
        },
    }
}

/// Whether bytes begin like a page.
pub(crate) fn looks_like_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)])
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_type_and_bytes() {
        for (media_type, body, expected) in [
            ("text/html", &b"x"[..], Kind::Html),
            ("", b"  <!DOCTYPE html><p>", Kind::Html),
            ("application/octet-stream", b"plain words", Kind::Text),
            ("application/octet-stream", b"\x7fELF\0\0", Kind::Binary),
            ("application/zip", b"PK\x03\x04\0", Kind::Packed(Packed::Zip)),
            ("text/plain", b"a\0b", Kind::Binary),
            ("text/plain", b"<html>", Kind::Text),
            ("application/problem+json", b"{}", Kind::Json),
            ("application/atom+xml", b"<feed>", Kind::XmlFeed),
            ("text/html", b"%PDF-1.4", Kind::Pdf),
            ("text/html", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Kind::Image),
            ("image/svg+xml", b"<svg>", Kind::Text),
            ("text/plain; x", b"\xff\xfea\0", Kind::Text),
        ] {
            assert_eq!(kind(media_type, body), expected, "{media_type} {body:?}");
        }
    }
}
