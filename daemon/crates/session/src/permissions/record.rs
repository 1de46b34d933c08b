//! Decisions and changes on record: an entry of the session, and then an event.

use agentd_policy::DecidingRule;
use agentd_protocol::{
    entry::EntryBody,
    event::{DecisionMaker, PermissionDecision, PermissionVerdict},
    settings::{PermissionRule, PermissionSettings},
};
use agentd_store::SessionTree;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;

/// The `customType` of the entry.
const ENTRY_TYPE: &str = "permission";

/// A decision that is to be stored, and then told.
pub(crate) struct RecordDecision {
    pub(crate) decision: PermissionDecision,
    /// Answered when it is on disk; false when the disk did not take it.
    pub(crate) stored: oneshot::Sender<bool>,
}

impl RecordDecision {
    /// The entry.
    pub(crate) fn entry(&self) -> EntryBody {
        EntryBody::Custom {
            custom_type: ENTRY_TYPE.to_owned(),
            data: serde_json::to_value(Data { decision: &self.decision }).ok(),
        }
    }
}

#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    decision: &'a PermissionDecision,
}

/// The entry about a change by a command.
pub(crate) fn changed(changes: &PermissionSettings, client: &str) -> EntryBody {
    EntryBody::Custom {
        custom_type: ENTRY_TYPE.to_owned(),
        data: Some(json!({ "set": changes, "client": client })),
    }
}

/// The entry by which a copy of a session begins without the rules that answers gave the session.
pub(crate) fn without_rules() -> EntryBody {
    let none = PermissionSettings { rules: Some(Vec::new()), ..PermissionSettings::default() };
    changed(&none, "agentd")
}

/// The rules that answers on this branch gave the session, since a command replaced its rules.
pub(super) fn rules_of(tree: &SessionTree) -> Vec<PermissionRule> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        session_rule: Option<PermissionRule>,
        set: Option<PermissionSettings>,
    }
    let mut rules = Vec::new();
    for entry in tree.branch() {
        if let Some(EntryBody::Custom { custom_type, data: Some(data) }) = entry.body()
            && custom_type == ENTRY_TYPE
            && let Ok(data) = serde_json::from_value::<Data>(data)
        {
            if data.set.is_some_and(|set| set.rules.is_some()) {
                rules.clear();
            }
            rules.extend(data.session_rule.filter(|rule| !rules.contains(rule)));
        }
    }
    rules
}

/// The decision as it is stored and told.
pub(super) fn decision(
    call_id: Option<&str>,
    tool: &str,
    verdict: PermissionVerdict,
    by: DecisionMaker,
    reason: String,
    rule: Option<&DecidingRule>,
) -> PermissionDecision {
    PermissionDecision {
        tool_call_id: call_id.map(str::to_owned),
        tool: tool.to_owned(),
        decision: verdict,
        by,
        client: None,
        reason,
        source: rule.map(|rule| rule.source.as_str().to_owned()),
        rule: rule.map(|rule| rule.rule.clone()),
        session_rule: None,
        waited_ms: 0,
    }
}
