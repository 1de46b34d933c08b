//! The addresses, keys and headers of providers. Kept apart from the models, which clients see, since all of this can be
//! secret.

use std::collections::HashMap;

use agentd_protocol::{models_file::ConfigValue, oauth_setting::OAuthFields};

/// The address, key and headers of a provider.
#[derive(Debug, Clone, Default)]
pub struct ProviderConfig {
    /// The id that models name.
    pub id: String,
    /// A name to show.
    pub name: String,
    /// The address of the provider's requests, unless a model has its own.
    pub base_url: Option<String>,
    /// The source of the key.
    pub api_key: Option<ConfigValue>,
    /// Headers of every request; without a value where one that is built in is not sent.
    pub headers: Headers,
    /// True if `Authorization: Bearer <key>` is sent besides.
    pub auth_header: bool,
    /// True if requests need no key of ours.
    pub needs_no_key: bool,
    /// The user's settings for a login.
    pub oauth: Option<Box<OAuthFields>>,
    /// Headers of single models, by model id.
    pub(super) model_headers: HashMap<String, Headers>,
}

/// Headers by name, in order; `None` for one that is taken away.
type Headers = Vec<(String, Option<ConfigValue>)>;

fn lay_over(below: &mut Headers, over: &Headers) {
    below.retain(|(name, _)| !over.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    below.extend(over.iter().cloned());
}

impl ProviderConfig {
    /// The values that authorise something by what they are: the key, and the secret of a login's client.
    pub fn keys(&self) -> impl Iterator<Item = &ConfigValue> {
        let of_login = self.oauth.as_ref().and_then(|oauth| oauth.client_secret.as_ref());
        self.api_key.iter().chain(of_login)
    }

    /// This configuration with another one over it.
    #[must_use]
    pub(super) fn under(mut self, over: &Self) -> Self {
        if over.name != over.id {
            self.name.clone_from(&over.name);
        }
        self.base_url = over.base_url.clone().or(self.base_url);
        self.api_key = over.api_key.clone().or(self.api_key);
        self.auth_header |= over.auth_header;
        self.oauth = over.oauth.clone().or(self.oauth);
        lay_over(&mut self.headers, &over.headers);
        for (model, headers) in &over.model_headers {
            lay_over(self.model_headers.entry(model.clone()).or_default(), headers);
        }
        self
    }

    /// The values of all headers, those of single models included, by name.
    pub fn header_values(&self) -> impl Iterator<Item = (&str, &ConfigValue)> {
        let all = self.headers.iter().chain(self.model_headers.values().flatten());
        all.filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)))
    }

    /// The headers that the user configured for a model; a name that the provider sets too counts with the model's value.
    /// Without a value: the header is not sent.
    #[must_use]
    pub fn headers_of(&self, model_id: &str) -> Vec<(&str, Option<&ConfigValue>)> {
        let own = self.model_headers.get(model_id).map(Vec::as_slice).unwrap_or_default();
        let hidden = |name: &str| own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let shared = self.headers.iter().filter(|(name, _)| !hidden(name));
        shared.chain(own).map(|(name, value)| (name.as_str(), value.as_ref())).collect()
    }
}
