//! What holds for the body of every answer, whatever the wire.

use crate::Delta;
#[cfg(test)]
use crate::http::{Decoder, Wire};

#[cfg(test)]
/// Pieces of every size up to this are tried, in bytes: one of a byte cuts everywhere.
const LARGEST_PIECE: usize = 16;

#[cfg(test)]
/// The deltas of a body that comes in these pieces, and whether the answer had all of its content before the end.
fn decode<'a, W: Wire>(
    mut decoder: Decoder<W>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, bool) {
    let mut deltas = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut deltas);
    }
    let has_all_content = decoder.is_finished() || decoder.has_all_content();
    if !decoder.is_finished() {
        decoder.end(&mut deltas);
    }
    assert!(decoder.is_finished());
    (deltas, has_all_content)
}

#[cfg(test)]
/// The deltas are the same however the body is cut into pieces. Wherever it breaks off, the answer ends in order: once,
/// with all of its blocks sealed, and as a failure unless nothing of its content is missing.
pub(crate) fn check_body<W: Wire>(name: &str, body: &[u8], decoder: impl Fn() -> Decoder<W>) {
    let (whole, _) = decode(decoder(), [body]);
    check_order(name, &whole);
    for size in 1..=LARGEST_PIECE {
        assert_eq!(decode(decoder(), body.chunks(size)).0, whole, "{name}, in pieces of {size} bytes");
    }
    for cut in 0..body.len() {
        let (start, rest) = body.split_at(cut);
        assert_eq!(decode(decoder(), [start, rest]).0, whole, "{name}, cut at {cut}");
    }
    for cut in 0..body.len() {
        let (start, rest) = body.split_at(cut);
        let (broken, _) = decode(decoder(), [start]);
        check_order(&format!("{name}, the first {cut} bytes"), &broken);
        if matches!(broken.last(), Some(Delta::Done { .. })) && !rest.iter().all(u8::is_ascii_whitespace) {
            // The event that ends the answer may lack its line break.
            let (_, has_all_content) = decode(decoder(), [start, b"\n\n"]);
            assert!(has_all_content, "{name}: complete after {cut} bytes");
        }
    }
}

/// The order that [`Delta`] allows, with every block sealed at the end.
pub(crate) fn check_order(what: &str, deltas: &[Delta]) {
    let mut open = Vec::new();
    for (place, delta) in deltas.iter().enumerate() {
        match delta {
            Delta::Open { index, .. } => {
                assert_eq!(*index, open.len(), "{what}: {deltas:?}");
                open.push(true);
            }
            Delta::Extend { index, .. } => assert!(open[*index], "{what}: {deltas:?}"),
            Delta::Seal { index, .. } => {
                assert!(std::mem::replace(&mut open[*index], false), "{what}: {deltas:?}");
            }
            Delta::Done { .. } | Delta::Failed { .. } => {
                assert_eq!(place + 1, deltas.len(), "{what}: {deltas:?}");
            }
            Delta::Usage(_) | Delta::ResponseId(_) | Delta::ResponseModel(_) => {}
            Delta::Started | Delta::Stalled(_) => panic!("{what}: {deltas:?}"),
        }
    }
    assert!(matches!(deltas.last(), Some(Delta::Done { .. } | Delta::Failed { .. })), "{what}: {deltas:?}");
    assert!(!open.contains(&true), "{what}: {deltas:?}");
}
