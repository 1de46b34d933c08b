//! Other credentials in the place of refused ones, in the middle of a run.

use std::sync::Arc;

use agentd_ai::{CredentialRenewer, Credentials, RenewCredentials, RenewalFuture, RenewedCredentials};
use agentd_auth::Auth;
use agentd_protocol::model::Model;

/// Asks the session's credentials for others, for one model.
struct Renewer {
    auth: Auth,
    model: Arc<Model>,
}

/// What a request to this model asks when its credentials are refused.
pub(crate) fn of(auth: &Auth, model: &Arc<Model>) -> CredentialRenewer {
    CredentialRenewer(Arc::new(Renewer { auth: auth.clone(), model: Arc::clone(model) }))
}

impl RenewCredentials for Renewer {
    fn renew<'a>(&'a self, refused: &'a Credentials) -> RenewalFuture<'a> {
        Box::pin(async move {
            let found = self.auth.renew(&self.model, refused).await?;
            let provider = &self.model.provider;
            Some(found.map_err(|error| error.to_string()).map(|found| RenewedCredentials {
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
