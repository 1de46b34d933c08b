//! Signing in to the servers of a session, and out.

use std::{sync::Arc, time::Duration};

use agentd_auth::Secret;
use agentd_config::AgentDir;
use tokio::time::timeout;

use super::{Inner, McpSession, READY_WAIT};
use crate::{
    oauth::{OAuthError, OpenSignIn, SignInStore},
    server::McpServer,
};

/// The time that the user has where nothing else is said.
const USUAL_LIFE: Duration = Duration::from_secs(10 * 60);

/// The most time that the user can have.
const LONGEST_LIFE: Duration = Duration::from_secs(60 * 60);

/// A sign-in that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedSignIn {
    /// Names it.
    pub id: String,
    /// The address for the user to open.
    pub url: String,
    /// The address that the browser comes back to.
    pub redirect_uri: String,
    /// The time that the user has.
    pub life: Duration,
}

/// A sign-in of this session.
pub(super) struct SessionSignIn {
    server: String,
    open: Arc<OpenSignIn>,
}

impl McpSession {
    /// Begins to sign in to a server; a sign-in to the same server that is under way is cancelled. It ends with the session.
    ///
    /// # Errors
    /// [`OAuthError`]. Cancel safety: nothing is left but a client that was registered.
    pub async fn start_sign_in(
        &self,
        name: &str,
        life: Option<Duration>,
    ) -> Result<StartedSignIn, OAuthError> {
        let (server, is_wanted) = self.0.server(name)?;
        let Some(authorization) = server.authorization() else {
            let text = format!(
                "\"{name}\" has no sign-in: it is a program, or its entry has an Authorization header"
            );
            return Err(OAuthError::Configuration(text));
        };
        // The server's own refusal says best where to sign in.
        server.ensure_tried().await;
        if !is_wanted {
            server.close().await;
        }
        let life = life.unwrap_or(USUAL_LIFE).clamp(Duration::from_secs(1), LONGEST_LIFE);
        self.0.sign_ins().retain(|_, other| other.server != name);
        let open = Arc::new(authorization.begin_sign_in(life).await?);
        let started = StartedSignIn {
            id: open.id.clone(),
            url: open.url.clone(),
            redirect_uri: open.redirect_uri.clone(),
            life,
        };
        self.0.sign_ins().insert(open.id.clone(), SessionSignIn { server: name.to_owned(), open });
        Ok(started)
    }

    /// Waits until a sign-in is stored, and connects its server. `pasted` is the address that the browser ended at.
    ///
    /// # Errors
    /// [`OAuthError`]; after [`OAuthError::Pasted`] the sign-in goes on. That the server cannot be connected is no error: its state says so.
    /// Cancel safety: the sign-in goes on.
    pub async fn finish_sign_in(&self, id: &str, pasted: Option<&Secret>) -> Result<(), OAuthError> {
        let found =
            self.0.sign_ins().get(id).map(|found| (found.server.clone(), Arc::downgrade(&found.open)));
        let (name, open) = found.ok_or_else(|| OAuthError::NotThere(id.to_owned()))?;
        let finished = {
            // Held weakly: a sign-in that is given up ends at once.
            let outcome = {
                let open = open.upgrade().ok_or(OAuthError::Cancelled)?;
                if let Some(pasted) = pasted {
                    open.paste(pasted)?;
                }
                open.outcome()
            };
            OpenSignIn::finished(outcome).await
        };
        self.0.sign_ins().remove(id);
        finished?;
        let (server, is_wanted) = self.0.server(&name)?;
        if is_wanted {
            server.reconnect().await;
        }
        Ok(())
    }

    /// Gives a sign-in up; false where there is none.
    #[must_use]
    pub fn cancel_sign_in(&self, id: &str) -> bool {
        self.0.sign_ins().remove(id).is_some()
    }

    /// Gives all sign-ins up.
    pub(super) fn cancel_sign_ins(&self) {
        self.0.sign_ins().clear();
    }

    /// Removes what is stored of a server, which is asked anew then; the number of its sign-ins.
    ///
    /// # Errors
    /// [`OAuthError::Store`].
    pub async fn sign_out(&self, agent_dir: &AgentDir, name: &str) -> Result<usize, OAuthError> {
        let count = sign_out(agent_dir, name).await?;
        let found = {
            let servers = self.0.lock();
            servers.get(name).map(|found| (Arc::clone(&**found.server), found.is_wanted()))
        };
        if let Some((server, is_wanted)) = found {
            server.close().await;
            if let Some(authorization) = server.authorization() {
                authorization.forget();
            }
            if is_wanted {
                server.connect_soon();
            }
        }
        Ok(count)
    }

    /// Connects servers that lacked a sign-in, where the user has signed in elsewhere since.
    pub(super) async fn connect_after_sign_ins(&self) {
        let waiting: Vec<Arc<McpServer>> = {
            let servers = self.0.lock();
            let lacks = servers.values().filter(|it| it.is_wanted() && it.server.lacks_sign_in());
            lacks.map(|it| Arc::clone(&**it.server)).collect()
        };
        let tasks: Vec<_> = waiting
            .into_iter()
            .map(|server| {
                let tasks = server.context().tasks.clone();
                tasks.spawn(async move { server.connect_after_sign_in().await })
            })
            .collect();
        let all = async {
            for task in tasks {
                // The state says what came of it.
                let _ = task.await;
            }
        };
        let _ = timeout(READY_WAIT, all).await;
    }
}

impl Inner {
    /// A server, and whether the session uses it.
    fn server(&self, name: &str) -> Result<(Arc<McpServer>, bool), OAuthError> {
        let servers = self.lock();
        match servers.get(name) {
            Some(found) => Ok((Arc::clone(&**found.server), found.is_wanted())),
            None => Err(OAuthError::NoServer(self.unknown(&servers, name))),
        }
    }
}

/// Removes what is stored of the servers with this name; how many there were.
///
/// # Errors
/// [`OAuthError::Store`].
pub async fn sign_out(agent_dir: &AgentDir, name: &str) -> Result<usize, OAuthError> {
    let (store, name) = (SignInStore::of(agent_dir), name.to_owned());
    let removing = tokio::task::spawn_blocking(move || store.remove_all(&name));
    removing.await.map_err(|_| OAuthError::Cancelled)?
}
