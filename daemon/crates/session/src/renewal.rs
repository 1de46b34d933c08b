//! Other credentials in the place of refused ones, in the middle of a run.

use std::sync::Arc;

use agentd_ai::{Credentials, Renew, Renewal, Renewed, Renewing};
use agentd_auth::Auth;
use agentd_protocol::model::Model;

/// Asks the session's credentials for others, for one model.
struct Renewer {
    auth: Auth,
    model: Arc<Model>,
}

/// What a request to this model asks when its credentials are refused.
pub(crate) fn of(auth: &Auth, model: &Arc<Model>) -> Renewing {
    Renewing(Arc::new(Renewer { auth: auth.clone(), model: Arc::clone(model) }))
}

impl Renew for Renewer {
    fn renew<'a>(&'a self, refused: &'a Credentials) -> Renewal<'a> {
        Box::pin(async move {
            let found = self.auth.renew(&self.model, refused).await?;
            let provider = &self.model.provider;
            Some(found.map_err(|error| error.to_string()).map(|found| Renewed {
                credentials: found.credentials,
                base_url: found.base_url,
                advice: format!(
                    "The credentials were renewed, and refused again: `agentctl login {provider} --force` logs in anew, or \
                     stores another key; `agentctl auth status {provider}` says where they come from."
                ),
            }))
        })
    }
}
