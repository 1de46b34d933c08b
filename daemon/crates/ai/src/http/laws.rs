//! Laws for the body of every answer, whatever the API.

use crate::Delta;
#[cfg(test)]
use crate::http::{AnswerDecoder, BodyDecoder};

#[cfg(test)]
/// Pieces of every size up to this are tried, in bytes: one of a byte cuts everywhere.
const LARGEST_PIECE: usize = 16;

#[cfg(test)]
/// Ends the answer, unless its body has said its end. Also says whether it had all of its content before.
fn end<W: AnswerDecoder>(mut decoder: BodyDecoder<W>, deltas: &mut Vec<Delta>) -> bool {
    let has_all_content = decoder.is_finished() || decoder.has_all_content();
    if !decoder.is_finished() {
        decoder.end(deltas);
    }
    assert!(decoder.is_finished());
    has_all_content
}

#[cfg(test)]
/// The deltas of a body that comes in these pieces.
fn decode<'a, W: AnswerDecoder>(
    mut decoder: BodyDecoder<W>,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Delta> {
    let mut deltas = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut deltas);
    }
    end(decoder, &mut deltas);
    deltas
}

#[cfg(test)]
/// The deltas are the same however the body is cut into pieces. Wherever it breaks off, the answer ends in order: once,
/// with all of its blocks sealed, and as a failure unless nothing of its content is missing.
pub(crate) fn check_body<W: AnswerDecoder + Clone>(
    name: &str,
    body: &[u8],
    new: impl Fn() -> BodyDecoder<W>,
) {
    let whole = decode(new(), [body]);
    check_order(name, &whole);
    for size in 2..=LARGEST_PIECE {
        assert_eq!(decode(new(), body.chunks(size)), whole, "{name}, in pieces of {size} bytes");
    }
    // One decoder takes the body byte by byte. Copies of it, made at each byte, take the rest at once, or nothing more.
    let (mut decoder, mut deltas) = (new(), Vec::new());
    for cut in 0..body.len() {
        let rest = &body[cut..];
        let mut complete = deltas.clone();
        let mut copy = decoder.clone();
        copy.feed(rest, &mut complete);
        end(copy, &mut complete);
        assert_eq!(complete, whole, "{name}, cut at {cut}");

        let mut broken = deltas.clone();
        end(decoder.clone(), &mut broken);
        check_order(&format!("{name}, the first {cut} bytes"), &broken);
        if matches!(broken.last(), Some(Delta::Done { .. })) && !rest.iter().all(u8::is_ascii_whitespace) {
            // The event that ends the answer may lack its line break.
            let (mut copy, mut ignored) = (decoder.clone(), Vec::new());
            copy.feed(b"\n\n", &mut ignored);
            assert!(end(copy, &mut ignored), "{name}: complete after {cut} bytes");
        }
        decoder.feed(&body[cut..=cut], &mut deltas);
    }
    end(decoder, &mut deltas);
    assert_eq!(deltas, whole, "{name}, byte by byte");
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
            Delta::Usage(_) | Delta::ResponseId(_) | Delta::ResponseModel(_) | Delta::Whole(_) => {}
            Delta::Started | Delta::Stalled(_) => panic!("{what}: {deltas:?}"),
        }
    }
    assert!(matches!(deltas.last(), Some(Delta::Done { .. } | Delta::Failed { .. })), "{what}: {deltas:?}");
    assert!(!open.contains(&true), "{what}: {deltas:?}");
}
