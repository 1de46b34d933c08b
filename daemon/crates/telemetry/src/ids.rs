//! Ids of traces and spans, and the header `traceparent` of W3C Trace Context.

use std::fmt;

use uuid::Uuid;

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TraceId(pub(crate) [u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SpanId(pub(crate) [u8; 8]);

impl TraceId {
    /// A new random id; never zero, since a random UUID is not.
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4().into_bytes())
    }
}

impl SpanId {
    /// A new random id. It is the second half of a random UUID, whose variant bits keep it from zero.
    pub(crate) fn random() -> Self {
        let [_, _, _, _, _, _, _, _, id @ ..] = Uuid::new_v4().into_bytes();
        Self(id)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The place of a span in a trace, as another process needs it to add to the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    /// Whether the trace is recorded.
    pub(crate) sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`; `None` for one that is malformed. Versions after 00 may have more fields.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let mut fields = header.trim().split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let [version] = hex(version)?;
        if version == 0xff || (version == 0 && fields.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]) = (hex(trace)?, hex(span)?, hex(flags)?);
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace: TraceId(trace), span: SpanId(span), sampled: flags & 1 == 1 })
    }

    /// The header.
    pub(crate) fn header(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// Reads lower-case hexadecimal digits, exactly as many as there is room for.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn headers_of_w3c_are_read() {
        let context = TraceContext::parse(HEADER).unwrap();
        assert_eq!(context.header(), HEADER);
        assert!(context.sampled);
        let unsampled =
            TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").unwrap();
        assert!(!unsampled.sampled);
        // A later version may say more.
        assert_eq!(TraceContext::parse(&format!("cc{}-more", &HEADER[2..])), Some(context));
    }

    #[test]
    fn malformed_headers_are_none() {
        for header in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(header), None, "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,80}") {
            let _ = TraceContext::parse(&text);
        }

        #[test]
        fn headers_round_trip(trace: [u8; 16], span: [u8; 8], sampled: bool) {
            let context = TraceContext { trace: TraceId(trace), span: SpanId(span), sampled };
            let expected = (trace != [0; 16] && span != [0; 8]).then_some(context);
            prop_assert_eq!(TraceContext::parse(&context.header()), expected);
        }
    }
}
