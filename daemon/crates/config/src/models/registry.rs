//! The models that there are: those of the catalogue, with `models.json` laid over them.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use agentd_protocol::{
    model::Model, model_list::CatalogueInfo, models_file::ConfigValue, resources::Diagnostic,
};
use serde_json::Value;

use super::{
    DEMO_MODEL, DEMO_PROVIDER, ProviderConfig,
    catalogue::{self, Catalogue},
    demo,
    extended::Extended,
    file::{self, FileProblem},
    file_provider::{FileProvider, Patched},
    names::split_level,
};
use crate::AgentDir;

/// All models, in catalogue order, then what `models.json` adds in the order of the file. Immutable: a changed file makes
/// a new registry.
///
/// The catalogue's models are unpacked when they are looked at, one provider at a time; the documentation of each
/// function says whose.
#[derive(Debug)]
pub struct ModelRegistry {
    catalogue: Arc<Catalogue>,
    /// By place in the catalogue.
    builtin: Vec<OnceLock<Unpacked>>,
    /// In the order of the file.
    file: Vec<FileProvider>,
    problem: Option<Box<FileProblem>>,
    /// The keys of the file that no code reads.
    unread: Vec<Diagnostic>,
    /// Why the stored catalogue is not used.
    catalogue_problem: Option<catalogue::StoredCatalogueProblem>,
    /// True if no model is to be preferred for its place in the catalogue.
    in_order: bool,
    /// The providers that extensions change or add.
    extended: Vec<Extended>,
    /// The registry without these.
    base: Option<Arc<ModelRegistry>>,
}

/// The models of a provider of the catalogue.
#[derive(Debug)]
enum Unpacked {
    /// The models of the catalogue, unchanged.
    Plain(Arc<Vec<Arc<Model>>>),
    /// With the file over them.
    Patched(Patched),
}

impl Unpacked {
    fn known(&self) -> &[Arc<Model>] {
        match self {
            Self::Plain(models) => models,
            Self::Patched(patched) => &patched.known,
        }
    }

    fn added(&self) -> &[Arc<Model>] {
        match self {
            Self::Plain(_) => &[],
            Self::Patched(patched) => &patched.added,
        }
    }
}

impl ModelRegistry {
    /// The catalogue of the agent directory (the one that an update stored there, else the built-in one), and its
    /// `models.json`. Never fails: an unusable stored catalogue gives way to the built-in one, and
    /// [`ModelRegistry::catalogue_problem`] tells why; for `models.json` see [`ModelRegistry::load`]. Unpacks nothing.
    #[must_use]
    pub fn of_agent_dir(agent_dir: &AgentDir) -> Self {
        Self::with_catalogue(catalogue::load(agent_dir), &agent_dir.models_file())
    }

    /// The built-in catalogue and `models.json`. Never fails: with a file that cannot be used there is only the catalogue,
    /// and [`ModelRegistry::load_error`] says why. Unpacks nothing.
    #[must_use]
    pub fn load(path: &Path) -> Self {
        Self::with_catalogue(Ok(Catalogue::builtin()), path)
    }

    /// The built-in catalogue alone. Unpacks nothing.
    #[must_use]
    pub fn builtin() -> Self {
        Self::of_catalogue(Catalogue::builtin())
    }

    /// These models alone, whatever files say; the first is the default.
    #[must_use]
    pub fn only(models: Vec<Arc<Model>>) -> Self {
        Self { file: FileProvider::of(models), builtin: Vec::new(), in_order: true, ..Self::builtin() }
    }

    /// A loaded catalogue, or the built-in one where it could not be, with `models.json` over it.
    pub(super) fn with_catalogue(
        catalogue: Result<Arc<Catalogue>, catalogue::StoredCatalogueProblem>,
        models_file: &Path,
    ) -> Self {
        let (catalogue, catalogue_problem) = match catalogue {
            Ok(catalogue) => (catalogue, None),
            Err(problem) => (Catalogue::builtin(), Some(problem)),
        };
        let (file::ReadModelsFile { providers: file, unread }, problem) =
            match file::load(models_file, &catalogue) {
                Ok(read) => (read, None),
                Err(problem) => (file::ReadModelsFile::default(), Some(problem)),
            };
        Self { file, unread, problem, catalogue_problem, ..Self::of_catalogue(catalogue) }
    }

    fn of_catalogue(catalogue: Arc<Catalogue>) -> Self {
        let builtin = catalogue.providers().iter().map(|_| OnceLock::new()).collect();
        Self {
            catalogue,
            builtin,
            file: Vec::new(),
            problem: None,
            unread: Vec::new(),
            catalogue_problem: None,
            in_order: false,
            extended: Vec::new(),
            base: None,
        }
    }

    /// Returns whether the registry was made of this catalogue.
    pub(super) fn is_of(
        &self,
        catalogue: &Result<Arc<Catalogue>, catalogue::StoredCatalogueProblem>,
    ) -> bool {
        match catalogue {
            Ok(catalogue) => self.catalogue_problem.is_none() && Arc::ptr_eq(catalogue, &self.catalogue),
            Err(problem) => self.catalogue_problem.as_ref() == Some(problem),
        }
    }

    /// The catalogue alone.
    pub(super) fn into_catalogue(self) -> Arc<Catalogue> {
        self.catalogue
    }

    /// The kind and date of the catalogue.
    #[must_use]
    pub fn catalogue(&self) -> &CatalogueInfo {
        self.catalogue.info()
    }

    /// Why the catalogue that an update stored is not used.
    #[must_use]
    pub fn catalogue_problem(&self) -> Option<&Diagnostic> {
        self.catalogue_problem.as_deref()
    }

    /// Everything that is wrong with the files.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.catalogue_problem().into_iter().chain(self.diagnostic()).chain(&self.unread)
    }

    /// The providers of the catalogue and their default models, in the order in which they are preferred.
    pub(super) fn defaults(&self) -> impl Iterator<Item = (&str, &str)> {
        self.catalogue.defaults().filter(|_| !self.in_order)
    }

    /// The default model of a provider of the catalogue.
    pub(super) fn default_of(&self, provider: &str) -> Option<&str> {
        self.catalogue.place_of(provider).map(|place| &*self.catalogue.providers()[place].default)
    }

    /// The ids of all providers, in the order of their models. Unpacks nothing.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        let builtin =
            self.catalogue.providers().iter().take(self.builtin.len()).map(|provider| &*provider.id);
        let extended = self.extended.iter().map(|provider| provider.config.id.as_str());
        let extended = extended.filter(|id| self.place_of(id).is_none());
        builtin.chain(extended).chain(self.own_providers().map(|provider| provider.config.id.as_str()))
    }

    /// Every model of the wanted providers, in order, whether usable or not; without the demo model. Unpacks the wanted
    /// providers as the iterator comes to them.
    pub fn select<'a>(
        &'a self,
        wanted: &'a (dyn Fn(&str) -> bool + 'a),
    ) -> impl Iterator<Item = &'a Arc<Model>> {
        let places = (0..self.builtin.len()).filter(|place| wanted(&self.catalogue.providers()[*place].id));
        let known = places.flat_map(|place| self.known_at(place));
        let of_extensions = self
            .extended
            .iter()
            .filter(|provider| wanted(&provider.config.id) && self.place_of(&provider.config.id).is_none());
        let of_extensions = of_extensions.flat_map(|provider| &provider.models.known);
        let listed = self.file.iter().filter(|provider| wanted(&provider.config.id));
        known.chain(of_extensions).chain(listed.flat_map(|provider| self.added_by(provider)))
    }

    /// The models of a provider. Unpacks this one.
    pub fn models_of(&self, provider: &str) -> impl Iterator<Item = &Arc<Model>> {
        let known = match self.extended(provider) {
            Some(extended) => Some(&extended.models.known[..]),
            None => self.place_of(provider).map(|place| self.unpacked(place).known()),
        };
        let listed = self.listed(provider);
        known.into_iter().flatten().chain(listed.into_iter().flat_map(|listed| self.added_by(listed)))
    }

    /// The model with exactly this provider and id; the demo model too. Unpacks this provider.
    #[must_use]
    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let configured = self.models_of(provider).find(|model| model.id == id);
        let demo = || (provider == DEMO_PROVIDER && id == DEMO_MODEL).then(demo::model);
        configured.cloned().or_else(demo)
    }

    /// The configuration of a provider, from the file or else the catalogue. Unpacks nothing.
    #[must_use]
    pub fn provider(&self, id: &str) -> Option<&ProviderConfig> {
        let listed = self.listed(id).map(|provider| &provider.config);
        let known = self.extended(id).map(|extended| &extended.config).or(listed);
        known.or_else(|| self.place_of(id).map(|place| self.catalogue.providers()[place].config()))
    }

    /// Every provider that the user's file says something of, in the order of the file. Unpacks nothing.
    pub fn configured(&self) -> impl Iterator<Item = &ProviderConfig> {
        self.file.iter().map(|provider| &provider.config)
    }

    /// The headers of requests to a model: the catalogue's, overridden by the user's for the provider, overridden by the user's
    /// for the model. `None` for a header that the user removes, wherever it comes from.
    #[must_use]
    pub fn headers_of(&self, model: &Model) -> Vec<(String, Option<ConfigValue>)> {
        let configured = self.provider(&model.provider).map(|provider| provider.headers_of(&model.id));
        let configured = configured.unwrap_or_default();
        let hidden = |name: &str| configured.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let builtin = model.headers.iter().flatten().filter(|(name, _)| !hidden(name));
        let builtin = builtin.filter_map(|(name, value)| Some((name.clone(), Some(text(value)?))));
        let configured = configured.iter().map(|(name, value)| ((*name).to_owned(), value.cloned()));
        builtin.chain(configured).collect()
    }

    /// Returns whether a provider has models of any of these APIs, as far as that is known without unpacking: never `false` when
    /// it has. Unpacks nothing.
    #[must_use]
    pub fn may_speak(&self, provider: &str, apis: &[&str]) -> bool {
        if self.extended(provider).is_some() {
            return true;
        }
        let listed = self.file.iter().find(|listed| listed.config.id == provider);
        let own = |listed: &FileProvider| listed.own.iter().any(|model| apis.contains(&model.api.as_str()));
        let place = self.place_of(provider);
        let builtin = |place: usize| &self.catalogue.providers()[place].apis;
        place.is_some_and(|place| builtin(place).iter().any(|(api, _)| apis.contains(&&**api)))
            || listed.is_some_and(|listed| own(listed) || listed.apis().any(|api| apis.contains(&api)))
    }

    /// Returns whether a provider may have a model with this id, in any case: never `false` when it has. Unpacks nothing.
    #[must_use]
    pub fn may_have(&self, provider: &str, id: &str) -> bool {
        if self.extended(provider).is_some() {
            return true;
        }
        let listed = self.file.iter().find(|listed| listed.config.id == provider);
        let place = self.place_of(provider);
        place.is_some_and(|place| self.catalogue.providers()[place].may_have(id))
            || listed.is_some_and(|listed| listed.has_model(id))
    }

    /// Returns whether id or name of one of a provider's models may hold this text: never `false` when one does. Unpacks nothing.
    #[must_use]
    pub fn may_hold(&self, provider: &str, text: &str) -> bool {
        if self.extended(provider).is_some() {
            return true;
        }
        let listed = self.file.iter().find(|listed| listed.config.id == provider);
        let names_levels = |place: usize| self.catalogue.providers()[place].names_levels;
        let has_level = split_level(text).is_some();
        let may_be_builtin = self.place_of(provider).is_some_and(|place| !has_level || names_levels(place));
        may_be_builtin || listed.is_some_and(FileProvider::names_models)
    }

    /// The wire APIs of a provider's models, and how many models each has. Unpacks the provider only where `models.json`
    /// changes something about its models.
    #[must_use]
    pub fn count_by_api(&self, provider: &str) -> Vec<(String, usize)> {
        let untouched = self.place_of(provider).filter(|_| self.extended(provider).is_none()).filter(|_| {
            let listed = self.file.iter().find(|listed| listed.config.id == provider);
            listed.is_none_or(FileProvider::leaves_models_alone)
        });
        if let Some(place) = untouched {
            let apis = &self.catalogue.providers()[place].apis;
            return apis.iter().map(|(api, count)| (api.to_string(), *count)).collect();
        }
        let mut counts: Vec<(String, usize)> = Vec::new();
        for model in self.models_of(provider) {
            match counts.iter_mut().find(|(api, _)| *api == model.api) {
                Some((_, count)) => *count += 1,
                None => counts.push((model.api.clone(), 1)),
            }
        }
        counts
    }

    /// The models that `models.json` defines, in the order of the file. Unpacks the providers of the catalogue that the
    /// file adds models to.
    pub fn of_file(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.file.iter().flat_map(|provider| self.added_by(provider))
    }

    /// Provider and id of each model in `modelOverrides` that is no built-in one, so that nothing is changed. Unpacks the
    /// providers that the file overrides models of.
    #[must_use]
    pub fn idle_overrides(&self) -> Vec<(&str, &str)> {
        let of = |provider: &FileProvider| provider.has_overrides().then_some(provider.place).flatten();
        let idle = self.file.iter().flat_map(|provider| {
            let builtin = of(provider).map_or(&[][..], |place| self.unpacked(place).known());
            provider.idle_overrides(builtin).map(|id| (provider.config.id.as_str(), id))
        });
        idle.collect()
    }

    /// The providers of the catalogue that are unpacked.
    pub fn unpacked_providers(&self) -> impl Iterator<Item = &str> {
        let places = self.builtin.iter().zip(self.catalogue.providers());
        places.filter(|(slot, _)| slot.get().is_some()).map(|(_, provider)| &*provider.id)
    }

    /// The fault in `models.json`, for the user.
    #[must_use]
    pub fn load_error(&self) -> Option<&str> {
        self.problem.as_ref().map(|problem| problem.text.as_str())
    }

    /// The fault in `models.json` as a diagnostic with file and line.
    #[must_use]
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        self.problem.as_ref().map(|problem| &problem.diagnostic)
    }

    /// The keys of the file that no code reads.
    #[must_use]
    pub fn unread(&self) -> &[Diagnostic] {
        &self.unread
    }

    fn own_providers(&self) -> impl Iterator<Item = &FileProvider> {
        self.file.iter().filter(|provider| {
            self.place_of(&provider.config.id).is_none() && self.extended(&provider.config.id).is_none()
        })
    }

    fn added_by<'a>(&'a self, provider: &'a FileProvider) -> &'a [Arc<Model>] {
        if let Some(extended) = self.extended(&provider.config.id) {
            return &extended.models.added;
        }
        match provider.place.filter(|_| provider.has_models()) {
            Some(place) => self.unpacked(place).added(),
            None => &provider.own,
        }
    }

    /// The registry without what extensions add.
    #[must_use]
    pub fn base(self: &Arc<Self>) -> &Arc<Self> {
        self.base.as_ref().unwrap_or(self)
    }

    /// This registry with these providers in the place of its own.
    pub(super) fn with_extended(self: &Arc<Self>, extended: Vec<Extended>) -> Self {
        Self {
            catalogue: Arc::clone(&self.catalogue),
            builtin: self.builtin.iter().map(|_| OnceLock::new()).collect(),
            file: self.file.clone(),
            problem: self.problem.clone(),
            unread: self.unread.clone(),
            catalogue_problem: self.catalogue_problem.clone(),
            in_order: self.in_order,
            extended,
            base: Some(Arc::clone(self)),
        }
    }

    /// The models of a provider as the catalogue has them.
    pub(super) fn of_catalogue_provider(&self, provider: &str) -> Vec<Arc<Model>> {
        let place = self.place_of(provider);
        place.map(|place| self.catalogue.models(place).to_vec()).unwrap_or_default()
    }

    pub(super) fn catalogue_of_files(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What the file says of a provider.
    pub(super) fn listed(&self, provider: &str) -> Option<&FileProvider> {
        self.file.iter().find(|listed| listed.config.id == provider)
    }

    fn extended(&self, provider: &str) -> Option<&Extended> {
        self.extended.iter().find(|extended| extended.config.id == provider)
    }

    fn known_at(&self, place: usize) -> &[Arc<Model>] {
        match self.extended(&self.catalogue.providers()[place].id) {
            Some(extended) => &extended.models.known,
            None => self.unpacked(place).known(),
        }
    }

    fn place_of(&self, provider: &str) -> Option<usize> {
        self.catalogue.place_of(provider).filter(|place| *place < self.builtin.len())
    }

    fn unpacked(&self, place: usize) -> &Unpacked {
        self.builtin[place].get_or_init(|| {
            let models = self.catalogue.models(place);
            let listed = self.file.iter().find(|provider| provider.place == Some(place));
            match listed.filter(|provider| !provider.leaves_models_alone()) {
                Some(provider) => Unpacked::Patched(provider.patched(&models)),
                None => Unpacked::Plain(models),
            }
        })
    }

    /// A registry without a catalogue.
    #[cfg(test)]
    pub(super) fn of(models: Vec<Arc<Model>>) -> Self {
        let file = FileProvider::of(models);
        Self { file, builtin: Vec::new(), ..Self::builtin() }
    }
}

fn text(value: &Value) -> Option<ConfigValue> {
    value.as_str().map(ConfigValue::new)
}

#[cfg(test)]
mod tests;
