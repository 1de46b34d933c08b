//! Parts of provider requests that runs and summaries share: the event of a stall, and the renewal of credentials.

use std::sync::Arc;

use agentd_ai::{
    CredentialRenewer, Credentials, RenewCredentials, RenewalFuture, RenewedCredentials, Stall, StallPhase,
};
use agentd_auth::Auth;
use agentd_protocol::{
    event::{self, Event, ProviderStalled, StallAction},
    model::Model,
};

/// Asks the session's credentials for others, for one model.
struct Renewer {
    auth: Auth,
    model: Arc<Model>,
}

/// Renews the credentials of a request to this model when they are refused.
pub(crate) fn credential_renewer(auth: &Auth, model: &Arc<Model>) -> CredentialRenewer {
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

/// The event. `has_retries` says whether a failure that may pass is answered by another attempt.
pub(crate) fn stall_event(model: &Model, stall: Stall, has_retries: bool) -> Event {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let retries = stall.sent_again || (stall.may_pass && has_retries);
    let event = ProviderStalled {
        phase: match stall.phase {
            StallPhase::Connect => event::StallPhase::Connect,
            StallPhase::FirstByte => event::StallPhase::FirstByte,
            StallPhase::Idle => event::StallPhase::Idle,
            StallPhase::Progress => event::StallPhase::Progress,
            StallPhase::Request => event::StallPhase::Request,
        },
        provider: model.provider.clone(),
        model: model.id.clone(),
        waited_ms: millis(stall.waited),
        limit_ms: millis(stall.limit),
        action: if retries { StallAction::Retry } else { StallAction::Fail },
    };
    event.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_done_depends_on_what_is_left() {
        let check = |may_pass: bool, sent_again: bool, has_retries: bool, action: &str| {
            let (waited, limit) = (Duration::from_millis(1200), Duration::from_secs(1));
            let stall = Stall { phase: StallPhase::FirstByte, waited, limit, may_pass, sent_again };
            let model = Model { provider: "p".into(), id: "m".into(), ..Model::placeholder() };
            let event = serde_json::to_value(stall_event(&model, stall, has_retries)).unwrap();
            let expected = serde_json::json!({
                "type": "provider_stalled", "phase": "first_byte", "provider": "p", "model": "m",
                "waitedMs": 1200, "limitMs": 1000, "action": action,
            });
            assert_eq!(event, expected);
        };
        check(true, false, true, "retry");
        check(true, false, false, "fail");
        check(false, false, true, "fail");
        check(true, true, false, "retry");
    }
}
