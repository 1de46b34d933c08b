//! Laws for every file and address that keys come from: for fuzz targets (`fuzz/` in the repository) and for the tests that
//! read known inputs again. Present only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics when they break the law.

use agentd_config::Environment;
use agentd_protocol::models_file::ConfigValue;
use serde_json::Value;

use crate::{StoredEntry, store::stored, value::is_resolvable};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[
    ("auth_files", auth_files),
    ("aws_files", crate::aws::fuzz::aws_files),
    ("login_callbacks", crate::oauth::fuzz::login_callbacks),
];

/// A value that stands for a secret in the seeds: no message shows it.
const SECRET: &str = "hush-hush";

/// Any entry of `auth.json` is a key, a login, or of no use for a reason; none of them is shown with what it holds.
pub fn auth_files(input: &[u8]) {
    let Ok(Value::Object(entries)) = serde_json::from_slice(input) else { return };
    for (_, entry) in entries {
        let hides = entry.as_object().is_none_or(|members| !members.keys().any(|name| name.contains(SECRET)));
        let names_it = |of: &StoredEntry| match of {
            // Variables are shown by their names, accounts and addresses as they are.
            StoredEntry::ApiKey { env, .. } => env.iter().any(|(name, _)| name.contains(SECRET)),
            StoredEntry::OAuth(login) => {
                let shown = [&login.account_id, &login.enterprise_url, &login.token_url, &login.client_id];
                let models = login.available_models.iter().flat_map(|models| models.iter());
                shown.into_iter().flatten().chain(models).any(|text| text.contains(SECRET))
            }
            StoredEntry::Unusable(_) => false,
        };
        let stored = stored(entry);
        if hides && !names_it(&stored) {
            assert!(!format!("{stored:?}").contains(SECRET), "{stored:?}");
        }
        match stored {
            StoredEntry::ApiKey { key, env } => {
                let environment: Environment = [("A", "aa"), ("EMPTY", "")].into_iter().collect();
                for value in key.iter().chain(env.iter().map(|(_, value)| value)) {
                    let _ = is_resolvable(value, &environment);
                    let literal = ConfigValue::new(value.expose().replace('$', "$$"));
                    let is_plain = !value.expose().starts_with('!');
                    assert!(!is_plain || is_resolvable(&literal, &environment) != value.expose().is_empty());
                }
            }
            StoredEntry::OAuth(login) => {
                assert!(login.access.is_some() || login.refresh.is_some());
                let (fresh, living) = (login.fresh(0, |_| false), login.living(0, |_| false));
                assert!(fresh.is_none() || living.is_some(), "a fresh token lives");
                assert!(login.living(0, |_| true).is_none(), "a refused token is none");
            }
            StoredEntry::Unusable(why) => assert!(!why.is_empty()),
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
