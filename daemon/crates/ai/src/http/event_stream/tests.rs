use proptest::prelude::*;

use super::*;

/// A frame with text headers, as servers write it.
pub(crate) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).unwrap());
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        block.extend_from_slice(value.as_bytes());
    }
    raw_frame(&block, payload)
}

/// An event with a JSON payload.
pub(crate) fn event(name: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    frame(&headers, payload.as_bytes())
}

/// An exception with a JSON payload.
pub(crate) fn exception(name: &str, payload: &str) -> Vec<u8> {
    let headers =
        [(":exception-type", name), (":content-type", "application/json"), (":message-type", "exception")];
    frame(&headers, payload.as_bytes())
}

fn raw_frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = PRELUDE_BYTES + headers.len() + payload.len() + CRC_BYTES;
    let mut frame = Vec::new();
    frame.extend_from_slice(&u32::try_from(total).unwrap().to_be_bytes());
    frame.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// All frames, as texts, and how reading ended.
fn read_all<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Result<(), FrameError>) {
    let mut parser = EventStreamParser::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        let fed = parser.feed(chunk, &mut |frame| {
            let payload = String::from_utf8_lossy(frame.payload);
            frames.push(format!("{:?} {} {:?} {payload}", frame.kind, frame.name, frame.error_message));
        });
        if fed.is_err() {
            return (frames, fed);
        }
    }
    assert_eq!(parser.has_frames(), !frames.is_empty());
    (frames, Ok(()))
}

#[test]
fn frames_are_events_exceptions_and_errors() {
    let error = [(":message-type", "error"), (":error-code", "Oops"), (":error-message", "went wrong")];
    let body =
        [event("metadata", "{}"), exception("throttlingException", "{1}"), frame(&error, b"")].concat();
    let expected = [
        "Event metadata None {}",
        "Exception throttlingException None {1}",
        "Exception Oops Some(\"went wrong\") ",
    ];
    assert_eq!(read_all([&body[..]]), (expected.map(str::to_owned).to_vec(), Ok(())));
}

/// The example of the specification's test suite: a payload, and no headers at all.
#[test]
fn a_frame_of_the_specification() {
    let bytes = b"\0\0\0\x1d\0\0\0\0\xfd\x52\x8c\x5a{'foo':'bar'}\xc3\x65\x39\x36";
    assert_eq!(read_all([&bytes[..]]), (vec!["Event  None {'foo':'bar'}".to_owned()], Ok(())));
    let empty = b"\0\0\0\x10\0\0\0\0\x05\xc2\x48\xeb\x7d\x98\xc8\xff";
    assert_eq!(read_all([&empty[..]]), (vec!["Event  None ".to_owned()], Ok(())));
}

#[test]
fn headers_of_every_type_are_passed_over() {
    let mut headers = Vec::new();
    for (kind, size) in [(0_u8, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
        headers.extend_from_slice(&[1, b'h', kind]);
        headers.extend(std::iter::repeat_n(0xff, size));
    }
    headers.extend_from_slice(&[1, b'b', 6, 0, 2, 0xff, 0xff]);
    headers.extend_from_slice(b"\x0b:event-type\x07\x00\x01e");
    assert_eq!(read_all([&raw_frame(&headers, b"p")[..]]), (vec!["Event e None p".to_owned()], Ok(())));
}

#[test]
fn what_cannot_be_right_is_refused() {
    let check = |bytes: &[u8], expected: FrameError| {
        assert_eq!(read_all([bytes]), (Vec::new(), Err(expected)), "{bytes:?}");
        assert_eq!(read_all(bytes.chunks(1)), (Vec::new(), Err(expected)), "{bytes:?}");
    };
    let good = event("e", "{}");
    let mut flipped = good.clone();
    flipped[8] ^= 1;
    check(&flipped, FrameError::PreludeChecksum);
    let mut flipped = good;
    let last = flipped.len() - 1;
    flipped[last - 5] ^= 1;
    check(&flipped, FrameError::Checksum);
    for text in [&b"data: something else"[..], b"\x02\0\0\0\0\0\0\0\0\0\0\0", b"\0\0\0\x0f\0\0\0\0\0\0\0\0"] {
        let size = FrameError::Size { total: number(text, 0), headers: number(text, 4) };
        check(text, size);
    }
    // More headers than the frame has room for.
    check(b"\0\0\0\x20\0\0\0\x11\0\0\0\0", FrameError::Size { total: 32, headers: 17 });
    for headers in [
        &b"\x01"[..],
        b"\x01h\x0a",
        b"\x01h\x07\x00\x02x",
        b"\x01h\x05\0",
        b"\x0b:event-type\x07\x00\x01\xff",
    ] {
        check(&raw_frame(headers, b""), FrameError::Headers);
    }
}

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let one = ("[a-z]{0,8}", prop::collection::vec(any::<u8>(), 0..60))
        .prop_map(|(name, payload)| frame(&[(":event-type", &name)], &payload));
    prop::collection::vec(one, 0..6).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(
        body in frames(),
        cuts in prop::collection::vec(1..40_usize, 1..40),
    ) {
        let mut chunks = Vec::new();
        let mut rest = &body[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, behind) = rest.split_at((*cut).min(rest.len()));
            chunks.push(chunk);
            rest = behind;
        }
        prop_assert_eq!(read_all(chunks), read_all([&body[..]]));
    }

    /// A changed bit is noticed: no frame comes of it that was not sent.
    #[test]
    fn a_changed_bit_never_makes_another_frame(body in frames(), place in any::<prop::sample::Index>(), bit in 0..8) {
        prop_assume!(!body.is_empty());
        let (sent, _) = read_all([&body[..]]);
        let mut changed = body.clone();
        let place = place.index(body.len());
        changed[place] ^= 1_u8 << bit;
        let (received, end) = read_all([&changed[..]]);
        prop_assert!(received.len() < sent.len());
        prop_assert_eq!(&received[..], &sent[..received.len()]);
        // A frame whose length grew waits for bytes that never come, unless its checksum was there to see.
        prop_assert!(end.is_err());
    }

    #[test]
    fn any_bytes_end_in_order(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..10)) {
        let whole = chunks.concat();
        prop_assert_eq!(read_all(chunks.iter().map(Vec::as_slice)), read_all([&whole[..]]));
    }
}
