//! Registers secrets with the process, so that its logs and errors show none of them.

use std::collections::BTreeSet;

use agentd_config::{Environment, models::ModelRegistry};
use agentd_http::{Credentials, Redactor, register_secret};
use agentd_protocol::models_file::ConfigValue;

use crate::{Secret, StoredCredentials, StoredEntry, value};

/// The schemes that precede a secret in a header.
const SCHEMES: [&str; 4] = ["Bearer ", "bearer ", "Basic ", "basic "];

/// Registers the values of the key variables of the environment, and the secrets of `models.json`. Reads no files and runs nothing.
pub(crate) fn register_configured_secrets(
    key_variables: &BTreeSet<String>,
    environment: &Environment,
    registry: &ModelRegistry,
) {
    for name in key_variables {
        environment.non_empty(name).into_iter().for_each(register_secret);
    }
    for provider in registry.configured() {
        provider.keys().for_each(literals);
        let secret = provider.header_values().filter(|(name, _)| Redactor::hides(name));
        secret.for_each(|(_, value)| literals(value));
    }
}

/// Registers the secrets of `auth.json`.
pub(crate) fn register_stored_secrets(stored: &StoredCredentials) {
    for entry in stored.values() {
        match entry {
            StoredEntry::ApiKey { key, env } => {
                key.iter().for_each(literals);
                let secret = env.iter().filter(|(name, _)| Redactor::hides(name));
                secret.for_each(|(_, value)| literals(value));
            }
            StoredEntry::OAuth(login) => {
                login.access.iter().chain(&login.refresh).for_each(|token| register_secret(token.expose()));
            }
            StoredEntry::Unusable(_) => {}
        }
    }
}

/// Registers what authorises a request.
pub(crate) fn register_credentials(credentials: &Credentials) {
    credentials.api_key.iter().for_each(register_one);
    if let Some(aws) = &credentials.aws {
        register_secret(aws.secret_access_key.expose());
        aws.session_token.iter().for_each(register_one);
    }
    for (name, value) in &credentials.headers {
        let token = SCHEMES.into_iter().find_map(|scheme| value.expose().strip_prefix(scheme));
        if Redactor::hides(name) || token.is_some() {
            register_secret(token.unwrap_or(value.expose()));
        }
    }
}

pub(crate) fn register_one(secret: &Secret) {
    register_secret(secret.expose());
}

/// Registers the literal parts of a value. A command may hold a secret, so the whole command is registered.
fn literals(value: &ConfigValue) {
    value::literals(value).iter().for_each(|text| {
        register_secret(SCHEMES.into_iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text));
    });
}
