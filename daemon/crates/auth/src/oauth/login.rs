//! A new login, from the first address to the stored tokens.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agentd_http::{HttpClients, register_secret};
use agentd_protocol::oauth_setting::{LoginFlow, TokenFormat};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::AbortHandle,
};

use super::{
    Description, EndpointError, RenewError, StoredLogin,
    callback::{self, Callback, Expected},
    description::Kind,
    device::{self, Client, DeviceCode},
    endpoint::{Ask, What, address, ask, query},
    pkce::{self, Pkce},
    refresh::{expires, renew, text},
};
use crate::{AuthStore, Secret};

/// How long a browser may take to come back.
const BROWSER_LIFE: Duration = Duration::from_secs(10 * 60);

/// How many logins can be under way in a daemon.
const MAX_LOGINS: usize = 8;

/// The end of what does not end, as other programs write it: the largest whole number of JavaScript.
const NEVER_MS: i64 = 9_007_199_254_740_991;

/// Why there is no login. No message holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Nothing says how a login with the provider works.
    #[error("nothing says how a login with {0} works")]
    Unknown(String),
    /// There is no client id.
    #[error(
        "a login with {0} needs a client id: agentd has none of its own there, and uses no other program's"
    )]
    NoClientId(String),
    /// The provider has no such flow.
    #[error("{provider} has no login {}: nothing names its {missing}", match .flow { LoginFlow::Browser => "by browser", LoginFlow::Device => "by a code for another device" })]
    NoFlow {
        /// The provider.
        provider: String,
        /// The flow.
        flow: LoginFlow,
        /// The endpoint that is not known.
        missing: &'static str,
    },
    /// The port for the browser cannot be had.
    #[error("the browser could not come back: {address} cannot be listened at: {problem}")]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        problem: String,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
    /// Too many are under way.
    #[error("{MAX_LOGINS} logins are under way already")]
    TooMany,
    /// There is no such login, or no longer.
    #[error("there is no login \"{0}\" under way")]
    NotThere(String),
    /// It was given up.
    #[error("the login was cancelled")]
    Cancelled,
    /// Nobody came in time.
    #[error("nobody logged in before the time was up")]
    Expired,
    /// The provider or the user said no.
    #[error("the provider said no ({0})")]
    Denied(String),
    /// What was pasted is of no use; the login goes on.
    #[error("what was pasted is of no use: {0}")]
    Pasted(&'static str),
    /// An answer lacks something.
    #[error("the provider's answer does not hold {0}")]
    Incomplete(&'static str),
    /// An endpoint gave nothing.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// It worked, and could not be stored.
    #[error("{0}")]
    NotStored(String),
}

/// A login that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedLogin {
    /// Names it.
    pub id: String,
    /// How it goes.
    pub flow: LoginFlow,
    /// What the user opens.
    pub url: String,
    /// What the user types there.
    pub user_code: Option<String>,
    /// Where the browser comes back to.
    pub redirect_uri: Option<String>,
    /// How long it is waited for.
    pub life: Duration,
}

/// A login that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedLogin {
    /// The provider.
    pub provider: String,
    /// Whether there was an entry before.
    pub replaced: bool,
}

/// The logins that are under way in a daemon; cheap to clone.
#[derive(Clone, Default)]
pub struct Logins(Arc<Mutex<HashMap<String, Arc<Open>>>>);

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logins")
    }
}

struct Open {
    provider: String,
    /// What can be pasted; `None` for a flow that takes nothing.
    expected: Option<Expected>,
    pasted: mpsc::Sender<Callback>,
    outcome: watch::Receiver<Option<Result<FinishedLogin, LoginError>>>,
    work: AbortHandle,
    waiters: AtomicUsize,
}

/// What a login is begun with.
pub(crate) struct Begin {
    pub(crate) provider: String,
    pub(crate) description: Description,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) flow: Option<LoginFlow>,
    /// Where to listen (`PI_OAUTH_CALLBACK_HOST`).
    pub(crate) listen_host: String,
    /// Where models of the provider are asked, if the user says it.
    pub(crate) own_base_url: Option<String>,
    pub(crate) store: AuthStore,
    pub(crate) force: bool,
    pub(crate) http: Arc<HttpClients>,
}

/// How a login gets its code or its tokens.
enum Way {
    Browser {
        listener: TcpListener,
        expected: Expected,
        pkce: Pkce,
        redirect_uri: String,
        pasted: mpsc::Receiver<Callback>,
    },
    Device(DeviceCode),
}

impl Logins {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a login; one of the same provider that is under way is cancelled. It goes on by itself until it is stored,
    /// cancelled, or its time is up.
    ///
    /// # Errors
    /// [`LoginError`]. Cancel safety: nothing is left.
    pub(crate) async fn begin(&self, begin: Begin) -> Result<StartedLogin, LoginError> {
        let flow = flow_of(&begin)?;
        if begin.description.lacks_client_id() {
            return Err(LoginError::NoClientId(begin.provider));
        }
        let others: Vec<String> = self
            .open()
            .iter()
            .filter(|(_, open)| open.provider == begin.provider)
            .map(|(id, _)| id.clone())
            .collect();
        for id in &others {
            self.cancel(id);
        }
        if self.open().len() >= MAX_LOGINS {
            return Err(LoginError::TooMany);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, pasted) = mpsc::channel(1);
        let (way, mut started) = match flow {
            LoginFlow::Browser => browser(&begin, pasted).await?,
            LoginFlow::Device => by_device(&begin).await?,
        };
        started.id.clone_from(&id);
        let expected = match &way {
            Way::Browser { expected, .. } => Some(expected.clone()),
            Way::Device(_) => None,
        };
        let (tell, outcome) = watch::channel(None);
        let (provider, life) = (begin.provider.clone(), started.life);
        let (all, own) = (Arc::downgrade(&self.0), id.clone());
        let mut open = self.open();
        let work = tokio::spawn(async move {
            let done = tokio::time::timeout(life, run(&begin, way)).await;
            let done = match done {
                Ok(Ok(entry)) => store(&begin, entry).await,
                Ok(Err(error)) => Err(error),
                Err(_) => Err(LoginError::Expired),
            };
            // Whoever waits has it; a login that nobody asks for any more is forgotten with its outcome.
            tell.send_replace(Some(done));
            tokio::time::sleep(BROWSER_LIFE).await;
            forget(&all, &own);
        });
        open.insert(
            id,
            Arc::new(Open {
                provider,
                expected,
                pasted: sender,
                outcome,
                work: work.abort_handle(),
                waiters: AtomicUsize::new(0),
            }),
        );
        Ok(started)
    }

    /// Waits until a login is stored. `pasted` is what the user brought back by hand.
    ///
    /// # Errors
    /// [`LoginError`]; after [`LoginError::Pasted`] the login goes on. Cancel safety: when the last one who waits for a
    /// login stops doing so before its end, the login is cancelled.
    pub async fn finish(&self, id: &str, pasted: Option<&Secret>) -> Result<FinishedLogin, LoginError> {
        let open = self.open().get(id).cloned().ok_or_else(|| LoginError::NotThere(id.to_owned()))?;
        if let Some(pasted) = pasted {
            let expected =
                open.expected.as_ref().ok_or(LoginError::Pasted("this login takes no code back"))?;
            let callback = callback::read_pasted(pasted.expose(), expected).map_err(LoginError::Pasted)?;
            // One is enough; where there is one already, that counts.
            let _ = open.pasted.try_send(callback);
        }
        let mut outcome = open.outcome.clone();
        open.waiters.fetch_add(1, Ordering::SeqCst);
        let guard = Waiting { logins: self, id, open };
        let done = outcome.wait_for(Option::is_some).await.map(|done| done.clone());
        // Nobody asks twice for what has ended.
        self.cancel(id);
        drop(guard);
        done.ok().flatten().unwrap_or(Err(LoginError::Cancelled))
    }

    /// Gives a login up; false when there is none.
    pub fn cancel(&self, id: &str) -> bool {
        let removed = self.open().remove(id);
        removed.inspect(|open| open.work.abort()).is_some()
    }
}

/// Someone who waits for a login.
struct Waiting<'a> {
    logins: &'a Logins,
    id: &'a str,
    open: Arc<Open>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.open.waiters.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.logins.cancel(self.id);
        }
    }
}

fn forget(all: &Weak<Mutex<HashMap<String, Arc<Open>>>>, id: &str) {
    if let Some(all) = all.upgrade() {
        all.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn flow_of(begin: &Begin) -> Result<LoginFlow, LoginError> {
    let Begin { provider, description, .. } = begin;
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

async fn browser(begin: &Begin, pasted: mpsc::Receiver<Callback>) -> Result<(Way, StartedLogin), LoginError> {
    let description = &begin.description;
    let authorize_url = address(description.authorize_url.as_deref().unwrap_or_default())?;
    let pkce = Pkce::new().ok_or(LoginError::NoRandom)?;
    let state = pkce::random().ok_or(LoginError::NoRandom)?;
    let port = description.redirect_port.unwrap_or(0);
    let listener = TcpListener::bind((begin.listen_host.as_str(), port)).await;
    let listen = |error: io::Error| LoginError::Listen {
        address: format!("{}:{port}", begin.listen_host),
        problem: error.to_string(),
    };
    let listener = listener.map_err(listen)?;
    let port = listener.local_addr().map_err(listen)?.port();
    let by_path = description.kind == Kind::KeyExchange;
    // Where the provider brings no state back, the address itself is what cannot be guessed.
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
    let expected = Expected { path, state: (!by_path).then_some(state) };
    Ok((Way::Browser { listener, expected, pkce, redirect_uri, pasted }, started))
}

async fn by_device(begin: &Begin) -> Result<(Way, StartedLogin), LoginError> {
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
    Ok((Way::Device(device), started))
}

fn client<'a>(begin: &'a Begin, fields: &'a [(&'a str, &'a str)]) -> Client<'a> {
    let description = &begin.description;
    Client {
        http: &begin.http,
        token_url: description.token_url.as_deref().unwrap_or_default(),
        client_id: description.client_id.as_deref().unwrap_or_default(),
        fields,
        format: description.format,
    }
}

/// Waits for the user, and gets the tokens: the entry to store.
async fn run(begin: &Begin, way: Way) -> Result<Map<String, Value>, LoginError> {
    let description = &begin.description;
    let secret = begin.client_secret.as_ref().map(|secret| ("client_secret", secret.expose()));
    let params = description.token_params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let more: Vec<(&str, &str)> = secret.into_iter().chain(params).collect();
    let answer = match way {
        Way::Device(device) => device::wait(&client(begin, &more), &device).await?,
        Way::Browser { listener, expected, pkce, redirect_uri, mut pasted } => {
            let came = tokio::select! {
                came = callback::wait(listener, expected.clone()) => came.map_err(|error| LoginError::Listen {
                    address: redirect_uri.clone(),
                    problem: error.to_string(),
                })?,
                Some(pasted) = pasted.recv() => pasted,
            };
            let code = match came {
                Callback::Code(code) => {
                    register_secret(code.expose());
                    code
                }
                Callback::Denied(words) => return Err(LoginError::Denied(words)),
            };
            let mut fields = vec![("code", code.expose()), ("code_verifier", pkce.verifier.expose())];
            if description.kind == Kind::KeyExchange {
                fields.push(("code_challenge_method", "S256"));
            } else {
                fields.extend([
                    ("grant_type", "authorization_code"),
                    ("redirect_uri", redirect_uri.as_str()),
                    ("client_id", description.client_id.as_deref().unwrap_or_default()),
                ]);
                // Endpoints that take JSON want to see it again.
                let state = expected.state.as_deref().filter(|_| description.format == TokenFormat::Json);
                fields.extend(state.map(|state| ("state", state)));
            }
            fields.extend(&more);
            let url = description.token_url.as_deref().unwrap_or_default();
            let what = What::Post(description.format, &fields);
            ask(&begin.http, Ask { url, what, bearer: None, headers: &[] }).await?
        }
    };
    entry(begin, &answer).await
}

/// The entry for what an endpoint gave.
async fn entry(begin: &Begin, answer: &Map<String, Value>) -> Result<Map<String, Value>, LoginError> {
    let entry = match begin.description.kind {
        Kind::KeyExchange => {
            let key = text(answer, "key").ok_or(LoginError::Incomplete("a key"))?;
            json!({"type": "oauth", "access": key, "refresh": "", "expires": NEVER_MS})
        }
        Kind::Standard => {
            let access = text(answer, "access_token").ok_or(LoginError::Incomplete("a token"))?;
            let refresh = text(answer, "refresh_token").unwrap_or_default();
            // Without a way to a next one, a token whose end nobody says is used until it is refused.
            let lasts = refresh.is_empty() && !answer.contains_key("expires_in");
            let expires = if lasts { NEVER_MS } else { expires(answer) };
            let mut entry =
                json!({"type": "oauth", "access": access, "refresh": refresh, "expires": expires});
            if let Some(account) = account_of(&access) {
                entry["accountId"] = account.into();
            }
            entry
        }
        Kind::Copilot => {
            let github = text(answer, "access_token").ok_or(LoginError::Incomplete("a token"))?;
            let login = StoredLogin { refresh: Some(Secret::new(github.clone())), ..StoredLogin::default() };
            let own = begin.own_base_url.as_deref();
            let renewed = renew(&begin.http, Some(&begin.description), None, &login, own).await;
            let renewed = renewed.map_err(|error| match error {
                RenewError::Endpoint(error) => LoginError::Endpoint(error),
                RenewError::NoToken | RenewError::NoWay(_) => LoginError::Incomplete("a token"),
            })?;
            let mut entry = json!({"type": "oauth", "refresh": github});
            for (name, value) in renewed.members {
                entry[name] = value;
            }
            entry
        }
    };
    match entry {
        Value::Object(entry) => Ok(entry),
        _ => Err(LoginError::Incomplete("a token")),
    }
}

/// The account of a token of OpenAI, which says it in a claim.
fn account_of(token: &str) -> Option<String> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    Some(claims["https://api.openai.com/auth"]["chatgpt_account_id"].as_str()?.to_owned())
}

async fn store(begin: &Begin, entry: Map<String, Value>) -> Result<FinishedLogin, LoginError> {
    let (store, provider, force) = (begin.store.clone(), begin.provider.clone(), begin.force);
    let stored = tokio::task::spawn_blocking(move || store.set_login(&provider, entry, force)).await;
    match stored {
        Ok(Ok(replaced)) => Ok(FinishedLogin { provider: begin.provider.clone(), replaced }),
        Ok(Err(error)) => Err(LoginError::NotStored(error.to_string())),
        Err(_) => Err(LoginError::Cancelled),
    }
}
