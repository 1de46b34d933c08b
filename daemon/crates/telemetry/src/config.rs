//! Where telemetry goes: the setting `telemetry`, and the variables of OpenTelemetry where the setting leaves something open.
//!
//! The setting turns telemetry on, never a variable alone: a daemon gets the variables of the shell that started it, and those may be
//! meant for a program that is developed there.

use std::time::Duration;

use agentd_http::{Secret, register_secret};
use agentd_protocol::settings::{TelemetryProtocol, TelemetrySettings};
use reqwest::Url;

use crate::data::Key;

/// The variable that names the collector.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The default time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest pause between two exports that a variable may set.
const MAX_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The decisions about telemetry. `Debug` shows no headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The address for spans; `None` when they are not sent.
    pub traces: Option<Url>,
    /// The address for metrics; `None` when they are not sent.
    pub metrics: Option<Url>,
    /// The encoding.
    pub protocol: TelemetryProtocol,
    /// The headers of requests.
    pub headers: Vec<(String, Secret)>,
    /// The time limit of a request.
    pub timeout: Duration,
    /// The time from the first waiting span to its export; default 5 seconds.
    pub span_delay: Duration,
    /// The pause between two exports of metrics; default 60 seconds.
    pub metric_interval: Duration,
    /// Whether spans hold prompts, answers, arguments and results.
    pub captures_content: bool,
    /// Whether commands get `TRACEPARENT`.
    pub propagates: bool,
    /// `service.name`.
    pub service_name: String,
    /// Further attributes of the resource, by `OTEL_RESOURCE_ATTRIBUTES`.
    pub(crate) attributes: Vec<(Key, String)>,
}

/// The set-up of telemetry cannot be used. Nothing is sent then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Telemetry is on, and nothing says where to.
    #[error("telemetry.enabled is true, and neither telemetry.endpoint nor {ENDPOINT} says where to send to")]
    NoEndpoint,
    /// The address is none.
    #[error("{name} is not an http:// or https:// address")]
    Endpoint {
        /// The setting or variable.
        name: &'static str,
    },
    /// The protocol is not spoken.
    #[error("OTEL_EXPORTER_OTLP_PROTOCOL is {found:?}, and agentd speaks http/protobuf and http/json")]
    Protocol {
        /// The value.
        found: String,
    },
    /// A header cannot be sent.
    #[error("{name} has a header whose name or value cannot be sent in HTTP")]
    Header {
        /// The setting or variable.
        name: &'static str,
    },
}

impl TelemetryConfig {
    /// The decisions of a set-up; `None` when telemetry is off. Registers the headers and a password of the address as secrets.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn of(
        settings: &TelemetrySettings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        let variable = |name: &str| variable(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        let given = settings.endpoint.as_deref().map(str::trim).filter(|endpoint| !endpoint.is_empty());
        let is_off = |name| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !settings.enabled.unwrap_or(given.is_some()) || is_off("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let (name, endpoint) = match given {
            Some(endpoint) => ("telemetry.endpoint", endpoint.to_owned()),
            None => (ENDPOINT, variable(ENDPOINT).ok_or(ConfigError::NoEndpoint)?),
        };
        let base = address(&endpoint).ok_or(ConfigError::Endpoint { name })?;
        let protocol = match (settings.protocol, variable("OTEL_EXPORTER_OTLP_PROTOCOL").as_deref()) {
            (Some(protocol), _) => protocol,
            (None, Some("http/json")) => TelemetryProtocol::HttpJson,
            (None, Some("http/protobuf") | None) => TelemetryProtocol::HttpProtobuf,
            (None, Some(found)) => return Err(ConfigError::Protocol { found: found.to_owned() }),
        };
        let none = |name| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("none"));
        let millis = |name| Some(Duration::from_millis(variable(name)?.parse().ok()?));
        let interval =
            |name, default| millis(name).unwrap_or(default).clamp(Duration::from_millis(1), MAX_INTERVAL);
        let attributes = pairs(variable("OTEL_RESOURCE_ATTRIBUTES").as_deref());
        let of_attributes = attributes.iter().find(|(name, _)| name == "service.name");
        let service_name = settings
            .service_name
            .clone()
            .filter(|name| !name.is_empty())
            .or_else(|| variable("OTEL_SERVICE_NAME"))
            .or_else(|| of_attributes.map(|(_, value)| value.clone()))
            .unwrap_or_else(|| "agentd".to_owned());
        let wants = |setting: Option<bool>, name| setting.unwrap_or_else(|| !none(name));
        let traces = wants(settings.traces, "OTEL_TRACES_EXPORTER").then(|| below(&base, "v1/traces"));
        let metrics = wants(settings.metrics, "OTEL_METRICS_EXPORTER").then(|| below(&base, "v1/metrics"));
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            traces,
            metrics,
            protocol,
            headers: headers(settings, variable("OTEL_EXPORTER_OTLP_HEADERS").as_deref())?,
            timeout: settings
                .timeout_ms
                .map(Duration::from_millis)
                .or_else(|| millis("OTEL_EXPORTER_OTLP_TIMEOUT"))
                .filter(|timeout| !timeout.is_zero())
                .unwrap_or(TIMEOUT),
            span_delay: interval("OTEL_BSP_SCHEDULE_DELAY", Duration::from_secs(5)),
            metric_interval: interval("OTEL_METRIC_EXPORT_INTERVAL", Duration::from_secs(60)),
            captures_content: settings.capture_content.unwrap_or(false),
            propagates: settings.propagate_to_commands.unwrap_or(false),
            service_name,
            attributes: attributes
                .into_iter()
                .filter(|(name, _)| name != "service.name")
                .map(|(name, value)| (name.into(), value))
                .collect(),
        }))
    }

    /// The address of the collector for people, without user, password and query.
    #[must_use]
    pub fn shown(&self) -> String {
        let Some(mut url) = self.traces.as_ref().or(self.metrics.as_ref()).cloned() else {
            return String::new();
        };
        // These fail for addresses without a host alone, which http has not.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        let shown = url.to_string();
        ["v1/traces", "v1/metrics"]
            .iter()
            .find_map(|end| shown.strip_suffix(end))
            .unwrap_or(&shown)
            .to_owned()
    }

    /// Whether headers are sent to another machine in clear text.
    #[must_use]
    pub fn shows_headers(&self) -> bool {
        let url = self.traces.as_ref().or(self.metrics.as_ref());
        !self.headers.is_empty()
            && url.is_some_and(|url| url.scheme() == "http" && !agentd_http::is_loopback(url))
    }
}

fn address(text: &str) -> Option<Url> {
    let url =
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())?;
    url.password().into_iter().for_each(register_secret);
    Some(url)
}

/// The address with a path added to its own.
fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// The headers of the variable, and over them those of the setting.
fn headers(
    settings: &TelemetrySettings,
    variable: Option<&str>,
) -> Result<Vec<(String, Secret)>, ConfigError> {
    let of_variable = pairs(variable).into_iter().map(|pair| ("OTEL_EXPORTER_OTLP_HEADERS", pair));
    let of_setting = settings.headers.iter().flatten();
    let of_setting = of_setting.map(|(name, value)| ("telemetry.headers", (name.clone(), value.clone())));
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for (source, (name, value)) in of_variable.chain(of_setting) {
        let name = name.to_ascii_lowercase();
        let can_be_sent = reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && reqwest::header::HeaderValue::from_str(&value).is_ok();
        if !can_be_sent {
            return Err(ConfigError::Header { name: source });
        }
        register_secret(&value);
        // `Bearer token`: the token alone is the secret.
        value.split_once(' ').into_iter().for_each(|(_, token)| register_secret(token));
        headers.retain(|(other, _)| *other != name);
        headers.push((name, Secret::new(value)));
    }
    Ok(headers)
}

/// The pairs of a list such as `a=b,c=d`, percent-decoded, as W3C Baggage has them. A part without `=` is none.
fn pairs(list: Option<&str>) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then(|| (decoded(name), decoded(value.trim())))
    };
    list.unwrap_or_default().split(',').filter_map(pair).collect()
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(settings: Value, variables: &[(&str, &str)]) -> Result<Option<TelemetryConfig>, ConfigError> {
        let settings: TelemetrySettings = serde_json::from_value(settings).unwrap();
        TelemetryConfig::of(&settings, |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn on(settings: Value, variables: &[(&str, &str)]) -> TelemetryConfig {
        found(settings, variables).unwrap().expect("telemetry is on")
    }

    const VARIABLES: &[(&str, &str)] = &[(ENDPOINT, "http://env:4318")];

    #[test]
    fn variables_alone_turn_nothing_on() {
        assert_eq!(found(json!({}), VARIABLES), Ok(None));
        assert_eq!(found(json!({"enabled": false, "endpoint": "http://a"}), VARIABLES), Ok(None));
        let disabled = [("OTEL_SDK_DISABLED", "TRUE")];
        assert_eq!(found(json!({"endpoint": "http://a"}), &disabled), Ok(None));
        assert_eq!(found(json!({"endpoint": "http://a", "traces": false, "metrics": false}), &[]), Ok(None));
    }

    #[test]
    fn the_setting_comes_before_the_variable() {
        let config = on(json!({"endpoint": "https://set/base/"}), VARIABLES);
        assert_eq!(config.traces.unwrap().as_str(), "https://set/base/v1/traces");
        assert_eq!(config.metrics.unwrap().as_str(), "https://set/base/v1/metrics");
        assert_eq!(config.protocol, TelemetryProtocol::HttpProtobuf);
        assert_eq!((config.timeout, config.service_name.as_str()), (TIMEOUT, "agentd"));
        let config = on(json!({"enabled": true}), VARIABLES);
        assert_eq!(config.traces.unwrap().as_str(), "http://env:4318/v1/traces");
    }

    #[test]
    fn variables_fill_in_what_the_setting_leaves_open() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20tok-12345678, x-a=1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_SERVICE_NAME", "named"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=a%2Cb,broken"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ];
        let config = on(json!({"endpoint": "http://a", "headers": {"X-A": "2"}}), &variables);
        assert_eq!(config.protocol, TelemetryProtocol::HttpJson);
        let headers: Vec<_> =
            config.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("authorization", "Bearer tok-12345678"), ("x-a", "2")]);
        assert_eq!(config.timeout, Duration::from_millis(2500));
        assert_eq!(config.span_delay, Duration::from_millis(100));
        assert_eq!(config.service_name, "named");
        assert_eq!(config.attributes, [("deployment.environment.name".into(), "a,b".to_owned())]);
        assert!(config.traces.is_some() && config.metrics.is_none());
        assert!(!format!("{config:?}").contains("12345678"));
        assert_eq!(agentd_http::scrub("tok-12345678"), "[redacted]");
    }

    #[test]
    fn set_ups_that_cannot_be_used_are_told() {
        let check = |settings, variables: &[(&str, &str)], expected: &str| {
            assert_eq!(found(settings, variables).unwrap_err().to_string(), expected);
        };
        check(
            json!({"enabled": true}),
            &[],
            "telemetry.enabled is true, and neither telemetry.endpoint nor OTEL_EXPORTER_OTLP_ENDPOINT says where to send to",
        );
        let text = "telemetry.endpoint is not an http:// or https:// address";
        for endpoint in ["localhost:4318", "grpc://a", "http://", "/v1"] {
            check(json!({"endpoint": endpoint}), &[], text);
        }
        check(
            json!({"endpoint": "http://a"}),
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\", and agentd speaks http/protobuf and http/json",
        );
        check(
            json!({"endpoint": "http://a", "headers": {"a b": "c"}}),
            &[],
            "telemetry.headers has a header whose name or value cannot be sent in HTTP",
        );
    }

    #[test]
    fn people_see_the_address_without_its_secrets() {
        let config = on(json!({"endpoint": "http://me:hush-hush-1@a:1/x?key=k"}), &[]);
        assert_eq!(config.shown(), "http://a:1/x/");
        assert!(!config.shows_headers());
        assert!(on(json!({"endpoint": "http://a", "headers": {"x": "y"}}), &[]).shows_headers());
        assert!(!on(json!({"endpoint": "http://127.0.0.1:1", "headers": {"x": "y"}}), &[]).shows_headers());
        assert!(!on(json!({"endpoint": "https://a", "headers": {"x": "y"}}), &[]).shows_headers());
    }
}
