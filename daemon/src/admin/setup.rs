//! `setup_local`: writes the model servers of this machine into `models.json`.

mod listener;
mod plan;

use agentd_ai::local_servers::{self, DEFAULT_PORTS, LocalServer, ProbeError};
use agentd_config::{ModelsEditError, NoAgentDir, WriteMode, edit_models};
use agentd_protocol::{
    doctor::{Listener, LocalProvider, LocalSetup, SetupChange, SetupLocalParams},
    error::{ErrorCode, Failure},
};

use self::plan::{ProviderFacts, SetupRequest, plan};
use super::Context;

/// Asks the servers for their models, and writes a provider for each into `models.json`, or only new models into a provider that is
/// there already.
///
/// # Errors
/// When no server is found, and when the file cannot be used or written; it is unchanged then.
///
/// Cancel safety: the file is written whole or not at all.
pub(crate) async fn local(context: Context, params: SetupLocalParams) -> Result<LocalSetup, Failure> {
    let request = SetupRequest { provider: params.provider, model: params.model };
    request.check()?;
    let servers = servers(params.base_url.as_deref(), &request).await?;
    let writing = if params.dry_run == Some(true) { WriteMode::DryRun } else { WriteMode::Yes };
    let others = params.dry_run == Some(true) || params.other_user == Some(true);
    let work = move || write(&context, &servers, &request, (writing, others));
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?
}

/// The servers that have a chat model.
async fn servers(base_url: Option<&str>, request: &SetupRequest) -> Result<Vec<LocalServer>, Failure> {
    let Some(base_url) = base_url else {
        let mut found = local_servers::probe().await;
        found.iter_mut().for_each(|server| server.models.retain(|model| !model.is_embedding()));
        found.retain(|server| !server.models.is_empty());
        if let Some(model) = &request.model {
            found.retain(|server| server.models.iter().any(|served| served.id == *model));
        }
        return if found.is_empty() { Err(none_found(request)) } else { Ok(found) };
    };
    let mut server = local_servers::probe_url(base_url).await.map_err(|error| refused(&error))?;
    server.models.retain(|model| !model.is_embedding());
    if server.models.is_empty() {
        let text = format!("The server at {} lists no model to talk to.", server.base_url);
        return Err(
            Failure::new(ErrorCode::NotFound, text).hint("Load a model in the server, and try again.")
        );
    }
    Ok(vec![server])
}

fn none_found(request: &SetupRequest) -> Failure {
    let what = request.model.as_ref().map_or_else(String::new, |model| format!(" with the model {model}"));
    let text = format!("No model server{what} answers on the usual ports of this machine ({}).", ports());
    Failure::new(ErrorCode::NotFound, text)
        .hint("Start the server and load a model, or name it: agentctl setup local --url http://HOST:PORT/v1")
}

/// The default ports, in the order in which they are listed.
pub(crate) fn ports() -> String {
    DEFAULT_PORTS.iter().map(|(port, name)| format!("{port} {name}")).collect::<Vec<_>>().join(", ")
}

fn refused(error: &ProbeError) -> Failure {
    let (code, hint) = match error {
        ProbeError::Address { .. } => (ErrorCode::InvalidField, None),
        ProbeError::NeedsKey { .. } => (
            ErrorCode::NoCredentials,
            Some(
                "Only servers without a key are set up this way: write the provider into models.json yourself.",
            ),
        ),
        ProbeError::Unreachable { .. } | ProbeError::Silent { .. } => {
            (ErrorCode::NotFound, Some("Is the server running, and is this its address and port?"))
        }
        ProbeError::NotAListing { .. } => (
            ErrorCode::NotFound,
            Some("Give the address under which the server has its OpenAI-compatible API, often .../v1."),
        ),
    };
    // The error begins with an address, so a sentence precedes it.
    let failure = Failure::new(code, format!("No model server was set up: {error}."));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn write(
    context: &Context,
    servers: &[LocalServer],
    request: &SetupRequest,
    (writing, others): (WriteMode, bool),
) -> Result<LocalSetup, Failure> {
    let no_dir = |error: NoAgentDir| Failure::new(ErrorCode::Io, error.to_string());
    let agent_dir = context.agent_dir().map_err(no_dir)?;
    let file = agent_dir.models_file();
    let (registry, auth) = context.load().map_err(no_dir)?;
    let facts = ProviderFacts {
        is_known: &|id| registry.provider(id).is_some(),
        has_key: &|id| auth.is_configured(id),
    };
    let edited = edit_models(&agent_dir, writing, |models| {
        let (changes, mut providers) = plan(models, servers, request, &facts).map_err(SetupError::Plan)?;
        for provider in &mut providers {
            provider.listener = listener::listener(&provider.base_url);
        }
        match providers.iter().find(|provider| !others && is_new_of_other(provider)) {
            Some(provider) => Err(SetupError::Plan(of_other(provider))),
            None => Ok((changes, providers)),
        }
    });
    let (written, providers) = edited.map_err(Failure::from)?;
    Ok(LocalSetup { file: file.display().to_string(), written, providers })
}

/// Whether another user would read the conversations with a provider that was not configured before.
fn is_new_of_other(provider: &LocalProvider) -> bool {
    provider.change != SetupChange::Unchanged
        && provider.listener.as_ref().is_some_and(|listener| listener.is_other_user)
}

fn of_other(provider: &LocalProvider) -> Failure {
    let Some(Listener { user_id, user, .. }) = &provider.listener else {
        return Failure::new(ErrorCode::Internal, "a server of nobody");
    };
    let user =
        user.as_ref().map_or_else(|| format!("user {user_id}"), |name| format!("{name} (user {user_id})"));
    let text = format!(
        "The server at {} belongs to another user of this machine, {user}, who would read every conversation with its \
         models. Nothing was written.",
        provider.base_url
    );
    Failure::new(ErrorCode::Forbidden, text)
        .hint("If that is as it should be (a system service, say): agentctl setup local --other-user")
}

/// Why the set-up failed.
enum SetupError {
    Edit(ModelsEditError),
    Plan(Failure),
}

impl From<ModelsEditError> for SetupError {
    fn from(error: ModelsEditError) -> Self {
        Self::Edit(error)
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Plan(failure) => failure,
            SetupError::Edit(error @ ModelsEditError::Io { .. }) => {
                Self::new(ErrorCode::Io, error.to_string())
            }
            SetupError::Edit(error) => {
                Self::new(ErrorCode::Unsupported, error.to_string()).hint("Repair the file or remove it.")
            }
        }
    }
}
