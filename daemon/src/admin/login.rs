//! `login_start`, `login_finish` and `login_cancel`: accounts in the place of keys. No answer holds a token.

use agentd_auth::{Auth, LoginError, StartError, StoreError};
use agentd_config::models::ModelRegistry;
use agentd_protocol::{
    credentials::{
        Login, LoginCancelParams, LoginCancelled, LoginFinishParams, LoginStartParams, LoginStarted,
    },
    error::{ErrorCode, Failure},
};

use super::{
    Context,
    credentials::{is_known, no_dir, refused, stored, unknown},
};

/// Begins a login.
///
/// # Errors
/// When the provider is not known, has no login that could begin, or a key is stored for it. Cancel safety: nothing is left.
pub(super) async fn start(context: Context, params: LoginStartParams) -> Result<LoginStarted, Failure> {
    let LoginStartParams { provider, flow, force } = params;
    let (registry, auth) = load(context.clone()).await?;
    if !is_known(&registry, &provider) {
        return Err(unknown(&registry, &auth, &provider).hint("`agentctl models --all` lists providers."));
    }
    let started = auth
        .start_login(&provider, flow, force == Some(true))
        .await
        .map_err(|error| not_started(error, &context, &provider))?;
    Ok(LoginStarted {
        login_id: started.id,
        provider,
        flow: started.flow,
        url: started.url,
        user_code: started.user_code,
        redirect_uri: started.redirect_uri,
        expires_in_seconds: started.life.as_secs(),
    })
}

/// Waits until a login is stored.
///
/// # Errors
/// When it does not come about. Cancel safety: a login that nobody waits for any more is given up.
pub(super) async fn finish(context: Context, params: LoginFinishParams) -> Result<Login, Failure> {
    let logins = &context.auth_services.logins;
    let done = logins
        .finish(&params.login_id, params.code.as_ref())
        .await
        .map_err(|error| failed(&error, &context, None))?;
    let (registry, auth) = load(context.clone()).await?;
    stored(&context, &registry, &auth, done.provider, done.replaced)
}

/// Gives a login up.
pub(super) fn cancel(context: &Context, params: &LoginCancelParams) -> LoginCancelled {
    LoginCancelled { cancelled: context.auth_services.logins.cancel(&params.login_id) }
}

async fn load(context: Context) -> Result<(std::sync::Arc<ModelRegistry>, Auth), Failure> {
    let loading = tokio::task::spawn_blocking(move || context.load());
    let loaded = loading.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
    loaded.map_err(no_dir)
}

fn not_started(error: StartError, context: &Context, provider: &str) -> Failure {
    match error {
        StartError::Store(error @ StoreError::Occupied { .. }) => {
            Failure::new(ErrorCode::Unsupported, error.to_string())
                .hint("--force puts the login in its place.")
        }
        StartError::Store(error) => refused(error),
        StartError::Secret(error) => Failure::new(ErrorCode::InvalidField, error.to_string()),
        StartError::Login(error) => failed(&error, context, Some(provider)),
    }
}

fn failed(error: &LoginError, context: &Context, provider: Option<&str>) -> Failure {
    let code = match error {
        LoginError::Unknown(_) | LoginError::NoClientId(_) | LoginError::NoFlow { .. } => {
            ErrorCode::Unsupported
        }
        LoginError::NotThere(_) => ErrorCode::NotFound,
        LoginError::Pasted(_) => ErrorCode::InvalidField,
        LoginError::TooMany => ErrorCode::Busy,
        LoginError::Listen { .. } | LoginError::NotStored(_) | LoginError::NoRandom => ErrorCode::Io,
        LoginError::Cancelled | LoginError::Expired | LoginError::Denied(_) => ErrorCode::NoCredentials,
        LoginError::Incomplete(_) | LoginError::Endpoint(_) => ErrorCode::NoCredentials,
    };
    let provider = provider.unwrap_or("PROVIDER");
    let models = context
        .agent_dir()
        .map_or_else(|_| "models.json".to_owned(), |folder| folder.models_file().display().to_string());
    let hint = match error {
        LoginError::NoClientId(_) => Some(format!(
            "Register a client with the provider and put its id into {models}: {{\"providers\": {{\"{provider}\": {{\"oauth\": \
             {{\"clientId\": \"...\"}}}}}}}}. A key needs none: `agentctl login {provider}`. docs/credentials.md says more."
        )),
        LoginError::Unknown(_) | LoginError::NoFlow { .. } => Some(format!(
            "A key does as well: `agentctl login {provider}`. How a login works can be said by \"oauth\" of the provider in \
             {models}; docs/credentials.md has its members."
        )),
        LoginError::Listen { .. } => Some(
            "Another program may be logging in at the same port. PI_OAUTH_CALLBACK_HOST names another address to listen at; \
             \"redirectPort\" another port, where the provider knows it."
                .into(),
        ),
        LoginError::Expired | LoginError::NotThere(_) => Some("The login can be begun again.".into()),
        _ => None,
    };
    let text = match error {
        LoginError::NotStored(text) => text.clone(),
        error => format!("Nothing was stored: {error}."),
    };
    let failure = Failure::new(code, text);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
