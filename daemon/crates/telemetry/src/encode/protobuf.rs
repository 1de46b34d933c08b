//! OTLP as Protocol Buffers. Pure.
//!
//! The numbers of the fields are those of opentelemetry-proto 1.x, whose traces and metrics are stable: they never change.

use crate::data::{
    Attributes, HistogramPoint, Metric, Number, NumberPoint, PointTimes, Points, Resource, SCHEMA_URL, SCOPE,
    Span, SpanEvent, Value,
};

/// Sums and histograms count from the start of the process.
const CUMULATIVE: u64 = 2;

/// The status of a span that failed.
const ERROR: u64 = 2;

pub(super) fn traces(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    data(resource, |scope| spans.iter().for_each(|it| scope.message(2, |out| span(out, it))))
}

pub(super) fn metrics(resource: &Resource, metrics: &[Metric], times: PointTimes) -> Vec<u8> {
    data(resource, |scope| metrics.iter().for_each(|it| scope.message(2, |out| metric(out, it, times))))
}

/// A request: its resource, with one scope, which `fill` fills. Those of traces and of metrics have the same numbers.
fn data(resource: &Resource, fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut request = Writer::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |out| attributes(out, 1, &resource.attributes));
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |out| {
                out.text(1, SCOPE);
                out.text(2, env!("CARGO_PKG_VERSION"));
            });
            fill(of_scope);
            of_scope.text(3, SCHEMA_URL);
        });
        of_resource.text(3, SCHEMA_URL);
    });
    request.0
}

fn span(out: &mut Writer, span: &Span) {
    out.bytes(1, &span.trace.0);
    out.bytes(2, &span.id.0);
    if let Some(parent) = span.parent {
        out.bytes(4, &parent.0);
    }
    out.text(5, &span.name);
    out.varint(6, span.kind as u64);
    out.fixed64(7, span.start_ns);
    out.fixed64(8, span.end_ns);
    attributes(out, 9, &span.attributes);
    span.events.iter().for_each(|it| out.message(11, |out| event(out, it)));
    if span.dropped_events > 0 {
        out.varint(12, span.dropped_events.into());
    }
    if let Some(error) = &span.error {
        out.message(15, |out| {
            if !error.is_empty() {
                out.text(2, error);
            }
            out.varint(3, ERROR);
        });
    }
}

fn event(out: &mut Writer, event: &SpanEvent) {
    out.fixed64(1, event.time_ns);
    out.text(2, event.name);
    attributes(out, 3, &event.attributes);
}

fn metric(out: &mut Writer, metric: &Metric, times: PointTimes) {
    out.text(1, metric.name);
    out.text(2, metric.description);
    out.text(3, metric.unit);
    match &metric.points {
        Points::Sum { is_monotonic, points } => out.message(7, |out| {
            points.iter().for_each(|point| out.message(1, |out| number_point(out, point, times)));
            out.varint(2, CUMULATIVE);
            out.varint(3, u64::from(*is_monotonic));
        }),
        Points::Histogram { bounds, points } => out.message(9, |out| {
            points.iter().for_each(|point| out.message(1, |out| histogram_point(out, point, bounds, times)));
            out.varint(2, CUMULATIVE);
        }),
    }
}

fn number_point(out: &mut Writer, point: &NumberPoint, times: PointTimes) {
    out.fixed64(2, times.start_ns);
    out.fixed64(3, times.now_ns);
    match point.value {
        Number::Int(number) => out.fixed64(6, number.cast_unsigned()),
        Number::Double(number) => out.double(4, number),
    }
    attributes(out, 7, &point.attributes);
}

fn histogram_point(out: &mut Writer, point: &HistogramPoint, bounds: &[f64], times: PointTimes) {
    out.fixed64(2, times.start_ns);
    out.fixed64(3, times.now_ns);
    out.fixed64(4, point.count);
    out.double(5, point.sum);
    out.packed(6, point.buckets.iter().copied());
    out.packed(7, bounds.iter().map(|bound| bound.to_bits()));
    attributes(out, 9, &point.attributes);
    out.double(11, point.min);
    out.double(12, point.max);
}

fn attributes(out: &mut Writer, field: u32, attributes: &Attributes) {
    for (key, of) in attributes {
        out.message(field, |out| {
            out.text(1, key);
            out.message(2, |out| value(out, of));
        });
    }
}

fn value(out: &mut Writer, value: &Value) {
    match value {
        Value::Text(text) => out.text(1, text),
        Value::Bool(is) => out.varint(2, u64::from(*is)),
        Value::Int(number) => out.varint(3, number.cast_unsigned()),
        Value::Double(number) => out.double(4, *number),
        Value::Texts(texts) => out.message(5, |out| {
            texts.iter().for_each(|text| out.message(1, |out| out.text(1, text)));
        }),
    }
}

/// Writes the fields of a message.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u32, wire_type: u64) {
        self.number((u64::from(field) << 3) | wire_type);
    }

    fn varint(&mut self, field: u32, number: u64) {
        self.tag(field, 0);
        self.number(number);
    }

    fn fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn double(&mut self, field: u32, number: f64) {
        self.fixed64(field, number.to_bits());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn packed(&mut self, field: u32, numbers: impl ExactSizeIterator<Item = u64>) {
        self.tag(field, 2);
        self.number(8 * numbers.len() as u64);
        numbers.for_each(|number| self.0.extend_from_slice(&number.to_le_bytes()));
    }

    /// A message within this one. Its length comes before it, so it is written behind the place of its length and moved.
    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.tag(field, 2);
        let start = self.0.len();
        fill(self);
        let length = self.0.len() - start;
        let mut prefix = Self::default();
        prefix.number(length as u64);
        self.0.splice(start..start, prefix.0);
    }
}
