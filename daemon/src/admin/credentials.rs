//! `login`, `logout`, `get_auth_status`, `login_start`, `login_finish` and `login_cancel`: keys and logins. No answer holds a key or a
//! token.

use std::{collections::BTreeSet, sync::Arc};

use agentd_auth::{
    Auth, AuthStore, FinishedLogin, KeySource, KeyStatus, LoginError, NewKey, StartError, StoreError,
    providers_with_variables, variables_for,
};
use agentd_config::{
    NoAgentDir,
    models::{ModelRegistry, UsableModels},
};
use agentd_protocol::{
    credentials::{
        AuthStatus, AuthStatusParams, KeyOrigin, Login, LoginCancelParams, LoginCancelled, LoginFinishParams,
        LoginParams, LoginStartParams, LoginStarted, LoginState, Logout, LogoutParams, ProviderAuth,
    },
    error::{ErrorCode, Failure},
};

use agentd_session::{LogInAnswer, SessionHandle};

use super::Context;

/// Stores a key. Blocks.
///
/// # Errors
/// When the provider is unknown, the key is invalid, or the file cannot be used or written; the file is unchanged then.
pub(super) fn login(context: &Context, params: LoginParams) -> Result<Login, Failure> {
    let LoginParams { provider, key, env, force } = params;
    let force = force == Some(true);
    let store = store(context)?;
    let (registry, auth) = context.load().map_err(no_dir)?;
    if !force && !is_known(&registry, &provider) {
        return Err(unknown(&registry, &auth, &provider).hint(
            "`agentctl models --all` lists providers. For one of an extension, add --oauth; for one that is to come into \
             models.json, --force.",
        ));
    }
    let new = NewKey { key, env: env.into_iter().collect(), force };
    let replaced = store.set_key(&provider, &new).map_err(refused)?;
    auth.refresh();
    stored(context, &registry, &auth, provider, replaced)
}

/// The answer after a key or a login was stored for a provider.
///
/// # Errors
/// When the agent directory is no longer known.
fn stored(
    context: &Context,
    registry: &ModelRegistry,
    auth: &Auth,
    provider: String,
    replaced: bool,
) -> Result<Login, Failure> {
    let file = store(context)?.path().display().to_string();
    let adapters = agentd_ai::ProviderRegistry::builtin();
    let counts = registry.count_by_api(&provider);
    let spoken = counts.iter().filter(|(api, _)| adapters.apis().any(|spoken| spoken == api));
    let models = spoken.map(|(_, count)| *count as u64).sum();
    let notes = notes(registry, auth, &provider, models);
    Ok(Login { file, provider, replaced, models, notes })
}

/// Removes the entry of a provider. Blocks.
///
/// # Errors
/// When there is no entry, and when the file cannot be used or written.
pub(super) fn logout(context: &Context, params: &LogoutParams) -> Result<Logout, Failure> {
    let store = store(context)?;
    let provider = &params.provider;
    let (_, auth) = context.load().map_err(no_dir)?;
    if !store.remove(provider).map_err(refused)? {
        let text = format!("Nothing is stored for \"{provider}\" in {}.", store.path().display());
        let stored = store.read().unwrap_or_default();
        let stored: Vec<&str> = stored.providers().collect();
        let hint = match (auth.status(provider), stored.as_slice()) {
            (Some(status), _) => format!("Its key comes from {}.", words(status.source)),
            (None, []) => "No key is stored at all.".to_owned(),
            (None, stored) => format!("Keys are stored for: {}.", stored.join(", ")),
        };
        return Err(Failure::new(ErrorCode::NotFound, text).hint(hint));
    }
    auth.refresh();
    Ok(Logout {
        provider: provider.clone(),
        file: store.path().display().to_string(),
        still_from: auth.status(provider).map(|status| origin(status.source)),
    })
}

/// Reports the source of each key. Blocks.
///
/// # Errors
/// When the command names an unknown provider.
pub(super) fn status(context: &Context, params: &AuthStatusParams) -> Result<AuthStatus, Failure> {
    let store = store(context)?;
    let (registry, auth) = context.load().map_err(no_dir)?;
    let stored = store.read().unwrap_or_default();
    let providers = match &params.provider {
        Some(one) if stored.get(one).is_none() && !is_known(&registry, one) => {
            return Err(unknown(&registry, &auth, one).hint("`agentctl models --all` lists providers."));
        }
        Some(one) => vec![provider_auth(&auth, one)],
        None => {
            let mut names: BTreeSet<&str> = registry.providers().chain(stored.providers()).collect();
            for name in providers_with_variables() {
                names.insert(name);
            }
            let all = names.into_iter().map(|name| provider_auth(&auth, name));
            all.filter(|provider| provider.source.is_some()).collect()
        }
    };
    Ok(AuthStatus { file: store.path().display().to_string(), file_error: auth.load_error(), providers })
}

fn store(context: &Context) -> Result<AuthStore, Failure> {
    Ok(AuthStore::at(context.agent_dir().map_err(no_dir)?.auth_file()))
}

fn is_known(registry: &ModelRegistry, provider: &str) -> bool {
    registry.provider(provider).is_some() || providers_with_variables().any(|known| known == provider)
}

fn unknown(registry: &ModelRegistry, auth: &Auth, provider: &str) -> Failure {
    let has_auth = |provider: &str| auth.is_configured(provider);
    let near = UsableModels { registry, apis: &[], has_auth: &has_auth, plan: &|_| None }
        .similar_providers(provider);
    let question = near.first().map(|near| format!(" Did you mean \"{near}\"?")).unwrap_or_default();
    Failure::new(ErrorCode::NotFound, format!("Unknown provider \"{provider}\".{question}"))
}

/// Notes for the user on a key that was just stored.
fn notes(registry: &ModelRegistry, auth: &Auth, provider: &str, models: u64) -> Vec<String> {
    let mut notes = Vec::new();
    for variable in auth.missing_variables(provider) {
        notes.push(format!(
            "{provider} also needs {variable}: set it in the environment, or store it with the key (--env NAME=VALUE)."
        ));
    }
    let shadowed = auth.status(provider).map(|status| status.shadowed).unwrap_or_default();
    if !shadowed.is_empty() {
        let places: Vec<String> = shadowed.into_iter().map(words).collect();
        notes.push(format!("It comes before {}.", places.join(" and ")));
    }
    if registry.provider(provider).is_none() {
        notes.push(format!("No models of {provider} are known: models.json can name some."));
    } else if models == 0 {
        notes.push(format!(
            "This version of agentd does not speak the API of {provider}, so its models are not offered."
        ));
    }
    notes
}

fn provider_auth(auth: &Auth, provider: &str) -> ProviderAuth {
    let name = provider.to_owned();
    let Some(KeyStatus { source, problem, shadowed }) = auth.status(provider) else {
        let problem = match variables_for(provider) {
            Some(variables) => format!("no key: `agentctl login {provider}` stores one, or set {variables}"),
            None => format!("no key: `agentctl login {provider}` stores one"),
        };
        return ProviderAuth {
            provider: name,
            source: None,
            usable: false,
            problem: Some(problem),
            login: None,
            shadowed: Vec::new(),
        };
    };
    let missing = auth.missing_variables(provider);
    let missing = (!missing.is_empty()).then(|| format!("it also needs {}", missing.join(" and ")));
    let problem = problem.or(missing);
    ProviderAuth {
        provider: name,
        source: Some(origin(source)),
        usable: problem.is_none(),
        problem,
        login: (source == KeySource::Stored).then(|| login_state(auth, provider)).flatten(),
        shadowed: shadowed.into_iter().map(origin).collect(),
    }
}

fn login_state(auth: &Auth, provider: &str) -> Option<LoginState> {
    let status = auth.login(provider)?;
    let expires_in_seconds = status.ends_in.map(|ends_in| ends_in / 1000);
    Some(LoginState { expires_in_seconds, renewable: status.renewable })
}

fn origin(source: KeySource) -> KeyOrigin {
    match source {
        KeySource::Flag => KeyOrigin::Flag,
        KeySource::Stored => KeyOrigin::Stored,
        KeySource::ModelsFile => KeyOrigin::ModelsFile,
        KeySource::Variable(name) => KeyOrigin::Variable { name: name.to_owned() },
    }
}

fn words(source: KeySource) -> String {
    match source {
        KeySource::Flag => "--api-key".into(),
        KeySource::Stored => "auth.json".into(),
        KeySource::ModelsFile => "\"apiKey\" in models.json".into(),
        KeySource::Variable(name) => format!("{name} in the environment"),
    }
}

fn refused(error: StoreError) -> Failure {
    let (code, hint) = match &error {
        StoreError::Key(_) => (ErrorCode::InvalidField, None),
        StoreError::Occupied { .. } => (ErrorCode::Unsupported, Some("--force puts the key in its place.")),
        StoreError::File(_) | StoreError::NotAnObject { .. } => (ErrorCode::Unsupported, None),
        StoreError::NotChanged(_) => (ErrorCode::Io, None),
    };
    let text = error.to_string();
    // Sentences begin with a capital letter.
    let mut letters = text.chars();
    let text = letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or(text);
    let failure = Failure::new(code, text);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn no_dir(error: NoAgentDir) -> Failure {
    Failure::new(ErrorCode::Io, error.to_string())
}

/// Begins a login: by an extension of the session, where one logs in to the provider.
///
/// # Errors
/// When the provider is unknown, its login cannot begin, or a key is stored for it.
///
/// Cancel safety: nothing is left; a login of an extension that nobody waits for is given up in time.
pub(super) async fn login_start(
    context: Context,
    params: LoginStartParams,
    session: Option<SessionHandle>,
) -> Result<LoginStarted, Failure> {
    let LoginStartParams { provider, flow, force } = params;
    let mut of_extensions = Vec::new();
    if let Some(session) = session {
        match session.log_in(provider.clone(), force == Some(true)).await {
            LogInAnswer::Started(started) => return Ok(*started),
            LogInAnswer::Failed(error) => return Err(not_started(*error, &context, &provider)),
            LogInAnswer::NotOfExtensions(others) => of_extensions = others,
        }
    }
    let (registry, auth) = load(context.clone()).await?;
    if !is_known(&registry, &provider) {
        let mut hint = "`agentctl models --all` lists providers.".to_owned();
        if !of_extensions.is_empty() {
            hint.push_str(&format!(" Extensions log in to: {}.", of_extensions.join(", ")));
        }
        return Err(unknown(&registry, &auth, &provider).hint(hint));
    }
    let started = auth
        .start_login(&provider, flow, force == Some(true))
        .await
        .map_err(|error| not_started(error, &context, &provider))?;
    Ok(LoginStarted {
        login_id: started.id,
        provider,
        flow: Some(started.flow),
        url: Some(started.url),
        instructions: None,
        user_code: started.user_code,
        redirect_uri: started.redirect_uri,
        expires_in_seconds: Some(started.life.as_secs()),
    })
}

/// Waits until a login is stored.
///
/// # Errors
/// When the login fails.
///
/// Cancel safety: a login that nobody waits for any more is cancelled.
pub(super) async fn login_finish(context: Context, params: LoginFinishParams) -> Result<Login, Failure> {
    let logins = &context.auth_services.logins;
    let done = logins
        .finish(&params.login_id, params.code.as_ref())
        .await
        .map_err(|error| login_failed(&error, &context, None))?;
    if let Some(models) = done.models {
        // The models are the session's, as are the notes that could be about them.
        let file = store(&context)?.path().display().to_string();
        let FinishedLogin { provider, replaced, .. } = done;
        return Ok(Login { file, provider, replaced, models, notes: Vec::new() });
    }
    let (registry, auth) = load(context.clone()).await?;
    stored(&context, &registry, &auth, done.provider, done.replaced)
}

/// Cancels a login.
pub(super) fn login_cancel(context: &Context, params: &LoginCancelParams) -> LoginCancelled {
    LoginCancelled { cancelled: context.auth_services.logins.cancel(&params.login_id) }
}

async fn load(context: Context) -> Result<(Arc<ModelRegistry>, Auth), Failure> {
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
        StartError::Login(error) => login_failed(&error, context, Some(provider)),
    }
}

fn login_failed(error: &LoginError, context: &Context, provider: Option<&str>) -> Failure {
    let code = match error {
        LoginError::Unknown(_) | LoginError::NoClientId(_) | LoginError::NoFlow { .. } => {
            ErrorCode::Unsupported
        }
        LoginError::NotThere(_) => ErrorCode::NotFound,
        LoginError::Pasted(_) => ErrorCode::InvalidField,
        LoginError::TooMany => ErrorCode::Busy,
        LoginError::Listen { .. } | LoginError::NotStored(_) | LoginError::NoRandom => ErrorCode::Io,
        LoginError::Cancelled | LoginError::Expired | LoginError::Denied(_) => ErrorCode::NoCredentials,
        LoginError::Incomplete(_) | LoginError::Endpoint(_) | LoginError::Outside(_) => {
            ErrorCode::NoCredentials
        }
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
