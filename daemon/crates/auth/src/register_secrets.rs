//! Tells the process which secrets there are, so that nothing that it says of itself holds one.

use agentd_http::{Credentials, Redactor, register_secret};
use agentd_protocol::models_file::ConfigValue;

use crate::{Auth, Secret, StoredCredentials, StoredEntry, value};

/// What goes before a secret in a header.
const SCHEMES: [&str; 4] = ["Bearer ", "bearer ", "Basic ", "basic "];

impl Auth {
    /// What the environment and `models.json` say. Reads no files and runs nothing.
    pub(crate) fn register_configured_secrets(&self) {
        let environment = self.environment();
        for name in self.key_variables() {
            environment.non_empty(&name).into_iter().for_each(register_secret);
        }
        for provider in self.registry().configured() {
            provider.keys().for_each(literals);
            let secret = provider.header_values().filter(|(name, _)| Redactor::hides(name));
            secret.for_each(|(_, value)| literals(value));
        }
    }
}

/// What `auth.json` holds.
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

/// What a request is authorised by.
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

/// The parts of a value that stand there as they are. A command may hold a secret, and is known as a whole.
fn literals(value: &ConfigValue) {
    value::literals(value).iter().for_each(|text| {
        register_secret(SCHEMES.into_iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text));
    });
}
