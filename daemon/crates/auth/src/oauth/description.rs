//! The description of a provider's login: the built-in part, overridden by the user's.

use agentd_protocol::{
    models_file::ConfigValue,
    oauth_setting::{LoginFlow, OAuthFields, TokenFormat},
};

/// The description of a provider's login. The client id is never built in: it is the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) kind: LoginKind,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<ConfigValue>,
    pub(crate) authorize_url: Option<String>,
    pub(crate) token_url: Option<String>,
    pub(crate) device_url: Option<String>,
    pub(crate) scopes: String,
    pub(crate) redirect_host: String,
    pub(crate) redirect_port: Option<u16>,
    pub(crate) redirect_path: String,
    pub(crate) flow: Option<LoginFlow>,
    pub(crate) format: TokenFormat,
    pub(crate) authorize_params: Vec<(String, String)>,
    pub(crate) token_params: Vec<(String, String)>,
}

/// A provider's own kind of login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginKind {
    /// Nothing.
    Standard,
    /// The code is exchanged for a key, and there is no client id.
    KeyExchange,
    /// The token of the login is exchanged for a short one, again and again.
    Copilot,
}

/// One row of what is built in.
struct Row {
    provider: &'static str,
    kind: LoginKind,
    authorize_url: &'static str,
    token_url: &'static str,
    device_url: &'static str,
    scopes: &'static str,
    redirect: (&'static str, Option<u16>, &'static str),
    format: TokenFormat,
    authorize_params: &'static [(&'static str, &'static str)],
}

const STANDARD: Row = Row {
    provider: "",
    kind: LoginKind::Standard,
    authorize_url: "",
    token_url: "",
    device_url: "",
    scopes: "",
    redirect: ("127.0.0.1", None, "/callback"),
    format: TokenFormat::Form,
    authorize_params: &[],
};

/// Public endpoints, by the providers' documentation and what their own clients are known to use.
const TABLE: &[Row] = &[
    Row {
        provider: "anthropic",
        authorize_url: "https://claude.ai/oauth/authorize",
        token_url: "https://platform.claude.com/v1/oauth/token",
        scopes: "org:create_api_key user:profile user:inference",
        redirect: ("localhost", None, "/callback"),
        format: TokenFormat::Json,
        authorize_params: &[("code", "true")],
        ..STANDARD
    },
    Row {
        provider: "openai-codex",
        authorize_url: "https://auth.openai.com/oauth/authorize",
        token_url: "https://auth.openai.com/oauth/token",
        scopes: "openid profile email offline_access",
        redirect: ("localhost", Some(1455), "/auth/callback"),
        authorize_params: &[("id_token_add_organizations", "true")],
        ..STANDARD
    },
    Row {
        provider: "github-copilot",
        kind: LoginKind::Copilot,
        token_url: "https://github.com/login/oauth/access_token",
        device_url: "https://github.com/login/device/code",
        scopes: "read:user",
        ..STANDARD
    },
    Row {
        provider: "xai",
        token_url: "https://auth.x.ai/oauth2/token",
        device_url: "https://auth.x.ai/oauth2/device/code",
        scopes: "openid profile email offline_access",
        ..STANDARD
    },
    Row {
        provider: "kimi-coding",
        token_url: "https://auth.kimi.com/api/oauth/token",
        device_url: "https://auth.kimi.com/api/oauth/device_authorization",
        ..STANDARD
    },
    Row {
        provider: "openrouter",
        kind: LoginKind::KeyExchange,
        authorize_url: "https://openrouter.ai/auth",
        token_url: "https://openrouter.ai/api/v1/auth/keys",
        format: TokenFormat::Json,
        ..STANDARD
    },
];

impl Description {
    /// The description of a provider's login; `None` when neither agentd nor the user has one.
    pub(crate) fn of(provider: &str, own: Option<&OAuthFields>) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.provider == provider);
        if row.is_none() && own.is_none() {
            return None;
        }
        let row = row.unwrap_or(&STANDARD);
        let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let pairs = |own: Option<&std::collections::BTreeMap<String, String>>| -> Vec<(String, String)> {
            own.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let none = OAuthFields::default();
        let own = own.unwrap_or(&none);
        let mut authorize_params = pairs(own.authorize_params.as_ref());
        for (name, value) in row.authorize_params {
            if !authorize_params.iter().any(|(own, _)| own == name) {
                authorize_params.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
        let or = |own: &Option<String>, built_in: &str| {
            own.clone().filter(|text| !text.is_empty()).or_else(|| said(built_in))
        };
        let (host, port, path) = row.redirect;
        let path = own.redirect_path.clone().unwrap_or_else(|| path.to_owned());
        Some(Self {
            kind: row.kind,
            client_id: own.client_id.clone().filter(|id| !id.is_empty()),
            client_secret: own.client_secret.clone(),
            authorize_url: or(&own.authorize_url, row.authorize_url),
            token_url: or(&own.token_url, row.token_url),
            device_url: or(&own.device_url, row.device_url),
            scopes: own.scopes.as_ref().map_or_else(|| row.scopes.to_owned(), |scopes| scopes.0.clone()),
            redirect_host: own.redirect_host.clone().unwrap_or_else(|| host.to_owned()),
            redirect_port: own.redirect_port.or(port),
            redirect_path: if path.starts_with('/') { path } else { format!("/{path}") },
            flow: own.flow,
            format: own.token_format.unwrap_or(row.format),
            authorize_params,
            token_params: pairs(own.token_params.as_ref()),
        })
    }

    /// Returns whether a login needs a client id that is not configured.
    pub(crate) fn lacks_client_id(&self) -> bool {
        self.client_id.is_none() && self.kind != LoginKind::KeyExchange
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::endpoint::address;

    #[test]
    fn endpoints_are_built_in_and_client_ids_are_not() {
        for row in TABLE {
            let description = Description::of(row.provider, None).unwrap();
            assert_eq!(description.client_id, None, "{}", row.provider);
            let urls = [&description.authorize_url, &description.token_url, &description.device_url];
            for url in urls.into_iter().flatten() {
                assert!(url.starts_with("https://") && address(url).is_ok(), "{url}");
            }
            assert!(description.token_url.is_some(), "{}", row.provider);
            assert_eq!(description.lacks_client_id(), row.provider != "openrouter");
        }
        assert_eq!(Description::of("groq", None), None);
    }

    #[test]
    fn the_users_words_come_first() {
        let own: OAuthFields = serde_json::from_value(serde_json::json!({
            "clientId": "mine", "tokenUrl": "https://t", "redirectPort": 1, "redirectPath": "back",
            "authorizeParams": {"code": "false", "x": "y"}, "flow": "browser", "scopes": ["s"],
        }))
        .unwrap();
        let found = Description::of("anthropic", Some(&own)).unwrap();
        assert_eq!(found.authorize_url.as_deref(), Some("https://claude.ai/oauth/authorize"));
        assert_eq!(found.token_url.as_deref(), Some("https://t"));
        assert_eq!((found.redirect_port, found.redirect_path.as_str()), (Some(1), "/back"));
        assert_eq!((found.scopes.as_str(), found.flow), ("s", Some(LoginFlow::Browser)));
        let params = [("code".to_owned(), "false".to_owned()), ("x".to_owned(), "y".to_owned())];
        assert_eq!(found.authorize_params, params);
        assert_eq!(Description::of("mine", Some(&own)).unwrap().kind, LoginKind::Standard);
    }
}
