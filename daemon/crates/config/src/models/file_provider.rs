//! A provider of `models.json`: the models that it adds, and what it changes of the built-in ones.

use std::{collections::HashMap, sync::Arc};

use agentd_protocol::{
    model::{Model, ModelCost},
    models_file::{CostFields, InOrder, ModelEntry, ModelFields, ProviderEntry},
    number,
    oauth_setting::OAuthSetting,
};
use serde_json::{Map, Value};

use super::{catalogue::Catalogue, merge, provider_config::ProviderConfig};

const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
const DEFAULT_MAX_TOKENS: u64 = 16_384;

/// The API that nearly every server speaks, among others or alone.
const COMMON_API: &str = "openai-completions";

/// A provider of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileProvider {
    /// The provider's address, key and headers.
    pub(super) config: ProviderConfig,
    api: Option<String>,
    base_url: Option<String>,
    compat: Option<Map<String, Value>>,
    /// Each id once, at its first place, with what is said last.
    models: Vec<(String, ModelFields)>,
    overrides: Vec<(String, ModelFields)>,
    /// The place of the provider in the catalogue, if it is there.
    pub(super) place: Option<usize>,
    /// For a provider that is not: its models.
    pub(super) own: Vec<Arc<Model>>,
}

/// The models of a built-in provider once the file is laid over them.
#[derive(Debug, Clone, Default)]
pub(super) struct Patched {
    /// The models of the catalogue, changed or replaced.
    pub(super) known: Vec<Arc<Model>>,
    /// The models that only the file has.
    pub(super) added: Vec<Arc<Model>>,
}

impl FileProvider {
    /// Takes over what the file says.
    ///
    /// # Errors
    /// For a provider that is not in the catalogue: names the model that lacks an API or a base URL.
    pub(super) fn new(id: String, entry: ProviderEntry, catalogue: &Catalogue) -> Result<Self, String> {
        let mut models: Vec<(String, ModelFields)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut model_headers = HashMap::new();
        let mut headers = |id: &str, fields: &mut ModelFields| {
            fields.normalize();
            let headers = fields.headers.take().map(InOrder::into_iter).map(Iterator::collect);
            match headers {
                Some(headers) => model_headers.insert(id.to_owned(), headers),
                None => model_headers.remove(id),
            };
        };
        let mut overrides: Vec<_> = entry.model_overrides.unwrap_or_default().into_iter().collect();
        for (model_id, fields) in &mut overrides {
            headers(model_id, fields);
        }
        for ModelEntry { id: model_id, mut fields } in entry.models.unwrap_or_default() {
            headers(&model_id, &mut fields);
            match places.get(&model_id) {
                Some(&place) => models[place].1 = fields,
                None => {
                    places.insert(model_id.clone(), models.len());
                    models.push((model_id, fields));
                }
            }
        }
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        let base_url = said(entry.base_url);
        let config = ProviderConfig {
            name: entry.name.unwrap_or_else(|| id.clone()),
            base_url: base_url.clone(),
            api_key: entry.api_key,
            headers: entry.headers.map(InOrder::into_iter).into_iter().flatten().collect(),
            auth_header: entry.auth_header.unwrap_or(false),
            needs_no_key: false,
            oauth: match entry.oauth {
                Some(OAuthSetting::Fields(fields)) => Some(fields),
                Some(OAuthSetting::Word(_)) | None => None,
            },
            model_headers,
            id,
        };
        let mut compat = entry.compat;
        if let Some(compat) = &mut compat {
            number::normalize_map(compat);
        }
        let place = catalogue.place_of(&config.id);
        let mut provider = Self {
            config,
            api: said(entry.api),
            base_url,
            compat,
            models,
            overrides,
            place,
            own: Vec::new(),
        };
        if place.is_none() {
            provider.own = provider.own_models()?;
            provider.models.clear();
        }
        Ok(provider)
    }

    /// Providers of no catalogue with these models.
    pub(super) fn of(models: Vec<Arc<Model>>) -> Vec<Self> {
        let mut providers: Vec<Self> = Vec::new();
        for model in models {
            match providers.iter_mut().find(|provider| provider.config.id == model.provider) {
                Some(known) => known.own.push(model),
                None => providers.push(Self {
                    config: ProviderConfig {
                        id: model.provider.clone(),
                        name: model.provider.clone(),
                        ..ProviderConfig::default()
                    },
                    own: vec![model],
                    ..Self::default()
                }),
            }
        }
        providers
    }

    /// Returns whether it has models of its own, new ones or in the place of built-in ones.
    pub(super) fn has_models(&self) -> bool {
        !self.models.is_empty()
    }

    /// Returns whether the file gives any model an id or a name.
    pub(super) fn names_models(&self) -> bool {
        !self.models.is_empty() || !self.own.is_empty() || !self.overrides.is_empty()
    }

    /// Returns whether it has a model of its own with this id, in any case.
    pub(super) fn has_model(&self, id: &str) -> bool {
        let id = id.to_lowercase();
        let mut ids = self.models.iter().map(|(id, _)| id).chain(self.own.iter().map(|model| &model.id));
        ids.any(|own| own.to_lowercase() == id)
    }

    /// Returns whether the file only says how the provider is reached.
    pub(super) fn leaves_models_alone(&self) -> bool {
        self.base_url.is_none()
            && self.compat.is_none()
            && self.models.is_empty()
            && self.overrides.is_empty()
    }

    /// The APIs that the file names for models of a provider of the catalogue.
    pub(super) fn apis(&self) -> impl Iterator<Item = &str> {
        let overrides = self.place.map(|_| &self.overrides).into_iter().flatten();
        let fields = self.models.iter().chain(overrides).map(|(_, fields)| fields.api.as_ref());
        fields.chain([self.api.as_ref()]).flatten().map(String::as_str)
    }

    /// Returns whether it wants to change single built-in models.
    pub(super) fn has_overrides(&self) -> bool {
        !self.overrides.is_empty()
    }

    /// The models that the file wants to change and that are not among these built-in ones.
    pub(super) fn idle_overrides(&self, builtin: &[Arc<Model>]) -> impl Iterator<Item = &str> {
        let ids = self.overrides.iter().map(|(id, _)| id.as_str());
        ids.filter(|id| !builtin.iter().any(|model| model.id == *id))
    }

    fn own_models(&self) -> Result<Vec<Arc<Model>>, String> {
        let build = |(id, fields): &(String, ModelFields)| {
            let missing = |what: &str, example: &str| {
                format!(
                    "Provider {}, model {id}: no \"{what}\" specified: set it on the model or the provider, such as \"{example}\".",
                    self.config.id
                )
            };
            let api = self.api_of(fields).ok_or_else(|| missing("api", COMMON_API))?;
            let base_url =
                self.base_url_of(fields).ok_or_else(|| missing("baseUrl", "http://127.0.0.1:8080/v1"))?;
            Ok(Arc::new(self.model(id, fields, api.to_owned(), base_url.to_owned())))
        };
        self.models.iter().map(build).collect()
    }

    /// The models of a provider of the catalogue. A model of the file that does not say where it is takes API and base
    /// URL of a built-in one: of the same id, else of the same API, else of the common API, else of the first.
    pub(super) fn patched(&self, builtin: &[Arc<Model>]) -> Patched {
        let overrides: HashMap<&str, &ModelFields> =
            self.overrides.iter().map(|(id, fields)| (id.as_str(), fields)).collect();
        let mut replacing: HashMap<&str, Arc<Model>> = self
            .models
            .iter()
            .map(|(id, fields)| (id.as_str(), self.on_builtin(id, fields, builtin)))
            .collect();
        let known = builtin.iter().map(|model| {
            let change = || self.changed(model, overrides.get(model.id.as_str()).copied());
            replacing.remove(model.id.as_str()).unwrap_or_else(change)
        });
        let known = known.collect();
        let added = self.models.iter().filter_map(|(id, _)| replacing.remove(id.as_str())).collect();
        Patched { known, added }
    }

    /// The models of a provider that an extension registers, over those of the catalogue; `replaces`: they are all that there are.
    ///
    /// # Errors
    /// Names the model that lacks an API or a base URL.
    pub(super) fn over_catalogue(
        &self,
        builtin: &[Arc<Model>],
        replaces: bool,
    ) -> Result<Vec<Arc<Model>>, String> {
        if self.place.is_none() {
            return Ok(self.own.clone());
        }
        if !replaces {
            return Ok(builtin.iter().map(|model| self.changed(model, None)).collect());
        }
        Ok(self.models.iter().map(|(id, fields)| self.on_builtin(id, fields, builtin)).collect())
    }

    /// The models of a provider that an extension registers once the file is laid over them.
    pub(super) fn over_extension(&self, known: &[Arc<Model>]) -> Patched {
        let mut patched = self.patched(known);
        for own in &self.own {
            match patched.known.iter_mut().find(|model| model.id == own.id) {
                Some(model) => *model = Arc::clone(own),
                None => patched.added.push(Arc::clone(own)),
            }
        }
        patched
    }

    fn changed(&self, model: &Arc<Model>, over: Option<&ModelFields>) -> Arc<Model> {
        if over.is_none() && self.base_url.is_none() && self.compat.is_none() {
            return Arc::clone(model);
        }
        let mut model = Model::clone(model);
        if let Some(base_url) = &self.base_url {
            model.base_url.clone_from(base_url);
        }
        model.compat = merge::compat(model.compat.as_ref(), self.compat.clone());
        if let Some(over) = over {
            merge::override_model(&mut model, over.clone());
        }
        Arc::new(model)
    }

    fn on_builtin(&self, id: &str, fields: &ModelFields, builtin: &[Arc<Model>]) -> Arc<Model> {
        let api = self.api_of(fields);
        let of_api = |api: &str| builtin.iter().find(|model| model.api == api);
        let like = builtin
            .iter()
            .find(|model| model.id == id)
            .or_else(|| api.and_then(of_api))
            .or_else(|| of_api(COMMON_API))
            .or_else(|| builtin.first());
        let api = api.or(like.map(|like| like.api.as_str())).unwrap_or(COMMON_API);
        let base_url = self.base_url_of(fields).or(like.map(|like| like.base_url.as_str()));
        Arc::new(self.model(id, fields, api.to_owned(), base_url.unwrap_or_default().to_owned()))
    }

    fn api_of<'a>(&'a self, fields: &'a ModelFields) -> Option<&'a str> {
        let own = fields.api.as_deref().filter(|api| !api.is_empty());
        own.or(self.api.as_deref())
    }

    fn base_url_of<'a>(&'a self, fields: &'a ModelFields) -> Option<&'a str> {
        let own = fields.base_url.as_deref().filter(|url| !url.is_empty());
        own.or(self.base_url.as_deref())
    }

    fn model(&self, id: &str, fields: &ModelFields, api: String, base_url: String) -> Model {
        let fields = fields.clone();
        Model {
            id: id.to_owned(),
            name: fields.name.unwrap_or_else(|| id.to_owned()),
            api,
            provider: self.config.id.clone(),
            base_url,
            reasoning: fields.reasoning.unwrap_or(false),
            thinking_level_map: fields.thinking_level_map,
            input: fields.input.unwrap_or_else(|| vec!["text".into()]),
            input_limits: fields.input_limits,
            cost: fields.cost.map(|cost: CostFields| cost.over(&ModelCost::default())).unwrap_or_default(),
            prompt_cache: fields.prompt_cache,
            context_window: fields.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_tokens: fields.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            headers: None,
            compat: merge::compat(self.compat.as_ref(), fields.compat),
            sampling_params: fields.sampling_params,
            sampling_params_by_thinking_level: fields.sampling_params_by_thinking_level,
            other: Map::new(),
        }
    }
}
