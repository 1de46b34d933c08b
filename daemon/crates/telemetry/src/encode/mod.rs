//! The two encodings of OTLP over HTTP, and the answers of collectors.

mod json;
mod protobuf;
mod response;

use agentd_protocol::settings::TelemetryProtocol;

pub(crate) use self::response::rejected;
use crate::data::{Metric, PointTimes, Resource, Span};

/// The content type of an encoding.
pub(crate) fn content_type(protocol: TelemetryProtocol) -> &'static str {
    match protocol {
        TelemetryProtocol::HttpProtobuf => "application/x-protobuf",
        TelemetryProtocol::HttpJson => "application/json",
    }
}

/// The body of a request to `/v1/traces`.
pub(crate) fn traces(protocol: TelemetryProtocol, resource: &Resource, spans: &[Span]) -> Vec<u8> {
    match protocol {
        TelemetryProtocol::HttpProtobuf => protobuf::traces(resource, spans),
        TelemetryProtocol::HttpJson => json::traces(resource, spans),
    }
}

/// The body of a request to `/v1/metrics`.
pub(crate) fn metrics(
    protocol: TelemetryProtocol,
    resource: &Resource,
    metrics: &[Metric],
    times: PointTimes,
) -> Vec<u8> {
    match protocol {
        TelemetryProtocol::HttpProtobuf => protobuf::metrics(resource, metrics, times),
        TelemetryProtocol::HttpJson => json::metrics(resource, metrics, times),
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
