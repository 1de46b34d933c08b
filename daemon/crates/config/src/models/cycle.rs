//! The model after the current one.

use std::sync::Arc;

use agentd_protocol::model::{Model, ThinkingLevel};

use super::{ScopedModel, UsableModels};

/// The result of `cycle_model`.
#[derive(Debug, Clone, PartialEq)]
pub struct CycledModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level that the scope pins, not yet clamped.
    pub level: Option<ThinkingLevel>,
    /// True if it comes from the scope rather than from all available models.
    pub is_scoped: bool,
}

/// The next model of the scope (as far as it is still available), or without a scope of all available models; after the
/// last comes the first, and so it does when the current one is not in the list. `None` when there is no other.
#[must_use]
pub fn cycle(
    usable_models: &UsableModels<'_>,
    scope: &[ScopedModel],
    current: &Model,
) -> Option<CycledModel> {
    let is_scoped = !scope.is_empty();
    let list: Vec<ScopedModel> = if is_scoped {
        scope.iter().filter(|scoped| (usable_models.has_auth)(&scoped.model.provider)).cloned().collect()
    } else {
        usable_models.available().into_iter().map(|model| ScopedModel { model, level: None }).collect()
    };
    let place =
        list.iter().position(|item| item.model.provider == current.provider && item.model.id == current.id);
    let next = match place {
        Some(_) if list.len() == 1 => return None,
        Some(place) => (place + 1) % list.len(),
        None => 0,
    };
    let ScopedModel { model, level } = list.into_iter().nth(next)?;
    Some(CycledModel { model, level, is_scoped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{
        resolve_scope,
        testing::{TestModels, full_id, model},
    };

    #[test]
    fn goes_round() {
        let all = TestModels::new(&["a/one", "b/two", "c/three"], &["a", "c"]);
        let scope = resolve_scope(&all.offer(), &["three", "one:high"]).models;
        let next = |scope: &[ScopedModel], provider, id| {
            cycle(&all.offer(), scope, &model(provider, id))
                .map(|next| (full_id(&next.model), next.level.is_some(), next.is_scoped))
        };
        let found = |id: &str, pinned, scoped| Some((id.to_owned(), pinned, scoped));
        assert_eq!(next(&[], "a", "one"), found("c/three", false, false));
        assert_eq!(next(&[], "c", "three"), found("a/one", false, false));
        assert_eq!(next(&[], "b", "two"), found("a/one", false, false));
        assert_eq!(next(&scope, "c", "three"), found("a/one", true, true));
        assert_eq!(next(&scope, "x", "y"), found("c/three", false, true));
        assert_eq!(next(&scope[..1], "c", "three"), None);
        assert_eq!(next(&scope[..1], "a", "one"), found("c/three", false, true));
        let nothing = TestModels::new(&["a/one"], &[]);
        assert_eq!(cycle(&nothing.offer(), &[], &Model::placeholder()), None);
        assert_eq!(cycle(&nothing.offer(), &scope, &Model::placeholder()), None);
    }
}
