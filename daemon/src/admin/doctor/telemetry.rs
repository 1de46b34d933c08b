//! The setting `telemetry`: whether it can be used, and where things go.

use agentd_protocol::doctor::Check;
use agentd_telemetry::TelemetryConfig;

use super::check::{CheckName, LoadedSetup};
use crate::admin::Context;

const TELEMETRY: CheckName = CheckName("telemetry", "telemetry");

/// Nothing where the user has no such setting. Sends nothing.
pub(super) fn check(context: &Context, found: &LoadedSetup) -> Option<Check> {
    let settings = found.settings.settings.telemetry.as_ref()?;
    let variable = |name: &str| context.environment.get(name).map(str::to_owned);
    Some(match TelemetryConfig::of(settings, variable) {
        Ok(None) => TELEMETRY.ok("off"),
        Ok(Some(config)) => {
            let what = match (&config.traces, &config.metrics) {
                (Some(_), Some(_)) => "traces and metrics",
                (Some(_), None) => "traces",
                (None, _) => "metrics",
            };
            let content = if config.captures_content { ", with what was said" } else { "" };
            let detail = format!("{what} go to {}{content}", config.shown());
            if config.shows_headers() {
                TELEMETRY.warning(
                    detail,
                    "The headers, which may hold a key, are sent in clear text: use https://.",
                )
            } else {
                TELEMETRY.ok(detail)
            }
        }
        Err(error) => TELEMETRY
            .problem(error.to_string(), "Nothing is sent. Repair the setting telemetry, or remove it."),
    })
}
