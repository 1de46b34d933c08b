//! The setting `telemetry`: traces and metrics for an OpenTelemetry collector.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where traces and metrics of sessions are sent, by OTLP over HTTP. Only read from the user's settings, at the daemon's start.
/// Nothing is sent without an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TelemetrySettings {
    /// Whether traces and metrics are sent; default true where `endpoint` is set, and false else. With true and no `endpoint`,
    /// the variable `OTEL_EXPORTER_OTLP_ENDPOINT` of the daemon says where to. The variable alone turns nothing on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The base address of the collector, such as `http://localhost:4318`; `/v1/traces` and `/v1/metrics` are added to its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The encoding of what is sent; default `http/protobuf` (or the variable `OTEL_EXPORTER_OTLP_PROTOCOL`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "http/protobuf")))]
    pub protocol: Option<TelemetryProtocol>,
    /// Whether traces are sent; default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub traces: Option<bool>,
    /// Whether metrics are sent; default true. Some programs take traces alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub metrics: Option<bool>,
    /// Headers of the requests, beside those of the variable `OTEL_EXPORTER_OTLP_HEADERS`. Their values count as secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The resource attribute `service.name`; default `agentd` (or the variable `OTEL_SERVICE_NAME`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "agentd")))]
    pub service_name: Option<String>,
    /// The time limit of one request to the collector, in milliseconds; default 10000 (or the variable
    /// `OTEL_EXPORTER_OTLP_TIMEOUT`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = 10_000)))]
    pub timeout_ms: Option<u64>,
    /// Whether spans hold what was said: prompts, answers, arguments and results of tools, cut to 16 KiB each; default false.
    /// Known secrets are taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub capture_content: Option<bool>,
    /// Whether commands of tools get the variable `TRACEPARENT`, so that programs that they start can continue the trace; default
    /// false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub propagate_to_commands: Option<bool>,
}

/// An encoding of OTLP over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TelemetryProtocol {
    /// Protocol Buffers.
    #[default]
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// JSON.
    #[serde(rename = "http/json")]
    HttpJson,
}
