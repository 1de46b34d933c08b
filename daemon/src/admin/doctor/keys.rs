//! Keys: which providers have one, and the file of stored ones. No key is ever shown.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use agentd_auth::{AuthStore, Stored, variables_for};
use agentd_config::{AgentDir, Environment, read_json};
use agentd_protocol::doctor::Check;
use serde_json::Value;

use super::{
    diagnose::{Found, show},
    finding::{Name, counted},
    folders::word,
    models::NO_MODEL,
};
use crate::admin::Context;

const KEYS: Name = Name("keys", "keys");
const FILE: Name = Name("auth_file", "auth.json");

/// The permissions that no one but the owner should have.
const OF_OTHERS: u32 = 0o077;

/// One check for each provider that has a key, or that someone meant to give one.
pub(super) fn check(context: &Context, found: &Found) -> Vec<Check> {
    // A file that cannot be read has a check of its own.
    let stored = AuthStore::at(found.agent_dir.auth_file()).read().unwrap_or_default();
    let adapters = agentd_ai::Registry::builtin();
    let apis: Vec<&str> = adapters.apis().collect();
    let (mut good, mut bad): (Vec<Check>, Vec<Check>) = Default::default();
    for provider in found.registry.providers() {
        let entry = stored.get(provider);
        let in_models = found.registry.provider(provider).is_some_and(|config| config.api_key.is_some());
        if found.auth.is_configured(provider) {
            let source = if entry.is_some() {
                "a key in auth.json".to_owned()
            } else if in_models {
                "a key in models.json".to_owned()
            } else {
                variables(provider, &context.environment)
            };
            let note = if found.registry.may_speak(provider, &apis) {
                ""
            } else {
                ", but this version of agentd does not speak its API"
            };
            good.push(KEYS.ok(format!("{provider}: {source}{note}")));
        } else if let Some(what) = useless(entry, in_models) {
            let advice = format!("`agentctl login {provider}` stores another key.");
            bad.push(KEYS.warning(format!("{provider}: {what}"), advice));
        }
    }
    if good.is_empty() {
        good.push(KEYS.warning("no provider has a key", NO_MODEL));
    }
    good.append(&mut bad);
    good
}

/// The variables that hold a provider's key, by name.
fn variables(provider: &str, environment: &Environment) -> String {
    let known = variables_for(provider).unwrap_or_default();
    let set: Vec<&str> =
        known.split_whitespace().filter(|name| environment.non_empty(name).is_some()).collect();
    match set.as_slice() {
        [] => "a token in the environment".into(),
        [one] => format!("{one} is set"),
        several => format!("{} are set", several.join(" and ")),
    }
}

/// Why what was configured for a provider is no key.
fn useless(entry: Option<&Stored>, in_models: bool) -> Option<&'static str> {
    match entry {
        // The check of the file names this one.
        Some(Stored::Unusable(_)) => None,
        Some(Stored::OAuth) => Some("a login is stored that cannot be used"),
        Some(Stored::ApiKey { .. }) => Some("the key in auth.json names a variable that is not set"),
        None => in_models.then_some("the key in models.json names a variable that is not set"),
    }
}

/// Whether the file of stored keys can be used, and nobody else reads it.
pub(super) fn file(agent_dir: &AgentDir) -> Vec<Check> {
    let path = agent_dir.auth_file();
    let mut checks = match AuthStore::at(&path).read() {
        Err(error) => {
            let advice =
                "No stored key can be used until then; keys in the environment and in models.json can.";
            vec![FILE.problem(error.to_string(), advice)]
        }
        Ok(stored) => {
            let entries = providers_in(&path);
            let unusable = entries.iter().filter_map(|provider| match stored.get(provider) {
                Some(Stored::Unusable(why)) => Some(FILE.warning(
                    format!("{}: the entry \"{provider}\" cannot be used: {why}", show(&path)),
                    format!("Repair the entry or remove it; `agentctl login {provider}` stores a key."),
                )),
                _ => None,
            });
            let mut checks: Vec<Check> = unusable.collect();
            let detail = if path.exists() {
                format!("{}: {}", show(&path), counted(entries.len(), "stored key"))
            } else {
                format!("no {}: nothing is stored", show(&path))
            };
            checks.insert(0, FILE.ok(detail));
            checks
        }
    };
    checks.extend(open_to_others(&path));
    checks
}

/// The providers that have an entry.
fn providers_in(path: &Path) -> Vec<String> {
    match read_json(path).ok().flatten().map(|document| document.value) {
        Some(Value::Object(entries)) => entries.into_iter().map(|(provider, _)| provider).collect(),
        _ => Vec::new(),
    }
}

fn open_to_others(path: &Path) -> Option<Check> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & OF_OTHERS != 0).then(|| {
        let detail = format!("{}: other users can get at it (mode {mode:04o})", show(path));
        FILE.warning(detail, format!("chmod 600 {}", word(path)))
    })
}

#[cfg(test)]
mod tests {
    use agentd_protocol::doctor::CheckStatus::{self, *};

    use super::*;

    fn check_file(text: Option<(&str, u32)>) -> Vec<(CheckStatus, String)> {
        let folder = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(folder.path());
        let path = agent_dir.auth_file();
        if let Some((text, mode)) = text {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let checks = file(&agent_dir);
        assert!(!format!("{checks:?}").contains("hush"), "{checks:?}");
        checks
            .into_iter()
            .map(|check| (check.status, check.detail + &check.advice.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn stored_keys() {
        assert!(check_file(None)[0].1.ends_with("nothing is stored"));
        let good = r#"{"a":{"type":"api_key","key":"hush"},"b":{"type":"api_key","key":"hush"}}"#;
        let fine = check_file(Some((good, 0o600)));
        assert_eq!(fine.len(), 1, "{fine:?}");
        assert!(fine[0].1.ends_with("auth.json: 2 stored keys"), "{fine:?}");
        let open = check_file(Some((good, 0o644)));
        assert!(
            open[1].0 == Warning && open[1].1.contains("mode 0644") && open[1].1.contains("chmod 600 "),
            "{open:?}"
        );
        let odd = check_file(Some((r#"{"a":{"type":"hush"}}"#, 0o600)));
        assert!(odd[1].0 == Warning && odd[1].1.contains("the entry \"a\" cannot be used"), "{odd:?}");
        let broken = check_file(Some(("{hush", 0o600)));
        assert_eq!(broken[0].0, Problem, "{broken:?}");
    }

    fn check_keys(models: &str, auth: &str, variables: &[(&str, &str)]) -> Vec<(CheckStatus, String)> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("models.json"), models).unwrap();
        fs::write(folder.path().join("auth.json"), auth).unwrap();
        let mut environment: Environment = variables.iter().copied().collect();
        environment.set("AGENTD_DIR", folder.path());
        let context = Context {
            environment,
            cwd: folder.path().into(),
            compat: false,
            key_commands: agentd_auth::CommandCache::default(),
        };
        let checks = check(&context, &Found::read(&context).unwrap());
        assert!(!format!("{checks:?}").contains("hush"), "{checks:?}");
        checks.into_iter().map(|check| (check.status, check.detail)).collect()
    }

    #[test]
    fn where_keys_come_from() {
        let none = check_keys("{}", "{}", &[("OPENAI_API_KEY", "")]);
        assert_eq!(none, [(Warning, "no provider has a key".to_owned())]);
        let models = r#"{"providers":{
            "mine":{"baseUrl":"http://h","api":"openai-completions","apiKey":"hush","models":[{"id":"m"}]},
            "lost":{"baseUrl":"http://h","api":"openai-completions","apiKey":"$NOT_SET","models":[{"id":"m"}]},
            "odd":{"baseUrl":"http://h","api":"telepathy","apiKey":"hush","models":[{"id":"m"}]}}}"#;
        let auth = r#"{"openai":{"type":"api_key","key":"hush"},"groq":{"type":"api_key","key":"$NOT_SET"}}"#;
        let found = check_keys(models, auth, &[("OPENAI_API_KEY", "hush"), ("ANTHROPIC_API_KEY", "hush")]);
        let has = |status: CheckStatus, text: &str| {
            assert!(
                found.iter().any(|(found, detail)| *found == status && detail.starts_with(text)),
                "{text}: {found:?}"
            );
        };
        has(Ok, "anthropic: ANTHROPIC_API_KEY is set");
        has(Ok, "openai: a key in auth.json");
        has(Ok, "mine: a key in models.json");
        has(Ok, "odd: a key in models.json, but this version of agentd does not speak its API");
        has(Warning, "lost: the key in models.json names a variable that is not set");
        has(Warning, "groq: the key in auth.json names a variable that is not set");
        assert_eq!(found.len(), 6, "{found:?}");
    }
}
