//! The model and the thinking level that a branch was last used with.

use agentd_protocol::message::Message;
use serde::Deserialize;

use crate::{Entry, EntryKind, Role, SessionTree};

/// A model by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRef {
    /// The provider.
    pub provider: String,
    /// The model's id at the provider.
    pub model_id: String,
}

/// What was chosen last on the path to a leaf, compacted parts included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// The model that was last chosen or answered.
    pub model: Option<ModelRef>,
    /// The last chosen thinking level; `None` when none was chosen, which means `off`.
    pub thinking_level: Option<String>,
}

impl Choices {
    /// Those at the leaf of `tree`. Looks no further up than to the last of each.
    #[must_use]
    pub fn of(tree: &SessionTree) -> Self {
        let mut found = Self::default();
        for at in tree.upwards(tree.leaf_index()) {
            let entry = tree.entry(at);
            if found.model.is_none() {
                found.model = model_of(entry);
            }
            if found.thinking_level.is_none() {
                found.thinking_level = level_of(entry);
            }
            if found.model.is_some() && found.thinking_level.is_some() {
                break;
            }
        }
        found
    }

    /// Takes what an entry behind the leaf chooses.
    pub(super) fn choose(&mut self, entry: &Entry) {
        if let Some(model) = model_of(entry) {
            self.model = Some(model);
        }
        if let Some(level) = level_of(entry) {
            self.thinking_level = Some(level);
        }
    }
}

/// The model that an entry chooses, or that wrote it.
#[must_use]
pub fn model_of(entry: &Entry) -> Option<ModelRef> {
    #[derive(Deserialize)]
    struct Chosen {
        provider: String,
        #[serde(rename = "modelId")]
        model_id: String,
    }
    #[derive(Deserialize)]
    struct Answered {
        provider: String,
        model: String,
    }
    match entry.kind() {
        EntryKind::ModelChange => {
            let Chosen { provider, model_id } = entry.read()?;
            Some(ModelRef { provider, model_id })
        }
        EntryKind::Message(Role::Assistant) => {
            let message = entry.message()?;
            // What is not there is empty in the typed view.
            if let Some(Message::Assistant(answer)) = message.parsed()
                && !(answer.provider.is_empty() || answer.model.is_empty())
            {
                let (provider, model_id) = (answer.provider.clone(), answer.model.clone());
                return Some(ModelRef { provider, model_id });
            }
            // No typed view for it: only two short fields are needed, and it would stay in memory.
            let Answered { provider, model } =
                message.with_text(|text| agentd_protocol::parse_json(text).ok())?;
            Some(ModelRef { provider, model_id: model })
        }
        _ => None,
    }
}

fn level_of(entry: &Entry) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Change {
        thinking_level: String,
    }
    (entry.kind() == EntryKind::ThinkingLevelChange)
        .then(|| entry.read::<Change>())?
        .map(|change| change.thinking_level)
}
