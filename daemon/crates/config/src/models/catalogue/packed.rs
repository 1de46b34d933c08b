//! A catalogue: an index of providers, and their packed models.
//!
//! The index tells without any work which providers there are, which APIs they speak and what they start with. Models
//! are unpacked for one provider at a time, when first looked at, and shared by all registries that hold them.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak},
};

use agentd_protocol::{
    model::Model,
    model_list::{CatalogueInfo, CatalogueKind},
};

use super::packing;
use crate::models::ProviderConfig;

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/catalogue.bin"));

/// A line of the index that is part of the program.
struct Builtin {
    id: &'static str,
    name: &'static str,
    default: &'static str,
    apis: &'static [(&'static str, usize)],
    ids: &'static [u32],
    names_levels: bool,
    packed: Range<usize>,
    unpacked: usize,
}

/// Packed models, and an index of them. Unpacked models are shared until their last user drops them.
#[derive(Debug)]
pub(in crate::models) struct Catalogue {
    /// Sorted by id.
    pub(in crate::models) providers: Vec<CatalogueProvider>,
    /// Places in `providers`, in the order in which they are preferred.
    pub(in crate::models) preferred: Vec<usize>,
    pub(in crate::models) packed: Cow<'static, [u8]>,
    pub(in crate::models) info: CatalogueInfo,
}

/// A line of the index.
#[derive(Debug)]
pub(in crate::models) struct CatalogueProvider {
    /// The id that models name.
    pub(in crate::models) id: Cow<'static, str>,
    /// A name to show.
    pub(in crate::models) name: Cow<'static, str>,
    /// The model that it starts with.
    pub(in crate::models) default: Cow<'static, str>,
    /// The wire APIs of its models, and of how many models each is.
    pub(in crate::models) apis: Vec<(Cow<'static, str>, usize)>,
    /// True if an id or a name of its models holds a thinking level behind a colon.
    pub(in crate::models) names_levels: bool,
    /// A hash of each model's id.
    pub(in crate::models) ids: Cow<'static, [u32]>,
    pub(in crate::models) packed: Range<usize>,
    pub(in crate::models) unpacked: usize,
    /// The models while they are unpacked.
    pub(in crate::models) models: Mutex<Weak<Vec<Arc<Model>>>>,
    pub(in crate::models) config: OnceLock<ProviderConfig>,
}

impl CatalogueProvider {
    /// Returns whether one of its models may have this id, in any case: never `false` when one has. Unpacks nothing.
    pub(in crate::models) fn may_have(&self, id: &str) -> bool {
        self.ids.contains(&packing::id_hash(id))
    }

    /// The configuration of the provider when the user has none.
    pub(in crate::models) fn config(&self) -> &ProviderConfig {
        self.config.get_or_init(|| ProviderConfig {
            id: self.id.to_string(),
            name: self.name.to_string(),
            ..ProviderConfig::default()
        })
    }
}

impl Catalogue {
    /// The one that is part of the program.
    pub(in crate::models) fn builtin() -> Arc<Self> {
        static CATALOGUE: LazyLock<Arc<Catalogue>> = LazyLock::new(|| {
            let provider = |builtin: &Builtin| CatalogueProvider {
                id: builtin.id.into(),
                name: builtin.name.into(),
                default: builtin.default.into(),
                apis: builtin.apis.iter().map(|(api, count)| ((*api).into(), *count)).collect(),
                names_levels: builtin.names_levels,
                ids: builtin.ids.into(),
                packed: builtin.packed.clone(),
                unpacked: builtin.unpacked,
                models: Mutex::default(),
                config: OnceLock::new(),
            };
            Arc::new(Catalogue {
                providers: BUILTIN.iter().map(provider).collect(),
                preferred: PREFERRED.to_vec(),
                packed: PACKED.into(),
                info: CatalogueInfo {
                    kind: CatalogueKind::Builtin,
                    source: Some(SOURCE.into()),
                    date: Some(DATE.into()),
                    updated_at: None,
                },
            })
        });
        Arc::clone(&CATALOGUE)
    }

    /// The kind and date of the catalogue.
    pub(in crate::models) fn info(&self) -> &CatalogueInfo {
        &self.info
    }

    /// The providers in catalogue order.
    pub(in crate::models) fn providers(&self) -> &[CatalogueProvider] {
        &self.providers
    }

    /// The place of a provider in [`Catalogue::providers`].
    pub(in crate::models) fn place_of(&self, id: &str) -> Option<usize> {
        self.providers.binary_search_by(|provider| (*provider.id).cmp(id)).ok()
    }

    /// Provider and default model, in the order in which providers are preferred.
    pub(in crate::models) fn defaults(&self) -> impl Iterator<Item = (&str, &str)> {
        let preferred = self.preferred.iter().map(|&place| &self.providers[place]);
        preferred.map(|provider| (&*provider.id, &*provider.default))
    }

    /// The models of the provider at this place. Unpacks them unless they are in use already: some milliseconds for the largest
    /// provider, less than one for most.
    pub(in crate::models) fn models(&self, place: usize) -> Arc<Vec<Arc<Model>>> {
        let provider = &self.providers[place];
        let mut unpacked = provider.models.lock().unwrap_or_else(PoisonError::into_inner);
        unpacked.upgrade().unwrap_or_else(|| {
            let models = Arc::new(self.unpack(provider));
            *unpacked = Arc::downgrade(&models);
            models
        })
    }

    /// The bytes are part of the program, and the tests read all of them, or of a file whose checksum is right: that one
    /// cannot be read is no case of its own.
    fn unpack(&self, provider: &CatalogueProvider) -> Vec<Arc<Model>> {
        let packed = self.packed.get(provider.packed.clone()).unwrap_or_default();
        let text = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, provider.unpacked);
        let text = text.unwrap_or_default();
        text.split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .map(Arc::new)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use agentd_protocol::model::ThinkingLevel;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_model_is_read_and_written_as_it_stands_in_the_file() {
        let mut count = 0;
        let catalogue = Catalogue::builtin();
        for (place, provider) in catalogue.providers().iter().enumerate() {
            let file = format!("{}/catalogue/models/{}.jsonl", env!("CARGO_MANIFEST_DIR"), provider.id);
            let text = fs::read_to_string(Path::new(&file)).unwrap();
            let models = catalogue.models(place);
            let written: Vec<String> =
                models.iter().map(|model| serde_json::to_string(&**model).unwrap()).collect();
            assert!(text.lines().eq(written.iter().map(String::as_str)), "{file}");
            let counted: usize = provider.apis.iter().map(|(_, count)| count).sum();
            assert_eq!(counted, models.len(), "{file}");
            for model in models.iter() {
                assert_eq!(model.provider, provider.id);
                assert!(provider.may_have(&model.id.to_uppercase()) && !provider.may_have("none such"));
                assert!(
                    !model.id.is_empty() && model.context_window > 0 && !model.input.is_empty(),
                    "{model:?}"
                );
                assert!(models.iter().filter(|other| other.id == model.id).count() == 1, "{model:?}");
                // The search relies on this: see `ModelRegistry::may_hold`.
                assert!(!provider.names_levels);
                for level in ThinkingLevel::ALL.map(|level| format!(":{}", level.as_str())) {
                    assert!(packing::holds_level(&level));
                    assert!(
                        !format!("{} {}", model.id, model.name).to_lowercase().contains(&level),
                        "{model:?}"
                    );
                }
                let values = model.headers.iter().flat_map(|headers| headers.values());
                // A header with another beginning would be taken for a variable or a command.
                assert!(
                    values.map(|value| value.as_str().unwrap()).all(|text| !text.starts_with(['$', '!']))
                );
            }
            count += models.len();
        }
        assert_eq!(count, 1643);
    }

    #[test]
    fn the_index_is_sorted_and_complete() {
        let catalogue = Catalogue::builtin();
        let providers = catalogue.providers();
        assert!(providers.is_sorted_by_key(|provider| &provider.id));
        assert_eq!(providers.len(), 42);
        assert_eq!(catalogue.defaults().count(), 42);
        for (id, default) in catalogue.defaults() {
            let provider = &providers[catalogue.place_of(id).unwrap()];
            assert_eq!((&*provider.id, &*provider.default), (id, default));
            assert!(
                catalogue.models(catalogue.place_of(id).unwrap()).iter().any(|model| model.id == default),
                "{id}"
            );
        }
        let first: Vec<_> = catalogue.defaults().take(4).collect();
        let expected = [
            ("amazon-bedrock", "us.anthropic.claude-opus-5-5"),
            ("ant-ling", "Ring-2.6-1T"),
            ("anthropic", "claude-opus-5-5"),
            ("openai", "gpt-6.1-sol"),
        ];
        assert_eq!(first, expected);
        assert_eq!(catalogue.place_of("nobody"), None);
    }

    #[test]
    fn no_model_presents_another_product() {
        let catalogue = Catalogue::builtin();
        for (place, provider) in catalogue.providers().iter().enumerate() {
            for model in catalogue.models(place).iter() {
                let Some(headers) = &model.headers else { continue };
                assert_eq!(provider.id, "nvidia");
                assert_eq!(Value::from(headers.clone()), serde_json::json!({"NVCF-POLL-SECONDS": "3600"}));
            }
        }
    }

    #[test]
    fn what_nobody_holds_is_let_go() {
        let catalogue = Catalogue::builtin();
        let place = catalogue.place_of("ant-ling").unwrap();
        let held = catalogue.models(place);
        assert!(Arc::ptr_eq(&held, &catalogue.models(place)));
        let weak = Arc::downgrade(&held);
        drop(held);
        // Another test may hold it for a moment; it does not stay in the cache itself.
        assert!(
            weak.strong_count() == 0 || catalogue.providers[place].models.lock().unwrap().strong_count() > 0
        );
    }
}
