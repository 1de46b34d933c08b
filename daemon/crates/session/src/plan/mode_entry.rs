//! The entry that keeps a change of the mode.

use agentd_protocol::{
    agent_mode::{AgentMode, ApprovedPlan, MODE_ENTRY},
    entry::EntryBody,
    model::ThinkingLevel,
};
use agentd_store::SessionTree;
use serde::{Deserialize, Serialize};

/// A change of the mode, as its entry has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModeChange {
    pub(crate) mode: AgentMode,
    /// The client that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// The plan whose approval made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<ApprovedPlan>,
    /// The models before and in plan mode, where the role `plan` has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) models: Option<PlanModels>,
}

/// The models that plan mode changed, each as `provider/id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanModels {
    /// That of before, which the session goes back to.
    pub(crate) before: String,
    /// Its level.
    pub(crate) level: ThinkingLevel,
    /// That of the role.
    pub(crate) plan: String,
}

impl ModeChange {
    /// A change without a reason to tell.
    pub(crate) fn to(mode: AgentMode) -> Self {
        Self { mode, by: None, plan: None, models: None }
    }

    /// Its entry, which pi's programs pass over.
    pub(crate) fn entry(&self) -> EntryBody {
        EntryBody::Custom { custom_type: MODE_ENTRY.to_owned(), data: serde_json::to_value(self).ok() }
    }
}

/// The mode that the way from the root to the leaf says.
pub(crate) fn mode_on(tree: &SessionTree) -> AgentMode {
    last_change(tree).map_or(AgentMode::Default, |change| change.mode)
}

/// The last change on the way from the root to the leaf.
pub(crate) fn last_change(tree: &SessionTree) -> Option<ModeChange> {
    let branch = tree.branch();
    let mut custom = branch.iter().rev().filter(|entry| entry.may_be_custom(MODE_ENTRY));
    custom.find_map(|entry| match entry.body()? {
        EntryBody::Custom { custom_type, data: Some(data) } if custom_type == MODE_ENTRY => {
            serde_json::from_value::<ModeChange>(data).ok()
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_change_of_the_branch_counts() {
        let on = |bodies: &[EntryBody]| {
            let store = Store::new(StoreOptions::default());
            let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
            for body in bodies {
                let entry = tree.prepare(NewEntry::from_body(body).unwrap(), 0);
                tree.push(entry);
            }
            mode_on(&tree)
        };
        let plan = ModeChange { by: Some("a".into()), ..ModeChange::to(AgentMode::Plan) }.entry();
        let default = ModeChange::to(AgentMode::Default).entry();
        let odd = EntryBody::Custom { custom_type: MODE_ENTRY.into(), data: Some(json!({"mode": "x"})) };
        assert_eq!(on(&[]), AgentMode::Default);
        assert_eq!(on(std::slice::from_ref(&plan)), AgentMode::Plan);
        assert_eq!(on(&[plan.clone(), odd]), AgentMode::Plan);
        assert_eq!(on(&[plan.clone(), default.clone()]), AgentMode::Default);
        assert_eq!(on(&[default, plan]), AgentMode::Plan);
    }
}
