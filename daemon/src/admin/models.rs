//! `list_models`, and `update_models`, which replaces the built-in catalogue by another one.

use std::{io, path::Path, sync::Arc};

use agentd_auth::{Auth, variables_for};
use agentd_config::models::{
    CatalogueError, MAX_CATALOGUE_BYTES, ModelGlob, ModelRegistry, UsableModels, is_glob, reset_catalogue,
    update_catalogue,
};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    model::Model,
    model_list::{
        CatalogueUpdate, ListModelsParams, ListedModel, ListedProvider, ModelList, NotSpoken,
        UpdateModelsParams,
    },
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules};

use super::Context;

/// Lists the matching models in the order of the registry. Models of the catalogue are unpacked only where the answer names them.
/// Reads files; blocks.
///
/// # Errors
/// When the agent directory is unknown, or the pattern is an invalid glob.
pub(super) fn list(context: &Context, params: &ListModelsParams) -> Result<ModelList, Failure> {
    let filter = ModelFilter::new(params.pattern.as_deref())?;
    let (registry, auth) =
        context.load().map_err(|error| Failure::new(ErrorCode::NotFound, error.to_string()))?;
    let adapters = agentd_ai::ProviderRegistry::builtin();
    let apis: Vec<&str> = adapters.apis().collect();
    let has_auth = |provider: &str| auth.is_configured(provider);
    let plan = |provider: &str| auth.available_models(provider);
    let usable_models = UsableModels { registry: &registry, apis: &apis, has_auth: &has_auth, plan: &plan };
    let every_provider = params.all == Some(true) || params.pattern.is_some();
    let (models, mut not_spoken) = if every_provider {
        search(&usable_models, &filter)
    } else {
        (usable_models.available(), Vec::new())
    };
    let mut without_key = 0;
    if !every_provider {
        for provider in registry.providers().filter(|provider| !has_auth(provider)) {
            let counts = registry.count_by_api(provider);
            let spoken = counts.iter().filter(|(api, _)| apis.contains(&api.as_str()));
            without_key += spoken.map(|(_, count)| *count as u64).sum::<u64>();
        }
        for provider in registry.providers().filter(|provider| has_auth(provider)) {
            for (api, count) in registry.count_by_api(provider) {
                if !apis.contains(&api.as_str()) {
                    add(&mut not_spoken, &api, count as u64);
                }
            }
        }
    }
    let similar = match &filter {
        ModelFilter::Part(part) if models.is_empty() && not_spoken.is_empty() => usable_models.similar(part),
        _ => Vec::new(),
    };
    let providers = providers_of(&models, &registry, &auth);
    let models = models.iter().map(|model| listed(model, &providers)).collect();
    let stored = registry.catalogue_problem().map(ToString::to_string);
    let warnings =
        stored.into_iter().chain(registry.load_error().map(str::to_owned)).chain(auth.load_error());
    let (catalogue, warnings) = (Some(registry.catalogue().clone()), warnings.collect());
    Ok(ModelList { models, providers, without_key, not_spoken, similar, catalogue, warnings })
}

/// Which models the command asks for.
enum ModelFilter {
    All,
    /// Models whose name or id contains this lowercase text.
    Part(String),
    Glob(ModelGlob),
}

impl ModelFilter {
    fn new(pattern: Option<&str>) -> Result<Self, Failure> {
        let pattern = pattern.map(str::trim).unwrap_or_default();
        if pattern.is_empty() {
            return Ok(Self::All);
        }
        if !is_glob(pattern) {
            return Ok(Self::Part(pattern.to_lowercase()));
        }
        ModelGlob::new(pattern).map(Self::Glob).map_err(|error| {
            let text = format!("\"{pattern}\" is no valid pattern: {error}");
            Failure::new(ErrorCode::InvalidField, text)
        })
    }

    fn matches(&self, model: &Model) -> bool {
        match self {
            Self::All => true,
            Self::Part(part) => {
                let full = format!("{}/{}", model.provider, model.id);
                full.to_lowercase().contains(part) || model.name.to_lowercase().contains(part)
            }
            Self::Glob(glob) => glob.fits(model),
        }
    }
}

/// The matching models that can be used, without those that the user's account excludes; and the numbers of matching models whose API
/// is not supported.
fn search(usable_models: &UsableModels<'_>, filter: &ModelFilter) -> (Vec<Arc<Model>>, Vec<NotSpoken>) {
    let (mut models, mut not_spoken) = (Vec::new(), Vec::new());
    for model in usable_models.registry.select(&|_| true).filter(|model| filter.matches(model)) {
        if usable_models.offers(model) {
            models.push(Arc::clone(model));
        } else if !usable_models.speaks(model) {
            add(&mut not_spoken, &model.api, 1);
        }
    }
    (models, not_spoken)
}

fn add(counts: &mut Vec<NotSpoken>, api: &str, models: u64) {
    match counts.iter_mut().find(|counted| counted.api == api) {
        Some(counted) => counted.models += models,
        None => counts.push(NotSpoken { api: api.to_owned(), models }),
    }
}

fn providers_of(models: &[Arc<Model>], registry: &ModelRegistry, auth: &Auth) -> Vec<ListedProvider> {
    let mut providers: Vec<ListedProvider> = Vec::new();
    for model in models {
        let id = &model.provider;
        if providers.last().is_some_and(|last| last.id == *id)
            || providers.iter().any(|known| known.id == *id)
        {
            continue;
        }
        providers.push(ListedProvider {
            id: id.clone(),
            name: registry.provider(id).map_or_else(|| id.clone(), |provider| provider.name.clone()),
            has_key: auth.is_configured(id),
            variable: variables_for(id),
        });
    }
    providers
}

fn listed(model: &Model, providers: &[ListedProvider]) -> ListedModel {
    let provider = providers.iter().find(|provider| provider.id == model.provider);
    ListedModel { model: model.clone(), has_key: provider.is_some_and(|provider| provider.has_key) }
}

/// Stores the catalogue, or removes the stored one. Reads and writes files; blocks.
///
/// # Errors
/// When the fields do not name exactly one source, the file cannot be read, or the catalogue is invalid or cannot be stored.
pub(super) fn update(context: &Context, params: UpdateModelsParams) -> Result<CatalogueUpdate, Failure> {
    let agent_dir =
        context.agent_dir().map_err(|error| Failure::new(ErrorCode::NotFound, error.to_string()))?;
    let (name, text) = match params {
        UpdateModelsParams { path: None, text: None, reset: Some(true) } => {
            return reset_catalogue(&agent_dir).map_err(|error| failure("", &error));
        }
        UpdateModelsParams { path: Some(path), text: None, reset: None | Some(false) } => {
            let text = read(Path::new(&path))?;
            (path, text)
        }
        UpdateModelsParams { path: None, text: Some(text), reset: None | Some(false) } => {
            ("The catalogue".to_owned(), text)
        }
        _ => {
            let text = "update_models takes exactly one of path, text and \"reset\": true";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
    };
    let adapters = agentd_ai::ProviderRegistry::builtin();
    let speaks = |api: &str| adapters.apis().any(|spoken| spoken == api);
    update_catalogue(&agent_dir, &text, &speaks).map_err(|error| failure(&name, &error))
}

fn read(path: &Path) -> Result<String, Failure> {
    let fault = |what: &str| Failure::new(ErrorCode::Io, format!("{}: {what}", path.display()));
    let unreadable = |error: io::Error| fault(&format!("cannot be read: {error}"));
    if !path.is_absolute() {
        let text = format!("{}: path has to be an absolute one", path.display());
        return Err(Failure::new(ErrorCode::InvalidField, text));
    }
    let rules =
        OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_CATALOGUE_BYTES);
    let bytes = rules.read_present(path).map_err(|error| match error.into_problem() {
        OpenProblem::System(error) => unreadable(error),
        OpenProblem::TooLong { .. } => fault("is larger than 64 MiB"),
        problem => fault(&problem.to_string()),
    })?;
    String::from_utf8(bytes)
        .map_err(|error| fault(&format!("is not UTF-8 text (byte {})", error.utf8_error().valid_up_to())))
}

fn failure(name: &str, error: &CatalogueError) -> Failure {
    match error {
        CatalogueError::Invalid { .. } => {
            let text = format!("{name} is no model catalogue; nothing was changed.\n{error}");
            Failure::new(ErrorCode::InvalidField, text)
                .hint("docs/models.md describes the format (\"Another catalogue\").")
        }
        CatalogueError::Io { .. } => Failure::new(ErrorCode::Io, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_auth::AuthServices;
    use agentd_config::Environment;

    use super::*;

    struct Home {
        _folder: tempfile::TempDir,
        context: Context,
    }

    fn home(models_json: &str, variables: &[(&str, &str)]) -> Home {
        let folder = tempfile::tempdir().unwrap();
        let mut environment: Environment = variables.iter().copied().collect();
        environment.set("AGENTD_DIR", folder.path());
        std::fs::write(folder.path().join("models.json"), models_json).unwrap();
        let context = Context {
            environment,
            cwd: folder.path().to_owned(),
            compat: false,
            auth_services: AuthServices::default(),
        };
        Home { _folder: folder, context }
    }

    impl Home {
        fn list(&self, pattern: Option<&str>, all: bool) -> ModelList {
            let params = ListModelsParams { pattern: pattern.map(str::to_owned), all: all.then_some(true) };
            list(&self.context, &params).unwrap()
        }
    }

    const LOCAL: &str = r#"{"providers":{"local":{"name":"My box","baseUrl":"http://127.0.0.1:1/v1","apiKey":"none",
        "api":"openai-completions","models":[{"id":"m"}]},"odd":{"baseUrl":"u","api":"morse","apiKey":"k","models":[{"id":"dot"}]}}}"#;

    #[test]
    fn without_a_pattern_only_usable_models_are_listed() {
        let home = home(LOCAL, &[]);
        let list = home.list(None, false);
        let names: Vec<_> =
            list.models.iter().map(|listed| (listed.model.id.as_str(), listed.has_key)).collect();
        assert_eq!(names, [("m", true)]);
        assert_eq!(list.providers.len(), 1);
        assert_eq!((list.providers[0].name.as_str(), &list.providers[0].variable), ("My box", &None));
        assert_eq!(list.not_spoken, [NotSpoken { api: "morse".into(), models: 1 }]);
        let all = home.list(None, true);
        assert_eq!(all.without_key, 0);
        assert_eq!(all.models.len() as u64, list.without_key + 1);
        let silent: u64 = all.not_spoken.iter().map(|group| group.models).sum();
        assert_eq!(all.models.len() as u64 + silent, 1643 + 2);
    }

    #[test]
    fn a_pattern_searches_all_models_of_supported_apis() {
        let home = home(LOCAL, &[("GROQ_API_KEY", "k")]);
        let list = home.list(Some(" GROQ/ "), false);
        assert_eq!(list.models.len(), 7);
        assert!(list.models.iter().all(|listed| listed.has_key && listed.model.provider == "groq"));
        assert_eq!(list.without_key, 0);
        let keyless = home.list(Some("cerebras/*"), false);
        assert_eq!((keyless.models.len(), keyless.models[0].has_key), (2, false));
        assert_eq!(keyless.providers[0].variable.as_deref(), Some("CEREBRAS_API_KEY"));
        let nothing = home.list(Some("no such thing"), false);
        assert_eq!((nothing.models.len(), nothing.similar.len()), (0, 0));
        assert_eq!(home.list(Some("gtp-6.1-sol"), false).similar[0], "openai/gpt-6.1-sol");
        let silent = home.list(Some("odd/dot"), false);
        assert_eq!((silent.models.len(), silent.not_spoken.len()), (0, 1));
    }

    #[test]
    fn faults_are_reported() {
        let home = home("{", &[]);
        let list = home.list(Some("groq/"), false);
        assert_eq!((list.models.len(), list.warnings.len()), (7, 1));
        let params = ListModelsParams { pattern: Some("[".into()), all: None };
        assert!(super::list(&home.context, &params).unwrap_err().to_string().contains("no valid pattern"));
    }

    const SMALL: &str = r#"{"source":"s","defaults":{"p":"m"},"models":[{"id":"m","name":"M","api":"morse","provider":"p",
        "baseUrl":"http://h","input":["text"],"contextWindow":10,"maxTokens":5}]}"#;

    #[test]
    fn exactly_one_source() {
        let folder = tempfile::tempdir().unwrap();
        let context = Context {
            environment: [("AGENTD_DIR", folder.path())].into_iter().collect(),
            cwd: folder.path().to_owned(),
            compat: false,
            auth_services: AuthServices::default(),
        };
        let run = |path: Option<&str>, text: Option<&str>, reset: Option<bool>| {
            let params =
                UpdateModelsParams { path: path.map(str::to_owned), text: text.map(str::to_owned), reset };
            update(&context, params).map_err(|failure| failure.to_string())
        };
        for (path, text, reset) in [
            (None, None, None),
            (None, None, Some(false)),
            (Some("/x"), Some("{}"), None),
            (None, Some("{}"), Some(true)),
        ] {
            assert!(run(path, text, reset).unwrap_err().contains("exactly one of"));
        }
        assert!(run(Some("x"), None, None).unwrap_err().contains("an absolute one"));
        assert!(run(Some("/"), None, None).unwrap_err().contains("no regular file"));
        assert!(run(Some("/nonexistent"), None, None).unwrap_err().contains("/nonexistent: cannot be read"));
        let path = folder.path().join("c.json");
        fs::write(&path, b"{\xff").unwrap();
        assert!(run(path.to_str(), None, None).unwrap_err().contains("UTF-8 text (byte 1)"));
        fs::write(&path, "{\n}").unwrap();
        let error = run(path.to_str(), None, None).unwrap_err();
        assert!(error.contains("c.json is no model catalogue; nothing was changed.\nline 2: "), "{error}");
        fs::write(&path, SMALL).unwrap();
        let update = run(path.to_str(), None, None).unwrap();
        assert_eq!((update.models, update.not_spoken[0].models, update.removed_models), (1, 1, 1643));
        let update = run(None, Some(SMALL), None).unwrap();
        assert_eq!((update.added_models, update.changed_models, update.removed_models), (0, 0, 0));
        assert_eq!(run(None, None, Some(true)).unwrap().added_models, 1643);
    }
}
