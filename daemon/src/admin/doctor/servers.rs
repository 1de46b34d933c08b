//! Model servers on this machine: those that answer, and those that are configured.

use agentd_ai::local_servers::{
    LocalServer, ProbeError, default_base_urls, is_loopback, is_same_server, probe_loopback,
};
use agentd_config::{AgentDir, read_json};
use agentd_protocol::doctor::Check;
use serde_json::Value;

use super::check::{CheckName, counted};
use crate::admin::setup::ports;

const SERVERS: CheckName = CheckName("local_servers", "local servers");

/// Model ids that are shown of one server.
const SHOWN: usize = 4;

/// Asks the usual ports, and the servers of this machine that `models.json` names. One check for each server that answers or is
/// configured.
pub(super) async fn check(agent_dir: Option<&AgentDir>) -> Vec<Check> {
    let configured = match agent_dir.map(AgentDir::models_file) {
        Some(file) => {
            tokio::task::spawn_blocking(move || configured(&read_json(&file).ok().flatten()?.value))
                .await
                .ok()
                .flatten()
                .unwrap_or_default()
        }
        None => Vec::new(),
    };
    let is_configured = |url: &String| configured.iter().any(|(_, other)| is_same_server(url, other));
    let mut urls: Vec<String> = configured.iter().map(|(_, url)| url.clone()).collect();
    urls.extend(default_base_urls().into_iter().filter(|url| !is_configured(url)));
    let mut answers = probe_loopback(&urls).await;
    let unasked = answers.split_off(configured.len());
    let mut checks: Vec<Check> = configured
        .iter()
        .zip(&answers)
        .map(|((provider, url), answer)| of_provider(provider, url, answer))
        .collect();
    checks.extend(
        unasked
            .iter()
            .flatten()
            .map(|server| SERVERS.ok_but(describe(server), "Not in models.json yet: agentctl setup local")),
    );
    if checks.is_empty() {
        checks.push(SERVERS.ok(format!("none on the usual ports ({})", ports())));
    }
    checks
}

/// Pure. The providers of a `models.json` whose server is on this machine, with its address.
fn configured(models: &Value) -> Option<Vec<(String, String)>> {
    let providers = models.get("providers")?.as_object()?;
    let local = providers.iter().filter_map(|(id, entry)| {
        let url = entry.get("baseUrl")?.as_str()?;
        // Other APIs list their models at other addresses.
        let speaks =
            entry.get("api").is_none_or(|api| api.as_str().is_some_and(|api| api.starts_with("openai")));
        (speaks && is_loopback(url)).then(|| (id.clone(), url.to_owned()))
    });
    Some(local.collect())
}

fn of_provider(provider: &str, url: &str, answer: &Result<LocalServer, ProbeError>) -> Check {
    match answer {
        Ok(server) => SERVERS.ok(format!("{provider}: {}", describe(server))),
        Err(ProbeError::NeedsKey { .. }) => SERVERS.ok(format!("{provider}: the server at {url} answers")),
        Err(ProbeError::NotAListing { .. }) => {
            SERVERS.ok(format!("{provider}: the server at {url} answers, without a list of its models"))
        }
        Err(
            error @ (ProbeError::Unreachable { .. } | ProbeError::Silent { .. } | ProbeError::Address { .. }),
        ) => {
            let advice = format!("Start the server, or take provider {provider} out of models.json.");
            SERVERS.warning(format!("{provider}: {error}"), advice)
        }
    }
}

fn describe(server: &LocalServer) -> String {
    let ids: Vec<&str> = server.models.iter().map(|model| model.id.as_str()).collect();
    let shown = ids[..ids.len().min(SHOWN)].join(", ");
    let shown = match ids.len() {
        0 => String::new(),
        count if count > SHOWN => format!(" ({shown}, ...)"),
        _ => format!(" ({shown})"),
    };
    let name = server.name.map_or_else(String::new, |name| format!("{name} at "));
    format!("{name}{}, {}{shown}", server.base_url, counted(ids.len(), "model"))
}

#[cfg(test)]
mod tests {
    use agentd_ai::local_servers::LocalModel;
    use agentd_protocol::doctor::CheckStatus;
    use serde_json::json;

    use super::*;

    fn server(count: usize) -> LocalServer {
        let model = |n| LocalModel { id: format!("m{n}"), context_window: None, sees_images: false };
        let models = (1..=count).map(model).collect();
        LocalServer { base_url: "http://127.0.0.1:1/v1".into(), name: Some("Ollama"), models }
    }

    #[test]
    fn servers_in_words() {
        assert_eq!(describe(&server(0)), "Ollama at http://127.0.0.1:1/v1, 0 models");
        assert_eq!(describe(&server(1)), "Ollama at http://127.0.0.1:1/v1, 1 model (m1)");
        assert_eq!(describe(&server(5)), "Ollama at http://127.0.0.1:1/v1, 5 models (m1, m2, m3, m4, ...)");
    }

    #[test]
    fn only_servers_of_this_machine_are_asked() {
        let models = json!({"providers": {
            "a": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions"},
            "b": {"baseUrl": "https://api.example.com/v1", "api": "openai-completions"},
            "c": {"baseUrl": "http://localhost:2", "api": "anthropic-messages"},
            "d": {"baseUrl": "http://localhost:3"}, "e": {"baseUrl": 5}, "f": 5,
        }});
        let urls: Vec<_> = configured(&models).unwrap().into_iter().map(|(_, url)| url).collect();
        assert_eq!(urls, ["http://127.0.0.1:1/v1", "http://localhost:3"]);
        assert_eq!(configured(&json!([])), None);
    }

    #[test]
    fn a_configured_server_that_is_down_is_a_warning() {
        let url = "http://127.0.0.1:1/v1";
        let down = ProbeError::Unreachable { url: url.into(), cause: "refused".into() };
        let check = of_provider("mine", url, &Err(down));
        assert_eq!(check.status, CheckStatus::Warning);
        assert!(check.detail.starts_with("mine: nothing answers at"), "{check:?}");
        let locked = ProbeError::NeedsKey { url: url.into(), status: 401 };
        assert_eq!(of_provider("mine", url, &Err(locked)).status, CheckStatus::Ok);
    }
}
