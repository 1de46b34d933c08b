//! A span while its operation works.

use std::time::Instant;

use crate::{
    data::{Attributes, Key, MAX_EVENTS, Span, SpanEvent, SpanKind, Value},
    hub::{Hub, now_ns},
    ids::{SpanId, TraceContext, TraceId},
};

/// A span that has begun.
pub(super) struct OpenSpan {
    pub(super) context: TraceContext,
    parent: Option<SpanId>,
    name: String,
    kind: SpanKind,
    start_ns: u64,
    begun: Instant,
    attributes: Attributes,
    events: Vec<SpanEvent>,
    dropped_events: u32,
    error: Option<String>,
}

impl OpenSpan {
    /// A span below `parent`; without one, the first of a trace.
    pub(super) fn begin(parent: Option<TraceContext>, name: impl Into<String>, kind: SpanKind) -> Self {
        let context = TraceContext {
            trace: parent.map_or_else(TraceId::random, |parent| parent.trace),
            span: SpanId::random(),
            sampled: parent.is_none_or(|parent| parent.sampled),
        };
        Self {
            context,
            parent: parent.map(|parent| parent.span),
            name: name.into(),
            kind,
            start_ns: now_ns(),
            begun: Instant::now(),
            attributes: Vec::new(),
            events: Vec::new(),
            dropped_events: 0,
            error: None,
        }
    }

    /// Sets an attribute.
    pub(super) fn set(&mut self, key: impl Into<Key>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.attributes.iter_mut().find(|(other, _)| *other == key) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((key, value)),
        }
    }

    /// Adds an event that happens now. Of more than [`MAX_EVENTS`] the number alone is kept.
    pub(super) fn event(&mut self, name: &'static str, attributes: Attributes) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(SpanEvent { time_ns: self.now_ns(), name, attributes });
        } else {
            self.dropped_events += 1;
        }
    }

    /// The operation failed: the kind of the error, and its text where texts are sent.
    pub(super) fn fail(&mut self, error_type: impl Into<Value>, text: Option<String>) {
        self.set("error.type", error_type);
        self.error = Some(text.unwrap_or_default());
    }

    /// The kind of the error, once one is known.
    pub(super) fn error_type(&self) -> Option<Value> {
        self.attributes.iter().find(|(key, _)| key == "error.type").map(|(_, value)| value.clone())
    }

    /// The seconds since its begin.
    pub(super) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// The time by the clock that does not jump.
    fn now_ns(&self) -> u64 {
        self.start_ns.saturating_add(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Ends the span and queues it, if its trace is recorded.
    pub(super) fn end(self, hub: &Hub) {
        if !self.context.sampled {
            return;
        }
        let end_ns = self.now_ns();
        hub.send(Span {
            trace: self.context.trace,
            id: self.context.span,
            parent: self.parent,
            name: self.name,
            kind: self.kind,
            start_ns: self.start_ns,
            end_ns,
            attributes: self.attributes,
            events: self.events,
            dropped_events: self.dropped_events,
            error: self.error,
        });
    }
}
