//! Which model a session uses and how hard it thinks. Pure: the commands around it are in the actor, the rules
//! of choosing in `agentd_config::models`.

use std::sync::Arc;

use agentd_config::models::ScopedModel;
use agentd_protocol::model::{Model, ThinkingLevel};

use crate::current_model::CurrentModel;

/// The model and the level that the next request uses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) model: Arc<Model>,
    pub(crate) level: ThinkingLevel,
}

/// The choice, and what `cycle_model` goes through.
pub(crate) struct Chooser {
    current: Choice,
    /// The substitute for the current choice until the run settles.
    substitute: Option<Choice>,
    /// Whether nothing was chosen since the session was opened.
    is_at_the_beginning: bool,
    /// Empty: all available models.
    scope: Vec<ScopedModel>,
    /// Where tools see the model.
    shown: CurrentModel,
}

impl Chooser {
    pub(crate) fn new(current: Choice, scope: Vec<ScopedModel>) -> Self {
        let shown = CurrentModel::default();
        Self { current, substitute: None, is_at_the_beginning: true, scope, shown }
    }

    /// Shows tools the model, now and after each change.
    #[must_use]
    pub(crate) fn shown_in(mut self, shown: CurrentModel) -> Self {
        shown.set(&self.current.model);
        self.shown = shown;
        self
    }

    pub(crate) fn current(&self) -> Choice {
        self.current.clone()
    }

    /// The choice of the next request: the substitute, if there is one.
    pub(crate) fn in_use(&self) -> Choice {
        self.substitute.as_ref().unwrap_or(&self.current).clone()
    }

    /// The substitute for the current choice.
    pub(crate) fn substituted(&self) -> Option<&Choice> {
        self.substitute.as_ref()
    }

    /// Uses another choice until [`Chooser::end_substitution`], or until somebody chooses a model.
    pub(crate) fn substitute(&mut self, choice: Choice) {
        self.substitute = Some(choice);
    }

    /// Goes back to the current choice; false where nothing was in its place.
    pub(crate) fn end_substitution(&mut self) -> bool {
        self.substitute.take().is_some()
    }

    /// The chosen model is described otherwise now.
    pub(crate) fn renew(&mut self, model: Arc<Model>) {
        self.shown.set(&model);
        self.current.model = model;
    }

    pub(crate) fn is_at_the_beginning(&self) -> bool {
        self.is_at_the_beginning
    }

    pub(crate) fn set_scope(&mut self, scope: Vec<ScopedModel>) {
        self.scope = scope;
    }

    pub(crate) fn scope(&self) -> &[ScopedModel] {
        &self.scope
    }

    /// The level that the scope pins for a model.
    pub(crate) fn pinned(&self, model: &Model) -> Option<ThinkingLevel> {
        let same =
            |scoped: &&ScopedModel| scoped.model.provider == model.provider && scoped.model.id == model.id;
        self.scope.iter().find(same)?.level
    }

    pub(crate) fn set(&mut self, choice: Choice) {
        self.is_at_the_beginning = false;
        if let Some(substitute) = &mut self.substitute
            && choice.level != self.current.level
        {
            substitute.level = substitute.model.clamp_thinking(Some(choice.level));
        }
        self.shown.set(&choice.model);
        self.current = choice;
    }

    /// The levels to choose from: those of the model, and only `off` where there is none.
    pub(crate) fn levels(&self) -> Vec<ThinkingLevel> {
        self.current.model.thinking_levels()
    }

    /// The level after the current one, round and round; `None` where there is nothing to choose.
    pub(crate) fn next_level(&self) -> Option<ThinkingLevel> {
        if !self.current.model.reasoning {
            return None;
        }
        let levels = self.current.model.thinking_levels();
        let at = levels.iter().position(|level| *level == self.current.level);
        levels.get(at.map_or(0, |at| (at + 1) % levels.len())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_go_round() {
        let model = |reasoning| Arc::new(Model { id: "a".into(), reasoning, ..Model::placeholder() });
        let chooser = |reasoning, level| Chooser::new(Choice { model: model(reasoning), level }, Vec::new());
        assert_eq!(chooser(true, ThinkingLevel::High).next_level(), Some(ThinkingLevel::Off));
        assert_eq!(chooser(true, ThinkingLevel::Off).next_level(), Some(ThinkingLevel::Minimal));
        assert_eq!(chooser(false, ThinkingLevel::Off).next_level(), None);
        let none = Choice { model: Arc::new(Model::placeholder()), level: ThinkingLevel::Off };
        assert_eq!(Chooser::new(none, Vec::new()).levels(), [ThinkingLevel::Off]);
    }
}
