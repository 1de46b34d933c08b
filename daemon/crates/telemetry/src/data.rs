//! Spans and metrics as they are sent, whatever the encoding. Data only.

use std::borrow::Cow;

use agentd_http::scrub;

use crate::ids::{SpanId, TraceId};

/// A name of an attribute.
pub(crate) type Key = Cow<'static, str>;

/// Attributes in the order in which they are sent. A key stands once.
pub(crate) type Attributes = Vec<(Key, Value)>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(Cow<'static, str>),
    Int(i64),
    Double(f64),
    Bool(bool),
    Texts(Vec<String>),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// The kind of a span, with its number in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Client = 3,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    /// Unix time in nanoseconds.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) attributes: Attributes,
    pub(crate) events: Vec<SpanEvent>,
    /// Events beyond [`MAX_EVENTS`].
    pub(crate) dropped_events: u32,
    /// Set when the operation failed: the description for people, which may be empty.
    pub(crate) error: Option<String>,
}

/// An event of a span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanEvent {
    /// Unix time in nanoseconds.
    pub(crate) time_ns: u64,
    pub(crate) name: &'static str,
    pub(crate) attributes: Attributes,
}

/// Events of one span at most; more are counted.
pub(crate) const MAX_EVENTS: usize = 128;

impl Span {
    /// Roughly its bytes in memory, for the limit of the queue.
    pub(crate) fn bytes(&self) -> usize {
        let of = |attributes: &Attributes| {
            attributes.iter().map(|(_, value)| 64 + text_bytes(value)).sum::<usize>()
        };
        let events = self.events.iter().map(|event| 64 + of(&event.attributes)).sum::<usize>();
        256 + self.name.len() + of(&self.attributes) + events
    }

    /// Takes the secrets that this process knows out of all texts.
    pub(crate) fn scrub(&mut self) {
        if let Cow::Owned(clean) = scrub(&self.name) {
            self.name = clean;
        }
        scrub_attributes(&mut self.attributes);
        self.events.iter_mut().for_each(|event| scrub_attributes(&mut event.attributes));
        if let Some(error) = &mut self.error
            && let Cow::Owned(clean) = scrub(error)
        {
            *error = clean;
        }
    }
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Texts(texts) => texts.iter().map(|text| 24 + text.len()).sum(),
        Value::Int(_) | Value::Double(_) | Value::Bool(_) => 0,
    }
}

/// Takes the secrets that this process knows out of attributes.
pub(crate) fn scrub_attributes(attributes: &mut Attributes) {
    let clean = |text: &mut String| {
        if let Cow::Owned(clean) = scrub(text) {
            *text = clean;
        }
    };
    for (_, value) in attributes {
        match value {
            Value::Text(text) => {
                if let Cow::Owned(clean) = scrub(text) {
                    *text = Cow::Owned(clean);
                }
            }
            Value::Texts(texts) => texts.iter_mut().for_each(clean),
            Value::Int(_) | Value::Double(_) | Value::Bool(_) => {}
        }
    }
}

/// A metric at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) points: Points,
}

/// The points of a metric, one for each set of attributes. Sums and histograms are cumulative.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Points {
    Sum { is_monotonic: bool, points: Vec<NumberPoint> },
    Histogram { bounds: &'static [f64], points: Vec<HistogramPoint> },
}

/// A number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberPoint {
    pub(crate) attributes: Attributes,
    pub(crate) value: Number,
}

/// The value of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Double(f64),
}

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistogramPoint {
    pub(crate) attributes: Attributes,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// One more than the bounds.
    pub(crate) buckets: Vec<u64>,
}

/// The times of the points of an export: since when they are counted, and the present. Unix time in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointTimes {
    pub(crate) start_ns: u64,
    pub(crate) now_ns: u64,
}

/// The sender: what all data of this process has in common.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    pub(crate) attributes: Attributes,
}

/// The name of the instrumentation.
pub(crate) const SCOPE: &str = "agentd";

/// The version of the semantic conventions that the names follow.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
