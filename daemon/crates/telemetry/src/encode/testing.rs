//! A Protocol Buffers reader for tests: it gives the JSON form of what was encoded, by a table of the messages.

use serde_json::{Map, Value, json};

/// How a field is read.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Hex,
    Varint,
    VarintText,
    Bool,
    Fixed,
    SignedFixed,
    Double,
    PackedFixed,
    PackedDouble,
    Message(&'static [(u64, &'static str, Kind)]),
    Messages(&'static [(u64, &'static str, Kind)]),
}

use Kind::{
    Bool, Double, Fixed, Hex, Message, Messages, PackedDouble, PackedFixed, SignedFixed, Text, Varint,
    VarintText,
};

type Fields = &'static [(u64, &'static str, Kind)];

const ARRAY: Fields = &[(1, "values", Messages(&[(1, "stringValue", Text)]))];
const ANY: Fields = &[
    (1, "stringValue", Text),
    (2, "boolValue", Bool),
    (3, "intValue", VarintText),
    (4, "doubleValue", Double),
    (5, "arrayValue", Message(ARRAY)),
];
const KEY_VALUE: Fields = &[(1, "key", Text), (2, "value", Message(ANY))];
const RESOURCE: Fields = &[(1, "attributes", Messages(KEY_VALUE))];
const SCOPE: Fields = &[(1, "name", Text), (2, "version", Text)];
const EVENT: Fields =
    &[(1, "timeUnixNano", Fixed), (2, "name", Text), (3, "attributes", Messages(KEY_VALUE))];
const SPAN: Fields = &[
    (1, "traceId", Hex),
    (2, "spanId", Hex),
    (4, "parentSpanId", Hex),
    (5, "name", Text),
    (6, "kind", Varint),
    (7, "startTimeUnixNano", Fixed),
    (8, "endTimeUnixNano", Fixed),
    (9, "attributes", Messages(KEY_VALUE)),
    (11, "events", Messages(EVENT)),
    (12, "droppedEventsCount", Varint),
    (15, "status", Message(&[(2, "message", Text), (3, "code", Varint)])),
];
const NUMBER_POINT: Fields = &[
    (2, "startTimeUnixNano", Fixed),
    (3, "timeUnixNano", Fixed),
    (4, "asDouble", Double),
    (6, "asInt", SignedFixed),
    (7, "attributes", Messages(KEY_VALUE)),
];
const HISTOGRAM_POINT: Fields = &[
    (2, "startTimeUnixNano", Fixed),
    (3, "timeUnixNano", Fixed),
    (4, "count", Fixed),
    (5, "sum", Double),
    (6, "bucketCounts", PackedFixed),
    (7, "explicitBounds", PackedDouble),
    (9, "attributes", Messages(KEY_VALUE)),
    (11, "min", Double),
    (12, "max", Double),
];
const METRIC: Fields = &[
    (1, "name", Text),
    (2, "description", Text),
    (3, "unit", Text),
    (
        7,
        "sum",
        Message(&[
            (1, "dataPoints", Messages(NUMBER_POINT)),
            (2, "aggregationTemporality", Varint),
            (3, "isMonotonic", Bool),
        ]),
    ),
    (
        9,
        "histogram",
        Message(&[(1, "dataPoints", Messages(HISTOGRAM_POINT)), (2, "aggregationTemporality", Varint)]),
    ),
];
const TRACES: Fields = &[(
    1,
    "resourceSpans",
    Messages(&[
        (1, "resource", Message(RESOURCE)),
        (
            2,
            "scopeSpans",
            Messages(&[(1, "scope", Message(SCOPE)), (2, "spans", Messages(SPAN)), (3, "schemaUrl", Text)]),
        ),
        (3, "schemaUrl", Text),
    ]),
)];
const METRICS: Fields = &[(
    1,
    "resourceMetrics",
    Messages(&[
        (1, "resource", Message(RESOURCE)),
        (
            2,
            "scopeMetrics",
            Messages(&[
                (1, "scope", Message(SCOPE)),
                (2, "metrics", Messages(METRIC)),
                (3, "schemaUrl", Text),
            ]),
        ),
        (3, "schemaUrl", Text),
    ]),
)];

/// The JSON form of an encoded request to `/v1/traces`.
pub(crate) fn decode_traces(bytes: &[u8]) -> Value {
    message(bytes, TRACES)
}

/// The JSON form of an encoded request to `/v1/metrics`.
pub(crate) fn decode_metrics(bytes: &[u8]) -> Value {
    message(bytes, METRICS)
}

fn message(mut bytes: &[u8], fields: Fields) -> Value {
    let mut object = Map::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let (_, name, kind) = *fields
            .iter()
            .find(|(number, ..)| *number == tag >> 3)
            .unwrap_or_else(|| panic!("field {}", tag >> 3));
        let (number, piece): (u64, &[u8]) = match tag & 7 {
            0 => (varint(&mut bytes), &[]),
            1 => (u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap()), &[]),
            2 => {
                let length = varint(&mut bytes) as usize;
                (0, take(&mut bytes, length))
            }
            other => panic!("wire type {other}"),
        };
        let value = match kind {
            Text => json!(std::str::from_utf8(piece).unwrap()),
            Hex => json!(piece.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            Varint => json!(number),
            VarintText => json!(number.cast_signed().to_string()),
            Bool => json!(number == 1),
            Fixed => json!(number.to_string()),
            SignedFixed => json!(number.cast_signed().to_string()),
            Double => json!(f64::from_bits(number)),
            PackedFixed => words(piece).map(|word| json!(word.to_string())).collect(),
            PackedDouble => words(piece).map(|word| json!(f64::from_bits(word))).collect(),
            Message(fields) => message(piece, fields),
            Messages(fields) => {
                let list = object.entry(name).or_insert_with(|| json!([]));
                list.as_array_mut().unwrap().push(message(piece, fields));
                continue;
            }
        };
        object.insert(name.to_owned(), value);
    }
    Value::Object(object)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = take(bytes, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return number;
        }
        shift += 7;
    }
}
