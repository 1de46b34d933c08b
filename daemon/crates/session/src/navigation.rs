//! Leaving a branch for another entry: what extensions say about it, and the summary of what is left, made in a task beside the actor.

use agentd_extensions::EventKind;
use agentd_protocol::{
    Json,
    entry::{EntryBody, SessionEntry},
    message::Usage,
};
use agentd_store::{Entry, NavigationTarget, SessionTree};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    compaction::{BranchFocus, BranchPlan, CompactionError, CompactionWorker, summarise_branch},
    models::Choice,
};

/// A move to another entry, as it was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Navigation {
    /// The entry to go to.
    pub(crate) target_id: String,
    /// Whether what is left behind is summarised.
    pub(crate) summarize: bool,
    /// What the summary is to look at.
    pub(crate) focus: BranchFocus,
    /// A label for the summary, or for the target where there is none.
    pub(crate) label: Option<String>,
}

/// The work before a move.
pub(crate) struct Leaving {
    pub(crate) navigation: Navigation,
    pub(crate) landing: NavigationTarget,
    pub(crate) choice: Choice,
    /// What is summarised; `None` where nothing is left behind.
    pub(crate) branch: Option<BranchPlan>,
    /// The preparation for extensions; `None` where nobody listens.
    pub(crate) shown: Option<TreePreparation>,
    pub(crate) old_leaf: Option<String>,
}

/// A branch that can be left now.
pub(crate) struct Departure {
    pub(crate) landing: NavigationTarget,
    pub(crate) target_id: String,
    pub(crate) old_leaf: Option<String>,
    pub(crate) summary: Option<EntryBody>,
    pub(crate) is_of_extension: bool,
    pub(crate) label: Option<String>,
}

/// What extensions are shown of a move: the `preparation` of `session_before_tree`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreePreparation {
    target_id: String,
    old_leaf_id: Option<String>,
    common_ancestor_id: Option<String>,
    entries_to_summarize: Vec<Json<SessionEntry>>,
    user_wants_summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace_instructions: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

impl TreePreparation {
    /// Of a move in this tree. The entries to summarise are those from where the paths to the leaf and to the target part.
    pub(crate) fn of(tree: &SessionTree, navigation: &Navigation) -> Self {
        let path = tree.branch();
        let to_target = tree.branch_to(&navigation.target_id).unwrap_or_default();
        let common = path.iter().zip(&to_target).take_while(|(one, two)| one.id() == two.id()).count();
        let ancestor = common.checked_sub(1).and_then(|at| path.get(at));
        Self {
            target_id: navigation.target_id.clone(),
            old_leaf_id: tree.leaf_id().map(str::to_owned),
            common_ancestor_id: ancestor.map(|entry| entry.id().to_owned()),
            entries_to_summarize: path[common..].iter().filter_map(|entry| Entry::json(entry).ok()).collect(),
            user_wants_summary: navigation.summarize,
            custom_instructions: navigation.focus.instructions.clone(),
            replace_instructions: navigation.focus.replaces.then_some(true),
            label: navigation.label.clone(),
        }
    }
}

/// What an extension returns for `session_before_tree`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TreeAnswer {
    #[serde(default)]
    summary: Option<SummaryOfExtension>,
    #[serde(default)]
    custom_instructions: Option<String>,
    #[serde(default)]
    replace_instructions: Option<bool>,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct SummaryOfExtension {
    summary: String,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    usage: Option<Usage>,
}

impl CompactionWorker {
    /// Asks the extensions about a move, and summarises what is left behind where that is wanted.
    ///
    /// # Errors
    /// [`CompactionError::Cancelled`] where it was stopped or an extension prevents it; nothing has changed then.
    pub(crate) async fn leave(&self, leaving: Leaving) -> Result<Departure, CompactionError> {
        let Leaving { mut navigation, landing, choice, branch, shown, old_leaf } = leaving;
        let of_extension = match shown {
            Some(preparation) => self.ask_before_tree(&preparation, &mut navigation).await?,
            None => None,
        };
        let is_of_extension = of_extension.is_some();
        let summary = match (of_extension, branch.filter(|_| navigation.summarize)) {
            (Some(SummaryOfExtension { summary, details, usage }), _) => Some(EntryBody::BranchSummary {
                from_id: old_leaf.clone().unwrap_or_else(|| "root".to_owned()),
                summary,
                details,
                usage,
                from_hook: Some(true),
            }),
            (None, Some(branch)) => Some(summarise_branch(self, branch, &choice, &navigation.focus).await?),
            (None, None) => None,
        };
        if self.cancel.is_cancelled() {
            return Err(CompactionError::Cancelled);
        }
        let Navigation { target_id, label, .. } = navigation;
        Ok(Departure { landing, target_id, old_leaf, summary, is_of_extension, label })
    }

    /// Asks the extensions; returns the summary of one. What they change of the instructions and the label counts.
    async fn ask_before_tree(
        &self,
        preparation: &TreePreparation,
        navigation: &mut Navigation,
    ) -> Result<Option<SummaryOfExtension>, CompactionError> {
        let Some(extensions) = &self.context.extensions else { return Ok(None) };
        let event = json!({"type": "session_before_tree", "preparation": preparation, "signal": true});
        let asked = extensions.before(EventKind::SessionBeforeTree, &event);
        let answer = self.cancel.run_until_cancelled(asked).await.ok_or(CompactionError::Cancelled)?;
        let Some(answer) = answer else { return Ok(None) };
        if answer.get("cancel") == Some(&Value::Bool(true)) {
            return Err(CompactionError::Cancelled);
        }
        let answer: TreeAnswer = serde_json::from_value(Value::Object(answer)).map_err(|error| {
            CompactionError::Broken(format!("the answer of an extension cannot be used: {error}"))
        })?;
        let TreeAnswer { summary, custom_instructions, replace_instructions, label } = answer;
        let focus = &mut navigation.focus;
        focus.instructions = custom_instructions.or(focus.instructions.take());
        focus.replaces = replace_instructions.unwrap_or(focus.replaces);
        navigation.label = label.or(navigation.label.take());
        Ok(summary.filter(|summary| navigation.summarize && !summary.summary.is_empty()))
    }
}
