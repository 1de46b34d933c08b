//! Keys: the providers that have one, and the file of stored keys. No key is ever shown.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use agentd_auth::{AuthStore, KeySource, KeyStatus, StoredEntry, providers_with_variables, variables_for};
use agentd_config::{AgentDir, Environment, models::UsableModels, read_json};
use agentd_protocol::doctor::Check;
use serde_json::Value;

use super::check::{CheckName, LoadedSetup, NO_MODEL, counted, shell_word, show};
use crate::admin::Context;

const KEYS: CheckName = CheckName("keys", "keys");
const FILE: CheckName = CheckName("auth_file", "auth.json");

/// The permissions that only the owner should have.
const OF_OTHERS: u32 = 0o077;

/// One check for each provider that has a key, or an incomplete one.
pub(super) fn check(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let adapters = agentd_ai::ProviderRegistry::builtin();
    let apis: Vec<&str> = adapters.apis().collect();
    let (mut good, mut bad): (Vec<Check>, Vec<Check>) = Default::default();
    for provider in found.registry.providers() {
        let missing = found.auth.missing_variables(provider).join(" and ");
        let Some(KeyStatus { source, problem, .. }) = found.auth.status(provider) else { continue };
        let what = words(provider, source, &context.environment);
        if let Some(problem) = problem {
            // The check of the file reports unusable entries.
            if !is_unusable_entry(found, provider, source) {
                let advice = format!("`agentctl login {provider}` stores another key.");
                bad.push(KEYS.warning(format!("{provider}: {what}, but {problem}"), advice));
            }
        } else if missing.is_empty() {
            let spoken = found.registry.may_speak(provider, &apis);
            let note = if spoken { "" } else { ", but this version of agentd does not speak its API" };
            good.push(KEYS.ok(format!("{provider}: {what}{note}")));
        } else {
            bad.push(incomplete(provider, &what, &missing));
        }
    }
    bad.extend(incomplete_variables(context, found));
    if good.is_empty() {
        good.push(KEYS.warning("no provider has a key that can be used", NO_MODEL));
        let empty = found.auth.empty_key_variables().into_iter();
        good.extend(empty.map(|name| {
            KEYS.warning(format!("{name} is set and empty"), "Set it to a key; an empty one counts as none.")
        }));
    }
    good.append(&mut bad);
    good
}

fn incomplete(provider: &str, what: &str, missing: &str) -> Check {
    let advice = format!("Set {missing}.");
    KEYS.warning(format!("{provider}: {what}, but it also needs {missing}"), advice)
}

/// Variables with a key that is unusable since another variable is not set. Providers share such variables: a variable that one
/// provider can use is not reported for the others.
fn incomplete_variables(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let variable = |provider: &str| {
        let known = variables_for(provider)?;
        known
            .split_whitespace()
            .next()
            .filter(|name| context.environment.non_empty(name).is_some())
            .map(str::to_owned)
    };
    let keyed = || found.registry.providers().filter_map(|provider| Some((provider, variable(provider)?)));
    let in_use: Vec<String> = keyed()
        .filter(|(provider, _)| found.auth.is_configured(provider))
        .map(|(_, variable)| variable)
        .collect();
    let idle = keyed().filter(|(_, variable)| !in_use.contains(variable));
    let checks = idle.filter_map(|(provider, variable)| {
        let missing = found.auth.missing_variables(provider);
        let what = format!("{variable} is set");
        (!missing.is_empty()).then(|| incomplete(provider, &what, &missing.join(" and ")))
    });
    checks.collect()
}

/// The source of a key, in words.
fn words(provider: &str, source: KeySource, environment: &Environment) -> String {
    match source {
        KeySource::Flag => "a key from --api-key".into(),
        KeySource::Stored => "a key in auth.json".into(),
        KeySource::ModelsFile => "a key in models.json".into(),
        KeySource::Variable(name) => {
            // The variables that belong to the key.
            let known = variables_for(provider).unwrap_or_default();
            let is_set = |other: &&str| *other != name && environment.non_empty(other).is_some();
            let others: Vec<&str> = known.split_whitespace().filter(is_set).collect();
            match others.as_slice() {
                [] => format!("{name} is set"),
                others => format!("{name} and {} are set", others.join(" and ")),
            }
        }
    }
}

fn is_unusable_entry(found: &LoadedSetup, provider: &str, source: KeySource) -> bool {
    let entries = || AuthStore::at(found.agent_dir.auth_file()).read().unwrap_or_default();
    source == KeySource::Stored && matches!(entries().get(provider), Some(StoredEntry::Unusable(_)))
}

/// Checks that the file of stored keys can be used, and that only its owner can read it.
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
                Some(StoredEntry::Unusable(why)) => Some(FILE.warning(
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
    checks.extend(open_to_others(&agent_dir.mcp_auth_file()));
    checks
}

/// Entries whose provider is unknown but similar to a known one. Other unknown entries may belong to another program.
pub(super) fn misspelt(found: &LoadedSetup) -> Vec<Check> {
    let path = found.agent_dir.auth_file();
    let usable_models =
        UsableModels { registry: &found.registry, apis: &[], has_auth: &|_| false, plan: &|_| None };
    let is_known = |id: &str| {
        found.registry.provider(id).is_some() || providers_with_variables().any(|known| known == id)
    };
    let entries = providers_in(&path).into_iter().filter(|id| !is_known(id));
    let checks = entries.filter_map(|id| {
        let meant = usable_models.similar_providers(&id).into_iter().next()?;
        let detail = format!("{}: there is no provider \"{id}\"; did you mean \"{meant}\"?", show(&path));
        Some(FILE.warning(
            detail,
            format!("`agentctl login {meant}` stores the key, `agentctl logout {id}` removes this one."),
        ))
    });
    checks.collect()
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
        FILE.warning(detail, format!("chmod 600 {}", shell_word(path)))
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
            auth_services: agentd_auth::AuthServices::default(),
        };
        let checks = check(&context, &LoadedSetup::read(&context).unwrap());
        assert!(!format!("{checks:?}").contains("hush"), "{checks:?}");
        checks.into_iter().map(|check| (check.status, check.detail)).collect()
    }

    #[test]
    fn a_misspelt_provider_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let entry = r#"{"type":"api_key","key":"hush"}"#;
        let text = format!(
            r#"{{"antropic":{entry},"openai":{entry},"typesafe":{entry},"of another program":{entry}}}"#
        );
        fs::write(folder.path().join("auth.json"), text).unwrap();
        let context = Context {
            environment: [("AGENTD_DIR", folder.path())].into_iter().collect(),
            cwd: folder.path().into(),
            compat: false,
            auth_services: agentd_auth::AuthServices::default(),
        };
        let checks = misspelt(&LoadedSetup::read(&context).unwrap());
        let [check] = checks.as_slice() else { panic!("{checks:?}") };
        assert!(
            check.detail.ends_with("there is no provider \"antropic\"; did you mean \"anthropic\"?"),
            "{check:?}"
        );
        assert!(!format!("{checks:?}").contains("hush"));
    }

    #[test]
    fn where_keys_come_from() {
        let nothing = (Warning, "no provider has a key that can be used".to_owned());
        assert_eq!(check_keys("{}", "{}", &[]), std::slice::from_ref(&nothing));
        let none = check_keys("{}", "{}", &[("OPENAI_API_KEY", "")]);
        assert_eq!(none, [nothing, (Warning, "OPENAI_API_KEY is set and empty".to_owned())]);
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
        has(Warning, "lost: a key in models.json, but it is empty, or names a variable that is not set");
        has(Warning, "groq: a key in auth.json, but it is empty, or names a variable that is not set");
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn a_key_that_needs_another_variable() {
        let account = ("CLOUDFLARE_ACCOUNT_ID", "a");
        let alone = check_keys("{}", "{}", &[("CLOUDFLARE_API_KEY", "hush")]);
        let details: Vec<&str> = alone.iter().map(|(_, detail)| detail.as_str()).collect();
        assert_eq!(
            details,
            [
                "no provider has a key that can be used",
                "cloudflare-ai-gateway: CLOUDFLARE_API_KEY is set, but it also needs CLOUDFLARE_ACCOUNT_ID and \
                 CLOUDFLARE_GATEWAY_ID",
                "cloudflare-workers-ai: CLOUDFLARE_API_KEY is set, but it also needs CLOUDFLARE_ACCOUNT_ID",
            ]
        );
        let with_account = check_keys("{}", "{}", &[("CLOUDFLARE_API_KEY", "hush"), account]);
        let expected =
            "cloudflare-workers-ai: CLOUDFLARE_API_KEY and CLOUDFLARE_ACCOUNT_ID are set".to_owned();
        assert_eq!(with_account, [(Ok, expected)]);
    }
}
