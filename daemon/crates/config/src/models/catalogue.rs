//! The built-in catalogue: the models of well-known providers, packed into the program.
//!
//! The index tells without any work which providers there are, which APIs they speak and what they start with. Models
//! are unpacked for one provider at a time, when first looked at, and shared by all registries that hold them.

mod id_hash;

use std::{
    ops::Range,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use agentd_protocol::model::Model;

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/catalogue.bin"));

/// What is unpacked at the moment, by place in the index.
static UNPACKED: [Mutex<Weak<Vec<Arc<Model>>>>; PROVIDERS.len()] =
    [const { Mutex::new(Weak::new()) }; PROVIDERS.len()];

/// A line of the index.
#[derive(Debug)]
pub(super) struct Provider {
    /// The id that models name.
    pub(super) id: &'static str,
    /// A name to show.
    pub(super) name: &'static str,
    /// The model that it starts with.
    pub(super) default: &'static str,
    /// The wire APIs of its models, and of how many models each is.
    pub(super) apis: &'static [(&'static str, usize)],
    /// A hash of each model's id.
    ids: &'static [u32],
    packed: Range<usize>,
    unpacked: usize,
}

impl Provider {
    /// Whether one of its models may have this id, in any case: never `false` when one has. Unpacks nothing.
    pub(super) fn may_have(&self, id: &str) -> bool {
        self.ids.contains(&id_hash::id_hash(id))
    }
}

/// The providers in catalogue order.
pub(super) fn providers() -> &'static [Provider] {
    PROVIDERS
}

/// The place of a provider in [`providers`].
pub(super) fn place_of(id: &str) -> Option<usize> {
    PROVIDERS.binary_search_by_key(&id, |provider| provider.id).ok()
}

/// Provider and default model, in the order in which providers are preferred.
pub(super) fn defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    PREFERRED.iter().map(|&place| (PROVIDERS[place].id, PROVIDERS[place].default))
}

/// The models of the provider at this place. Unpacks them unless somebody has them already: some milliseconds for the
/// largest provider, less than one for most.
pub(super) fn models(place: usize) -> Arc<Vec<Arc<Model>>> {
    let mut unpacked = UNPACKED[place].lock().unwrap_or_else(PoisonError::into_inner);
    unpacked.upgrade().unwrap_or_else(|| {
        let models = Arc::new(unpack(&PROVIDERS[place]));
        *unpacked = Arc::downgrade(&models);
        models
    })
}

/// The bytes are part of the program, and the tests read all of them: that one cannot be read is no case of its own.
fn unpack(provider: &Provider) -> Vec<Arc<Model>> {
    let packed = &PACKED[provider.packed.clone()];
    let text = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, provider.unpacked);
    let text = text.unwrap_or_default();
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .map(Arc::new)
        .collect()
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
        for (place, provider) in PROVIDERS.iter().enumerate() {
            let file = format!("{}/catalogue/models/{}.jsonl", env!("CARGO_MANIFEST_DIR"), provider.id);
            let text = fs::read_to_string(Path::new(&file)).unwrap();
            let models = models(place);
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
                for level in ThinkingLevel::ALL.map(|level| format!(":{}", level.as_str())) {
                    assert!(
                        !format!("{} {}", model.id, model.name).to_lowercase().contains(&level),
                        "{model:?}"
                    );
                }
                let values = model.headers.iter().flat_map(|headers| headers.values());
                // What begins otherwise would be taken for a variable or a command.
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
        assert!(PROVIDERS.is_sorted_by_key(|provider| provider.id));
        assert_eq!(PROVIDERS.len(), 42);
        assert_eq!(defaults().count(), 42);
        for (id, default) in defaults() {
            let provider = &PROVIDERS[place_of(id).unwrap()];
            assert_eq!((provider.id, provider.default), (id, default));
            assert!(models(place_of(id).unwrap()).iter().any(|model| model.id == default), "{id}");
        }
        let first: Vec<_> = defaults().take(4).collect();
        let expected = [
            ("amazon-bedrock", "us.anthropic.claude-opus-5-5"),
            ("ant-ling", "Ring-2.6-1T"),
            ("anthropic", "claude-opus-5-5"),
            ("openai", "gpt-6.1-sol"),
        ];
        assert_eq!(first, expected);
        assert_eq!(place_of("nobody"), None);
    }

    #[test]
    fn no_model_presents_another_product() {
        for (place, provider) in PROVIDERS.iter().enumerate() {
            for model in models(place).iter() {
                let Some(headers) = &model.headers else { continue };
                assert_eq!(provider.id, "nvidia");
                assert_eq!(Value::from(headers.clone()), serde_json::json!({"NVCF-POLL-SECONDS": "3600"}));
            }
        }
    }

    #[test]
    fn what_nobody_holds_is_let_go() {
        let place = place_of("ant-ling").unwrap();
        let held = models(place);
        assert!(Arc::ptr_eq(&held, &models(place)));
        let weak = Arc::downgrade(&held);
        drop(held);
        // Another test may hold it for a moment; it does not stay in the cache itself.
        assert!(weak.strong_count() == 0 || UNPACKED[place].lock().unwrap().strong_count() > 0);
    }
}
