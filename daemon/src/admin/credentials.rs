//! `login`, `logout` and `get_auth_status`: the keys of `auth.json`, and where keys come from. No answer holds one.

use std::collections::BTreeSet;

use agentd_auth::{
    Auth, AuthStore, KeySource, KeyStatus, NewKey, StoreError, providers_with_variables, variables_for,
};
use agentd_config::{
    NoAgentDir,
    models::{ModelRegistry, UsableModels},
};
use agentd_protocol::{
    credentials::{
        AuthStatus, AuthStatusParams, KeyOrigin, Login, LoginParams, LoginState, Logout, LogoutParams,
        ProviderAuth,
    },
    error::{ErrorCode, Failure},
};

use super::Context;

/// Stores a key. Blocks.
///
/// # Errors
/// When the provider is not known, what is given can be no key, or the file cannot be used or written; the file is
/// unchanged then.
pub(super) fn login(context: &Context, params: LoginParams) -> Result<Login, Failure> {
    let LoginParams { provider, key, env, force } = params;
    let force = force == Some(true);
    let store = store(context)?;
    let (registry, auth) = context.load().map_err(no_dir)?;
    if !force && !is_known(&registry, &provider) {
        return Err(unknown(&registry, &auth, &provider).hint(
            "`agentctl models --all` lists providers. For one that is to come into models.json, add --force.",
        ));
    }
    let new = NewKey { key, env: env.into_iter().collect(), force };
    let replaced = store.set_key(&provider, &new).map_err(refused)?;
    auth.refresh();
    stored(context, &registry, &auth, provider, replaced)
}

/// The answer when something was stored for a provider.
///
/// # Errors
/// When the agent directory is not known any more.
pub(super) fn stored(
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

/// Takes an entry out. Blocks.
///
/// # Errors
/// When there is none, and when the file cannot be used or written.
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

/// Where keys come from. Blocks.
///
/// # Errors
/// When a provider is asked for that is not known.
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

pub(super) fn is_known(registry: &ModelRegistry, provider: &str) -> bool {
    registry.provider(provider).is_some() || providers_with_variables().any(|known| known == provider)
}

pub(super) fn unknown(registry: &ModelRegistry, auth: &Auth, provider: &str) -> Failure {
    let has_auth = |provider: &str| auth.is_configured(provider);
    let near = UsableModels { registry, apis: &[], has_auth: &has_auth, plan: &|_| None }
        .similar_providers(provider);
    let question = near.first().map(|near| format!(" Did you mean \"{near}\"?")).unwrap_or_default();
    Failure::new(ErrorCode::NotFound, format!("Unknown provider \"{provider}\".{question}"))
}

/// What the user should know of a key that was just stored.
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

pub(super) fn refused(error: StoreError) -> Failure {
    let (code, hint) = match &error {
        StoreError::Key(_) => (ErrorCode::InvalidField, None),
        StoreError::Occupied { .. } => (ErrorCode::Unsupported, Some("--force puts the key in its place.")),
        StoreError::File(_) | StoreError::NotAnObject { .. } => (ErrorCode::Unsupported, None),
        StoreError::NotChanged(_) => (ErrorCode::Io, None),
    };
    let text = error.to_string();
    // A sentence as any other, whatever the error began with.
    let mut letters = text.chars();
    let text = letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or(text);
    let failure = Failure::new(code, text);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

pub(super) fn no_dir(error: NoAgentDir) -> Failure {
    Failure::new(ErrorCode::Io, error.to_string())
}
