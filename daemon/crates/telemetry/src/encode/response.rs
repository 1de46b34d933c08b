//! What a collector says of data that it took in part. Pure.

use agentd_protocol::settings::TelemetryProtocol;
use serde_json::Value;

/// Data that a collector did not take, though it answered with success.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    /// Spans or points.
    pub(crate) count: u64,
    /// Why.
    pub(crate) message: String,
}

/// Reads the answer of a collector; `None` when everything was taken, and for a body that cannot be read.
pub(crate) fn rejected(protocol: TelemetryProtocol, body: &[u8]) -> Option<Rejected> {
    let rejected = match protocol {
        TelemetryProtocol::HttpJson => of_json(body),
        TelemetryProtocol::HttpProtobuf => of_protobuf(body),
    }?;
    (rejected.count > 0 || !rejected.message.is_empty()).then_some(rejected)
}

fn of_json(body: &[u8]) -> Option<Rejected> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let partial = body.get("partialSuccess")?;
    let count = ["rejectedSpans", "rejectedDataPoints"].iter().find_map(|name| partial.get(name));
    let count = count.map(|count| count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0));
    let message = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    Some(Rejected { count: count.unwrap_or(0), message: message.to_owned() })
}

/// Both answers have `partial_success` as field 1, which has the count as field 1 and the message as field 2.
fn of_protobuf(body: &[u8]) -> Option<Rejected> {
    let mut found = None;
    for (field, value) in Fields(body) {
        if let (1, FieldValue::Bytes(partial)) = (field, value) {
            let mut rejected = Rejected { count: 0, message: String::new() };
            for (field, value) in Fields(partial) {
                match (field, value) {
                    (1, FieldValue::Number(count)) => rejected.count = count,
                    (2, FieldValue::Bytes(text)) => {
                        rejected.message = String::from_utf8_lossy(text).into_owned();
                    }
                    _ => {}
                }
            }
            found = Some(rejected);
        }
    }
    found
}

/// The fields of a message, up to the first that cannot be read.
struct Fields<'a>(&'a [u8]);

enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, FieldValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => FieldValue::Number(self.varint()?),
            1 => FieldValue::Bytes(self.take(8)?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => FieldValue::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { return None };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JSON: TelemetryProtocol = TelemetryProtocol::HttpJson;
    const PROTOBUF: TelemetryProtocol = TelemetryProtocol::HttpProtobuf;

    fn check(protocol: TelemetryProtocol, body: &[u8], expected: Option<(u64, &str)>) {
        let expected = expected.map(|(count, message)| Rejected { count, message: message.to_owned() });
        assert_eq!(rejected(protocol, body), expected, "{}", String::from_utf8_lossy(body));
    }

    #[test]
    fn collectors_say_what_they_did_not_take() {
        check(JSON, b"", None);
        check(JSON, b"{}", None);
        check(JSON, br#"{"partialSuccess":{}}"#, None);
        let body = br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too many"}}"#;
        check(JSON, body, Some((3, "too many")));
        check(JSON, br#"{"partialSuccess":{"rejectedDataPoints":2}}"#, Some((2, "")));
        check(PROTOBUF, b"", None);
        check(PROTOBUF, b"\x0a\x00", None);
        check(PROTOBUF, b"\x0a\x07\x08\xac\x02\x12\x02no", Some((300, "no")));
        // Cut off.
        check(PROTOBUF, b"\x0a\x07\x08", None);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = rejected(PROTOBUF, &body);
            let _ = rejected(JSON, &body);
        }
    }
}
