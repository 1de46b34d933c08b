//! OTLP as JSON: ids as hexadecimal digits, 64-bit integers as strings, enumerations as numbers. Pure.

use serde_json::{Value as Json, json};

use crate::data::{
    Attributes, HistogramPoint, Metric, Number, NumberPoint, PointTimes, Points, Resource, SCHEMA_URL, SCOPE,
    Span, Value,
};

/// Sums and histograms count from the start of the process.
const CUMULATIVE: u32 = 2;

/// The status of a span that failed.
const ERROR: u32 = 2;

pub(super) fn traces(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource.attributes)},
        "scopeSpans": [{"scope": scope(), "spans": spans, "schemaUrl": SCHEMA_URL}],
        "schemaUrl": SCHEMA_URL,
    }]})
    .to_string()
    .into_bytes()
}

pub(super) fn metrics(resource: &Resource, metrics: &[Metric], times: PointTimes) -> Vec<u8> {
    let metrics: Vec<Json> = metrics.iter().map(|it| metric(it, times)).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&resource.attributes)},
        "scopeMetrics": [{"scope": scope(), "metrics": metrics, "schemaUrl": SCHEMA_URL}],
        "schemaUrl": SCHEMA_URL,
    }]})
    .to_string()
    .into_bytes()
}

fn scope() -> Json {
    json!({"name": SCOPE, "version": env!("CARGO_PKG_VERSION")})
}

fn span(span: &Span) -> Json {
    let events: Vec<Json> = span
        .events
        .iter()
        .map(|event| {
            json!({
                "timeUnixNano": event.time_ns.to_string(),
                "name": event.name,
                "attributes": attributes(&event.attributes),
            })
        })
        .collect();
    let mut json = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": span.kind as u32,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes(&span.attributes),
        "events": events,
        "status": span.error.as_ref().map_or(json!({}), |text| json!({"code": ERROR, "message": text})),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = parent.to_string().into();
    }
    if span.dropped_events > 0 {
        json["droppedEventsCount"] = span.dropped_events.into();
    }
    json
}

fn metric(metric: &Metric, times: PointTimes) -> Json {
    let mut json = json!({"name": metric.name, "description": metric.description, "unit": metric.unit});
    match &metric.points {
        Points::Sum { is_monotonic, points } => {
            let points: Vec<Json> = points.iter().map(|point| number_point(point, times)).collect();
            json["sum"] = json!({
                "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": is_monotonic,
            });
        }
        Points::Histogram { bounds, points } => {
            let points: Vec<Json> =
                points.iter().map(|point| histogram_point(point, bounds, times)).collect();
            json["histogram"] = json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE});
        }
    }
    json
}

fn number_point(point: &NumberPoint, times: PointTimes) -> Json {
    let mut json = json!({
        "attributes": attributes(&point.attributes),
        "startTimeUnixNano": times.start_ns.to_string(),
        "timeUnixNano": times.now_ns.to_string(),
    });
    match point.value {
        Number::Int(number) => json["asInt"] = number.to_string().into(),
        Number::Double(number) => json["asDouble"] = number.into(),
    }
    json
}

fn histogram_point(point: &HistogramPoint, bounds: &[f64], times: PointTimes) -> Json {
    let counts: Vec<String> = point.buckets.iter().map(u64::to_string).collect();
    json!({
        "attributes": attributes(&point.attributes),
        "startTimeUnixNano": times.start_ns.to_string(),
        "timeUnixNano": times.now_ns.to_string(),
        "count": point.count.to_string(),
        "sum": point.sum,
        "min": point.min,
        "max": point.max,
        "bucketCounts": counts,
        "explicitBounds": bounds,
    })
}

fn attributes(attributes: &Attributes) -> Vec<Json> {
    attributes.iter().map(|(key, of)| json!({"key": key, "value": value(of)})).collect()
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Int(number) => json!({"intValue": number.to_string()}),
        Value::Double(number) => json!({"doubleValue": number}),
        Value::Bool(is) => json!({"boolValue": is}),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}
