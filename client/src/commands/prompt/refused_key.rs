//! What to do about a key that the provider did not accept.

use std::time::Duration;

use agentd_protocol::{
    credentials::{AuthStatusParams, KeyOrigin},
    error::ErrorCode,
    message::AssistantMessage,
};

use super::{
    conversation::{Conversation, ConversationEnd},
    request::PromptRequest,
};
use crate::{
    commands::auth::key_origin,
    render::one_line,
    rpc::{Client, GetAuthStatus},
};

/// How long the daemon has to say where the key came from. Events of a busy session, which nobody takes any more, could hold up its answer.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(1);

/// The hint after an answer that failed for its key: the provider, where the key came from, how to give another. `None` for
/// other answers. `is_private` tells whether the agentd has our environment.
pub(super) async fn hint(
    conversation: &mut Conversation,
    client: &Client,
    request: &PromptRequest,
    is_private: bool,
) -> Result<Option<String>, ConversationEnd> {
    let refused = |answer: &&AssistantMessage| answer.code == Some(ErrorCode::NoCredentials);
    let Some(provider) =
        conversation.totals.last_answer().filter(refused).map(|answer| answer.provider.clone())
    else {
        return Ok(None);
    };
    let params = AuthStatusParams { provider: Some(provider.clone()) };
    let asked = tokio::time::timeout(SOURCE_TIMEOUT, client.call::<GetAuthStatus>(&params));
    let status = conversation.unless_stopped(asked).await?;
    // The hint does without the source where the daemon does not tell.
    let found =
        status.ok().and_then(Result::ok).and_then(|status| status.providers.into_iter().next()?.source);
    // A session of the daemon has our environment, and the daemon another one.
    let found = found.filter(|origin| is_private || matches!(origin, KeyOrigin::Stored));
    let by_flag = request.daemon_args.iter().any(|arg| arg == "--api-key").then_some(KeyOrigin::Flag);
    Ok(Some(words(&provider, by_flag.or(found).as_ref())))
}

fn words(provider: &str, origin: Option<&KeyOrigin>) -> String {
    let provider = one_line(provider);
    let from = origin.map(|origin| format!(" ({})", key_origin(origin))).unwrap_or_default();
    format!(
        "{provider} did not accept the key{from}. `agentctl login {provider}` stores another one; `agentctl auth status` shows \
         where keys come from."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_named_where_it_is_known() {
        let variable = KeyOrigin::Variable { name: "OPENAI_API_KEY".into() };
        let text = words("openai", Some(&variable));
        assert!(
            text.starts_with("openai did not accept the key (OPENAI_API_KEY in the environment). "),
            "{text}"
        );
        assert!(words("openai", None).starts_with("openai did not accept the key. `agentctl login openai`"));
    }
}
