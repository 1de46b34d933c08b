//! The flows of a login: by browser, and by a code that is typed on another device.

use std::{io, sync::Arc, time::Duration};

use crate::Secret;
use agentd_http::HttpClients;
use agentd_protocol::oauth_setting::LoginFlow;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use tokio::{net::TcpListener, sync::mpsc};

use super::{
    callback::{Callback, ExpectedCallback},
    description::{Description, LoginKind},
    device::{self, DeviceClient, DeviceCode},
    endpoint::{address, query},
    error::LoginError,
};
use crate::AuthStore;

/// The time that the user has to come back with the browser.
pub(super) const BROWSER_LIFE: Duration = Duration::from_secs(10 * 60);

/// A login that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedLogin {
    /// Names it.
    pub id: String,
    /// The flow.
    pub flow: LoginFlow,
    /// The address that the user opens.
    pub url: String,
    /// The code that the user types there.
    pub user_code: Option<String>,
    /// The address that the browser comes back to.
    pub redirect_uri: Option<String>,
    /// The time until the login expires.
    pub life: Duration,
}

/// The request to begin a login.
pub(crate) struct LoginRequest {
    pub(crate) provider: String,
    pub(crate) description: Description,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) flow: Option<LoginFlow>,
    /// The host to listen at (`PI_OAUTH_CALLBACK_HOST`).
    pub(crate) listen_host: String,
    /// The address of the provider's models, if the user configured one.
    pub(crate) own_base_url: Option<String>,
    pub(crate) store: AuthStore,
    pub(crate) force: bool,
    pub(crate) http: Arc<HttpClients>,
}

/// The pending part of a login: the way to its code or its tokens.
pub(super) enum LoginSteps {
    Browser {
        listener: TcpListener,
        expected: ExpectedCallback,
        pkce: Pkce,
        redirect_uri: String,
        pasted: mpsc::Receiver<Callback>,
    },
    Device(DeviceCode),
}

pub(super) fn flow_of(begin: &LoginRequest) -> Result<LoginFlow, LoginError> {
    let LoginRequest { provider, description, .. } = begin;
    let usual = description.flow.unwrap_or(match description.authorize_url {
        Some(_) => LoginFlow::Browser,
        None => LoginFlow::Device,
    });
    let flow = begin.flow.unwrap_or(usual);
    let missing = match flow {
        LoginFlow::Browser if description.authorize_url.is_none() => Some("\"authorizeUrl\""),
        LoginFlow::Device if description.device_url.is_none() => Some("\"deviceUrl\""),
        _ if description.token_url.is_none() => Some("\"tokenUrl\""),
        _ => None,
    };
    match missing {
        Some(missing) => Err(LoginError::NoFlow { provider: provider.clone(), flow, missing }),
        None => Ok(flow),
    }
}

pub(super) async fn browser(
    begin: &LoginRequest,
    pasted: mpsc::Receiver<Callback>,
) -> Result<(LoginSteps, StartedLogin), LoginError> {
    let description = &begin.description;
    let authorize_url = address(description.authorize_url.as_deref().unwrap_or_default())?;
    let pkce = Pkce::new().ok_or(LoginError::NoRandom)?;
    let state = random_text().ok_or(LoginError::NoRandom)?;
    let port = description.redirect_port.unwrap_or(0);
    let listener = TcpListener::bind((begin.listen_host.as_str(), port)).await;
    let listen = |error: io::Error| LoginError::Listen {
        address: format!("{}:{port}", begin.listen_host),
        problem: error.to_string(),
    };
    let listener = listener.map_err(listen)?;
    let port = listener.local_addr().map_err(listen)?.port();
    let by_path = description.kind == LoginKind::KeyExchange;
    // Where the provider brings no state back, the address itself must be unguessable.
    let path = if by_path {
        format!("{}/{state}", description.redirect_path)
    } else {
        description.redirect_path.clone()
    };
    let redirect_uri = format!("http://{}:{port}{path}", description.redirect_host);
    let mut fields = if by_path {
        vec![("callback_url", redirect_uri.as_str())]
    } else {
        vec![
            ("response_type", "code"),
            ("client_id", description.client_id.as_deref().unwrap_or_default()),
            ("redirect_uri", redirect_uri.as_str()),
            ("state", state.as_str()),
        ]
    };
    if !description.scopes.is_empty() {
        fields.push(("scope", &description.scopes));
    }
    fields.extend([("code_challenge", pkce.challenge.as_str()), ("code_challenge_method", "S256")]);
    fields.extend(description.authorize_params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut url = authorize_url;
    let more = query(&fields);
    let all =
        url.query().filter(|own| !own.is_empty()).map_or_else(|| more.clone(), |own| format!("{own}&{more}"));
    url.set_query(Some(&all));
    let started = StartedLogin {
        id: String::new(),
        flow: LoginFlow::Browser,
        url: url.into(),
        user_code: None,
        redirect_uri: Some(redirect_uri.clone()),
        life: BROWSER_LIFE,
    };
    let expected = ExpectedCallback { path, state: (!by_path).then_some(state) };
    Ok((LoginSteps::Browser { listener, expected, pkce, redirect_uri, pasted }, started))
}

pub(super) async fn by_device(begin: &LoginRequest) -> Result<(LoginSteps, StartedLogin), LoginError> {
    let description = &begin.description;
    let url = description.device_url.as_deref().unwrap_or_default();
    let device = device::begin(&client(begin, &[]), url, &description.scopes).await?;
    let started = StartedLogin {
        id: String::new(),
        flow: LoginFlow::Device,
        url: device.url.clone(),
        user_code: Some(device.user_code.clone()),
        redirect_uri: None,
        life: device.life,
    };
    Ok((LoginSteps::Device(device), started))
}

pub(super) fn client<'a>(begin: &'a LoginRequest, fields: &'a [(&'a str, &'a str)]) -> DeviceClient<'a> {
    let description = &begin.description;
    DeviceClient {
        http: &begin.http,
        token_url: description.token_url.as_deref().unwrap_or_default(),
        client_id: description.client_id.as_deref().unwrap_or_default(),
        fields,
        format: description.format,
    }
}

/// The proof that the code is exchanged by the program that asked for it (RFC 7636, S256).
pub struct Pkce {
    /// Sent with the code.
    pub verifier: Secret,
    /// Sent with the browser.
    pub challenge: String,
}

impl Pkce {
    /// A new pair; `None` when the system has no random numbers.
    #[must_use]
    pub fn new() -> Option<Self> {
        let verifier = random_text()?;
        let challenge = challenge(&verifier);
        Some(Self { verifier: Secret::new(verifier), challenge })
    }
}

/// 256 random bits in letters, digits, `-` and `_`; `None` when the system has no random numbers.
#[must_use]
pub fn random_text() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(random_text().unwrap(), random_text().unwrap());
        assert_eq!(Pkce::new().unwrap().verifier.expose().len(), 43);
    }
}
