//! Settings as the values that the crates below work with. Pure.

use std::{path::Path, time::Duration};

use agentd_ai::{
    CertificateFile, Deadlines, HttpRetries, NamedProxy, Network, OnStall, ProgressLimit, ThinkingBudgets,
};
use agentd_config::{Environment, resolve_path};
use agentd_process::ProcessLimits;
use agentd_protocol::settings::{ProcessSettings, Settings, StallPolicy, TimeLimit};

/// The setting `processes`.
pub(super) fn process_limits(settings: ProcessSettings) -> ProcessLimits {
    /// More than any work needs, and few enough that the machine stays usable.
    const MAX_COUNT: u64 = 2048;
    let ProcessSettings { max_count, max_memory_bytes, max_cpu_seconds, max_output_bytes } = settings;
    ProcessLimits {
        processes: Some(max_count.unwrap_or(MAX_COUNT)),
        memory_bytes: max_memory_bytes,
        cpu_seconds: max_cpu_seconds,
        output_bytes: max_output_bytes,
    }
}

/// The setting `syntax.timeoutMs`.
pub(super) fn syntax_timeout(settings: &Settings) -> Duration {
    let given = settings.syntax.as_ref().and_then(|syntax| syntax.timeout_ms);
    Duration::from_millis(given.map_or(20_000, |millis| millis.get().into()))
}

/// The setting `retry.provider`.
pub(super) fn http_retries(settings: &Settings) -> HttpRetries {
    let provider = settings.retry.as_ref().and_then(|retry| retry.provider.as_ref());
    let Some(provider) = provider else { return HttpRetries::default() };
    let default = HttpRetries::default();
    HttpRetries {
        max: provider.max_retries.unwrap_or(default.max),
        max_delay: provider.max_retry_delay_ms.map_or(default.max_delay, Duration::from_millis),
        first_byte_timeout: provider.timeout_ms.filter(|millis| *millis > 0).map(Duration::from_millis),
    }
}

/// The setting `thinkingBudgets`.
pub(super) fn thinking_budgets(settings: &Settings) -> ThinkingBudgets {
    let default = ThinkingBudgets::default();
    let budgets = settings.thinking_budgets.clone().unwrap_or_default();
    ThinkingBudgets {
        minimal: budgets.minimal.unwrap_or(default.minimal),
        low: budgets.low.unwrap_or(default.low),
        medium: budgets.medium.unwrap_or(default.medium),
        high: budgets.high.unwrap_or(default.high),
    }
}

/// The network of the settings `httpProxy`, `caFile` and `deadlines.connectMs`, below what the environment says.
#[must_use]
pub fn network(settings: &Settings, environment: &Environment, agent_dir: &Path) -> Network {
    let proxy = settings.http_proxy.as_deref().map(str::trim).filter(|url| !url.is_empty());
    let proxy = proxy.map(|url| NamedProxy::new(url, "the setting httpProxy"));
    let mut network = Network::of_environment(|name| environment.non_empty(name)).or_proxy(proxy);
    if let Some(path) = settings.ca_file.as_deref().filter(|path| !path.is_empty()) {
        let path = resolve_path(path, agent_dir, environment);
        network.certificates.push(CertificateFile { path, source: "the setting caFile".to_owned() });
    }
    if let Some(limit) = settings.deadlines.as_ref().and_then(|deadlines| deadlines.connect_ms) {
        network.connect_timeout = limit.duration();
    }
    network
}

/// The setting `deadlines`.
pub(super) fn deadlines(settings: &Settings) -> Deadlines {
    let deadlines = settings.deadlines.clone().unwrap_or_default();
    Deadlines {
        first_byte: deadlines.first_byte_ms.and_then(TimeLimit::duration),
        progress: deadlines.progress_ms.map_or(ProgressLimit::Usual, |limit| {
            limit.duration().map_or(ProgressLimit::Unlimited, ProgressLimit::Within)
        }),
        request: deadlines.request_ms.and_then(TimeLimit::duration),
        on_stall: match deadlines.on_stall {
            Some(StallPolicy::Fail) => OnStall::Fail,
            Some(StallPolicy::Retry) | None => OnStall::Retry,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, time::Duration};

    use serde_json::{Value, json};

    use super::*;

    fn settings(json: Value) -> Settings {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn limits_of_time() {
        let check = |json: Value, expected: Deadlines| {
            assert_eq!(deadlines(&settings(json!({"deadlines": json}))), expected);
        };
        check(json!({}), Deadlines::default());
        check(
            json!({"firstByteMs": 5, "progressMs": 0, "requestMs": "disabled", "onStall": "fail"}),
            Deadlines {
                first_byte: Some(Duration::from_millis(5)),
                progress: ProgressLimit::Unlimited,
                request: None,
                on_stall: OnStall::Fail,
            },
        );
        let progress = ProgressLimit::Within(Duration::from_millis(7));
        check(json!({"progressMs": 6.5}), Deadlines { progress, ..Deadlines::default() });
    }

    #[test]
    fn the_environment_of_the_session_comes_before_the_settings() {
        let environment = Environment::from_iter([
            ("HTTPS_PROXY", "http://env"),
            ("SSL_CERT_FILE", "/env.pem"),
            ("HOME", "/h"),
        ]);
        let settings = settings(json!({
            "httpProxy": " http://set ", "caFile": "certs/ca.pem", "deadlines": {"connectMs": 9}
        }));
        let found = network(&settings, &environment, Path::new("/agent"));
        assert_eq!(found.https_proxy, Some(NamedProxy::new("http://env", "HTTPS_PROXY")));
        assert_eq!(found.http_proxy, Some(NamedProxy::new("http://set", "the setting httpProxy")));
        let files: Vec<_> = found.certificates.iter().map(|file| file.path.clone()).collect();
        assert_eq!(files, [PathBuf::from("/env.pem"), PathBuf::from("/agent/certs/ca.pem")]);
        assert_eq!(found.connect_timeout, Some(Duration::from_millis(9)));
    }
}
