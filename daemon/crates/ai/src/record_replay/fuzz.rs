//! The laws of recordings' lines; see `fuzz.rs` of the crate.

use super::format::{self, Line};

/// A line that is read is written to what reads as the same.
pub(crate) fn line(text: &str) {
    let Ok(line) = Line::parse(text) else { return };
    let written = match serde_json::to_string(&line) {
        Ok(written) => written,
        Err(error) => panic!("{error}: {line:?}"),
    };
    let again = match Line::parse(&written) {
        Ok(again) => serde_json::to_string(&again).unwrap_or_default(),
        Err(error) => panic!("{error}: {written}"),
    };
    assert_eq!(again, written);
    match line {
        Line::Chunk { text, base64, .. } => drop(format::bytes(text, base64)),
        Line::Failure(failed) => drop(failed.failure()),
        Line::Request(_) | Line::Response { .. } | Line::End { .. } => {}
    }
}

/// The bytes of a body come back.
pub(crate) fn chunk(bytes: &[u8]) {
    let line = format::chunk(1, bytes.to_vec());
    let read = serde_json::to_string(&line).and_then(|written| Line::parse(&written));
    match read {
        Ok(Line::Chunk { text, base64, .. }) => assert_eq!(format::bytes(text, base64).as_deref(), Ok(bytes)),
        other => panic!("{other:?}"),
    }
}
