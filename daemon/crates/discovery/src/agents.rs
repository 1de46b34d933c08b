//! Definitions of agents.

use crate::item::Item;

/// A definition of an agent that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition<'a> {
    /// The item: its file, its provider, its whole front matter (keys in camel case). [`read_body`](crate::read_body) reads the prompt.
    pub item: &'a Item,
    /// Its name.
    pub name: &'a str,
    /// Its purpose, for the model that chooses it.
    pub description: &'a str,
    /// The tools that it has, as written; `None` for those of its parent.
    pub tools: Option<Vec<String>>,
    /// The models that it works with, as written; empty for its parent's.
    pub model: Vec<String>,
}

impl<'a> AgentDefinition<'a> {
    /// The definition that an item is; `None` without a description.
    pub(crate) fn of(item: &'a Item) -> Option<Self> {
        Some(Self {
            item,
            name: &item.name,
            description: item.description.as_deref()?,
            tools: item.fields.get("tools").filter(|tools| !tools.is_null()).map(|_| item.list("tools")),
            model: item.list("model").into_iter().filter(|model| model != "inherit").collect(),
        })
    }
}
