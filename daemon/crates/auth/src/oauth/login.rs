//! A new login, from the first address to the stored tokens.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use agentd_http::register_secret;
use agentd_protocol::oauth_setting::{LoginFlow, TokenFormat};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};

use super::{
    StoredLogin,
    callback::{self, Callback, CallbackOutcome, ExpectedCallback},
    description::LoginKind,
    device,
    endpoint::{EndpointRequest, RequestKind, ask, text},
    error::{LoginError, MAX_LOGINS, RenewError},
    flow::{BROWSER_LIFE, LoginRequest, LoginSteps, StartedLogin, browser, by_device, client, flow_of},
    refresh::{expires, renew},
};
use crate::Secret;

/// The end of what does not end, as other programs write it: the largest whole number of JavaScript.
const NEVER_MS: i64 = 9_007_199_254_740_991;

/// A login that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedLogin {
    /// The provider.
    pub provider: String,
    /// True if there was an entry before.
    pub replaced: bool,
    /// The number of the provider's models on offer, where only the session knows them that the login belongs to.
    pub models: Option<u64>,
}

/// The logins that are under way in a daemon; cheap to clone.
#[derive(Clone, Default)]
pub struct Logins(pub(super) AllLogins);

/// The logins, by their ids.
pub(super) type AllLogins = Arc<Mutex<HashMap<String, Arc<Open>>>>;

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logins")
    }
}

/// How a login has ended, once it has.
pub(super) type Outcome = Option<Result<FinishedLogin, LoginError>>;

pub(super) struct Open {
    provider: String,
    /// The code that can be pasted, and who takes it; `None` for a flow that takes none.
    pasted: Option<(ExpectedCallback, mpsc::Sender<Callback>)>,
    outcome: watch::Receiver<Outcome>,
    work: LoginWork,
    waiters: AtomicUsize,
}

/// What works for a login.
pub(super) enum LoginWork {
    /// A task of [`Logins`].
    Own(AbortHandle),
    /// Something else, which is told where it is given up.
    Outside(watch::Sender<bool>),
}

impl LoginWork {
    fn stop(&self) {
        match self {
            Self::Own(task) => task.abort(),
            Self::Outside(cancelled) => drop(cancelled.send_replace(true)),
        }
    }
}

impl Open {
    /// A login of something else than agentd.
    pub(super) fn outside(
        provider: String,
        outcome: watch::Receiver<Outcome>,
        cancelled: watch::Sender<bool>,
    ) -> Self {
        let work = LoginWork::Outside(cancelled);
        Self { provider, pasted: None, outcome, work, waiters: AtomicUsize::new(0) }
    }

    /// Whether somebody waits for its end.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }
}

impl Logins {
    pub(super) fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a login; one of the same provider that is under way is cancelled. It goes on by itself until it is stored,
    /// cancelled, or its time is up.
    ///
    /// # Errors
    /// [`LoginError`]. Cancel safety: nothing is left.
    pub(crate) async fn begin(&self, begin: LoginRequest) -> Result<StartedLogin, LoginError> {
        let flow = flow_of(&begin)?;
        if begin.description.lacks_client_id() {
            return Err(LoginError::NoClientId(begin.provider));
        }
        self.make_room(&begin.provider)?;
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, pasted) = mpsc::channel(1);
        let (way, mut started) = match flow {
            LoginFlow::Browser => browser(&begin, pasted).await?,
            LoginFlow::Device => by_device(&begin).await?,
        };
        started.id.clone_from(&id);
        let pasted = match &way {
            LoginSteps::Browser { expected, .. } => Some((expected.clone(), sender)),
            LoginSteps::Device(_) => None,
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
            // A waiting client has the outcome now; without one, the login and its outcome are removed later.
            tell.send_replace(Some(done));
            tokio::time::sleep(BROWSER_LIFE).await;
            forget(&all, &own);
        });
        open.insert(
            id,
            Arc::new(Open {
                provider,
                pasted,
                outcome,
                work: LoginWork::Own(work.abort_handle()),
                waiters: AtomicUsize::new(0),
            }),
        );
        Ok(started)
    }

    /// Gives up other logins with the provider.
    ///
    /// # Errors
    /// [`LoginError::TooMany`].
    pub(super) fn make_room(&self, provider: &str) -> Result<(), LoginError> {
        let mut all = self.open();
        all.retain(|_, open| {
            let stays = open.provider != provider;
            if !stays {
                open.work.stop();
            }
            stays
        });
        if all.len() >= MAX_LOGINS { Err(LoginError::TooMany) } else { Ok(()) }
    }

    /// Waits until a login is stored. `pasted` is what the user brought back by hand.
    ///
    /// # Errors
    /// [`LoginError`]; after [`LoginError::Pasted`] the login goes on. Cancel safety: when the last one who waits for a
    /// login stops doing so before its end, the login is cancelled.
    pub async fn finish(&self, id: &str, pasted: Option<&Secret>) -> Result<FinishedLogin, LoginError> {
        let open = self.open().get(id).cloned().ok_or_else(|| LoginError::NotThere(id.to_owned()))?;
        if let Some(pasted) = pasted {
            let (expected, sender) =
                open.pasted.as_ref().ok_or(LoginError::Pasted("this login takes no code back"))?;
            let callback = callback::read_pasted(pasted.expose(), expected).map_err(LoginError::Pasted)?;
            // One is enough; where there is one already, that counts.
            let _ = sender.try_send(callback);
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
        removed.inspect(|open| open.work.stop()).is_some()
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

pub(super) fn forget(all: &Weak<Mutex<HashMap<String, Arc<Open>>>>, id: &str) {
    if let Some(all) = all.upgrade() {
        all.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Waits for the user, and gets the tokens: the entry to store.
async fn run(begin: &LoginRequest, way: LoginSteps) -> Result<Map<String, Value>, LoginError> {
    let description = &begin.description;
    let secret = begin.client_secret.as_ref().map(|secret| ("client_secret", secret.expose()));
    let params = description.token_params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let more: Vec<(&str, &str)> = secret.into_iter().chain(params).collect();
    let answer = match way {
        LoginSteps::Device(device) => device::wait(&client(begin, &more), &device).await?,
        LoginSteps::Browser { listener, expected, pkce, redirect_uri, mut pasted } => {
            let came = tokio::select! {
                came = callback::wait_for_callback(listener, expected.clone()) => came.map_err(|error| LoginError::Listen {
                    address: redirect_uri.clone(),
                    problem: error.to_string(),
                })?,
                Some(pasted) = pasted.recv() => pasted,
            };
            let code = match came.outcome {
                CallbackOutcome::Code(code) => {
                    register_secret(code.expose());
                    code
                }
                CallbackOutcome::Denied(words) => return Err(LoginError::Denied(words)),
            };
            let mut fields = vec![("code", code.expose()), ("code_verifier", pkce.verifier.expose())];
            if description.kind == LoginKind::KeyExchange {
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
            let what = RequestKind::Post(description.format, &fields);
            ask(&begin.http, EndpointRequest { url, what, bearer: None, headers: &[] }).await?
        }
    };
    entry(begin, &answer).await
}

/// The entry for what an endpoint gave.
async fn entry(begin: &LoginRequest, answer: &Map<String, Value>) -> Result<Map<String, Value>, LoginError> {
    let entry = match begin.description.kind {
        LoginKind::KeyExchange => {
            let key = text(answer, "key").ok_or(LoginError::Incomplete("a key"))?;
            json!({"type": "oauth", "access": key, "refresh": "", "expires": NEVER_MS})
        }
        LoginKind::Standard => {
            let access = text(answer, "access_token").ok_or(LoginError::Incomplete("a token"))?;
            let refresh = text(answer, "refresh_token").unwrap_or_default();
            // Without a refresh token, a token of unknown end is used until it is refused.
            let lasts = refresh.is_empty() && !answer.contains_key("expires_in");
            let expires = if lasts { NEVER_MS } else { expires(answer) };
            let mut entry =
                json!({"type": "oauth", "access": access, "refresh": refresh, "expires": expires});
            if let Some(account) = account_of(&access) {
                entry["accountId"] = account.into();
            }
            entry
        }
        LoginKind::Copilot => {
            let github = text(answer, "access_token").ok_or(LoginError::Incomplete("a token"))?;
            let login = StoredLogin { refresh: Some(Secret::new(github.clone())), ..StoredLogin::default() };
            let own = begin.own_base_url.as_deref();
            let renewed = renew(&begin.http, Some(&begin.description), None, &login, own).await;
            let renewed = renewed.map_err(|error| match error {
                RenewError::Endpoint(error) => LoginError::Endpoint(error),
                RenewError::NoToken | RenewError::NoWay(_) | RenewError::Outside(_) => {
                    LoginError::Incomplete("a token")
                }
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

async fn store(begin: &LoginRequest, entry: Map<String, Value>) -> Result<FinishedLogin, LoginError> {
    let (store, provider, force) = (begin.store.clone(), begin.provider.clone(), begin.force);
    let stored = tokio::task::spawn_blocking(move || store.set_login(&provider, entry, force)).await;
    match stored {
        Ok(Ok(replaced)) => Ok(FinishedLogin { provider: begin.provider.clone(), replaced, models: None }),
        Ok(Err(error)) => Err(LoginError::NotStored(error.to_string())),
        Err(_) => Err(LoginError::Cancelled),
    }
}
