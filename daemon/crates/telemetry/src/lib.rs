//! Traces and metrics of sessions for an OpenTelemetry collector, by OTLP over HTTP.
//!
//! [`Telemetry`] is what the sessions report to, through the traits of [`agentd_agent::observer`]; [`TelemetryConfig`] decides whether
//! there is one. Names follow the semantic conventions for generative AI ([`docs/telemetry.md`](../../../../docs/telemetry.md)).
//! Nothing here ever waits for the collector but the tasks that send.

mod config;
mod data;
mod encode;
mod hub;
mod ids;
mod metrics;
mod queue;
mod record;
mod send;
mod telemetry;

pub use config::{ConfigError, TelemetryConfig};
pub use metrics::ObservedNumber;
pub use telemetry::Telemetry;
