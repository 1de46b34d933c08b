use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    data::{Attributes, HistogramPoint, Number, NumberPoint, Points, SpanEvent, SpanKind, Value},
    ids::{SpanId, TraceId},
};

const TIMES: PointTimes = PointTimes { start_ns: 5, now_ns: u64::MAX };

fn resource() -> Resource {
    Resource { attributes: vec![("service.name".into(), "agentd".into())] }
}

fn as_json(body: &[u8]) -> Json {
    without_empty(serde_json::from_slice(body).unwrap())
}

/// Protocol Buffers write no empty lists and messages.
fn without_empty(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let full = fields.into_iter().map(|(name, value)| (name, without_empty(value)));
            Json::Object(full.filter(|(_, value)| *value != json!([]) && *value != json!({})).collect())
        }
        Json::Array(values) => values.into_iter().map(without_empty).collect(),
        other => other,
    }
}

fn span(attributes: Attributes, error: Option<String>) -> Span {
    let events = vec![SpanEvent { time_ns: 7, name: "agentd.retry", attributes: attributes.clone() }];
    Span {
        trace: TraceId([0xab; 16]),
        id: SpanId([1, 2, 3, 4, 5, 6, 7, 8]),
        parent: Some(SpanId([9; 8])),
        name: "chat m".into(),
        kind: SpanKind::Client,
        start_ns: 1,
        end_ns: 300,
        attributes,
        events,
        dropped_events: 2,
        error,
    }
}

#[test]
fn a_span_in_json() {
    let attributes: Attributes = vec![
        ("a".into(), "text".into()),
        ("b".into(), Value::Int(-1)),
        ("c".into(), Value::Texts(vec!["stop".into()])),
    ];
    let body = traces(TelemetryProtocol::HttpJson, &resource(), &[span(attributes, Some("no".into()))]);
    let body: Json = serde_json::from_slice(&body).unwrap();
    let attributes = json!([
        {"key": "a", "value": {"stringValue": "text"}},
        {"key": "b", "value": {"intValue": "-1"}},
        {"key": "c", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
    ]);
    let scope = &body["resourceSpans"][0]["scopeSpans"][0];
    assert_eq!(scope["scope"]["name"], "agentd");
    assert_eq!(
        scope["spans"][0],
        json!({
            "traceId": "abababababababababababababababab", "spanId": "0102030405060708", "parentSpanId": "0909090909090909",
            "name": "chat m", "kind": 3, "startTimeUnixNano": "1", "endTimeUnixNano": "300",
            "attributes": attributes, "droppedEventsCount": 2,
            "events": [{"timeUnixNano": "7", "name": "agentd.retry", "attributes": attributes}],
            "status": {"code": 2, "message": "no"},
        })
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        ".{1,20}".prop_map(Value::from),
        any::<i64>().prop_map(Value::Int),
        (-1e9..1e9).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Bool),
        proptest::collection::vec(".{1,5}", 1..3).prop_map(Value::Texts),
    ]
}

fn any_attributes() -> impl Strategy<Value = Attributes> {
    proptest::collection::vec(("[a-z.]{1,9}".prop_map(|key| key.into()), any_value()), 0..4)
}

proptest! {
    /// Both encodings say the same.
    #[test]
    fn spans_are_the_same_in_both_encodings(attributes in any_attributes(), error in proptest::option::of(".{1,9}")) {
        let spans = [span(attributes, error)];
        let json = traces(TelemetryProtocol::HttpJson, &resource(), &spans);
        let protobuf = traces(TelemetryProtocol::HttpProtobuf, &resource(), &spans);
        prop_assert_eq!(without_empty(testing::decode_traces(&protobuf)), as_json(&json));
    }

    #[test]
    fn metrics_are_the_same_in_both_encodings(
        attributes in any_attributes(),
        int: i64,
        double in -1e9..1e9,
        buckets in proptest::array::uniform3(any::<u64>()),
    ) {
        let number = |value| NumberPoint { attributes: attributes.clone(), value };
        let sum = |is_monotonic, value| Points::Sum { is_monotonic, points: vec![number(value)] };
        let point = HistogramPoint {
            attributes: attributes.clone(), count: 3, sum: double, min: -double, max: double, buckets: buckets.to_vec(),
        };
        let all = [sum(true, Number::Int(int)), sum(false, Number::Double(double)),
            Points::Histogram { bounds: &[0.5, 2.0], points: vec![point] }];
        let all = all.map(|points| Metric { name: "m", description: "d", unit: "s", points });
        let json = metrics(TelemetryProtocol::HttpJson, &resource(), &all, TIMES);
        let protobuf = metrics(TelemetryProtocol::HttpProtobuf, &resource(), &all, TIMES);
        prop_assert_eq!(without_empty(testing::decode_metrics(&protobuf)), as_json(&json));
    }
}
