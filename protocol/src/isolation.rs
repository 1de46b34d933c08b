//! Isolated copies of subagents: how they are made, and how the merging of their changes ended.

use serde::{Deserialize, Serialize};

/// How an isolated copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IsolationBackend {
    /// `reflink` where the file system can, else `worktree`.
    #[default]
    Auto,
    /// All files, also ignored ones, as clones that share their blocks with the originals (Btrfs, XFS). Refused elsewhere.
    Reflink,
    /// Copies of the files that git tracks or would add.
    Worktree,
}

/// How a subagent's changes are brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IsolationMode {
    /// As a patch of the working files.
    #[default]
    Patch,
    /// As commits.
    Branch,
}

/// Where the message of a commit for what a subagent has not committed itself comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommitMessages {
    /// From its id and the first line of its task.
    #[default]
    Generic,
    /// From the model of the session that started it, which is shown the changes. Where it gives none, as `generic`.
    Ai,
}

/// How the merging of a subagent's changes ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IsolationMerge {
    /// The id of the subagent.
    pub id: String,
    /// How its changes were captured: `patch` also where commits were asked for and not possible.
    pub mode: IsolationMode,
    /// Whether all its changes are in the user's files now, which is so when there are none, or when they were there before.
    pub applied: bool,
    /// Whether it changed anything.
    pub changed: bool,
    /// The file with its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_path: Option<String>,
    /// The branch with its commits; after a merge it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Why nothing of the outermost repository's was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<IsolationConflict>,
    /// What became of changes in repositories inside the outermost one, in the order in which they were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<NestedMerge>,
    /// What is not captured, or not as asked for; sentences without a full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// How the merging in a nested repository ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NestedMerge {
    /// The repository, below the outermost one.
    pub path: String,
    /// How its changes were captured.
    pub mode: IsolationMode,
    /// Whether they are in the user's files. False without a `conflict`: not tried, because one before it failed.
    pub applied: bool,
    /// The file with its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_path: Option<String>,
    /// The branch with its commits; after a merge it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Why nothing was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<IsolationConflict>,
}

/// Why changes were not merged. Nothing of the user's was touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IsolationConflict {
    /// The files that stand in the way; empty when it is no file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What git, or the merge, said.
    pub reason: String,
}

impl IsolationMerge {
    /// The sentence for the model at the end of a subagent's result.
    #[must_use]
    pub fn result_text(&self) -> String {
        let mut lines = vec![self.outcome_text()];
        lines.extend(self.nested.iter().filter(|nested| !nested.applied).map(|nested| {
            let why =
                nested.conflict.as_ref().map_or_else(|| "not tried".to_owned(), IsolationConflict::text);
            not_merged(
                &format!("in the repository {}: {why}", nested.path),
                &nested.patch_path,
                &nested.branch,
            )
        }));
        lines.extend(self.notices.iter().map(|notice| format!("Note: {notice}.")));
        lines.join("\n")
    }

    fn outcome_text(&self) -> String {
        if !self.changed {
            return "No changes to apply.".to_owned();
        }
        if let Some(conflict) = &self.conflict {
            return not_merged(&conflict.text(), &self.patch_path, &self.branch);
        }
        match (&self.branch, &self.patch_path) {
            (Some(branch), _) => format!("Merged branch: {branch}"),
            (None, Some(_)) => "Applied patches: yes".to_owned(),
            // Changes in nested repositories alone.
            (None, None) if self.applied => "Applied patches: yes".to_owned(),
            (None, None) => "Applied patches: no".to_owned(),
        }
    }
}

impl IsolationConflict {
    fn text(&self) -> String {
        const MOST: usize = 20;
        let files = self.files.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.files.len().saturating_sub(MOST);
        match (self.files.is_empty(), more) {
            (true, _) => self.reason.clone(),
            (false, 0) => format!("conflicts in {files}"),
            (false, more) => format!("conflicts in {files} and {more} more"),
        }
    }
}

fn not_merged(why: &str, patch: &Option<String>, branch: &Option<String>) -> String {
    let place = match (branch, patch) {
        (Some(branch), _) => {
            format!("The commits are on the branch {branch}: `git cherry-pick` them by hand.")
        }
        (None, Some(patch)) => format!("The changes are in {patch}: `git apply --3way` it by hand."),
        (None, None) => String::new(),
    };
    format!("Changes were not merged, nothing was touched ({why}). {place}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge() -> IsolationMerge {
        IsolationMerge {
            id: "x".to_owned(),
            mode: IsolationMode::Patch,
            applied: true,
            changed: true,
            patch_path: Some("/a/x.patch".to_owned()),
            branch: None,
            conflict: None,
            nested: Vec::new(),
            notices: Vec::new(),
        }
    }

    #[test]
    fn results_end_with_the_words_that_are_known() {
        let conflict =
            Some(IsolationConflict { files: vec!["a".to_owned(), "b".to_owned()], reason: "r".to_owned() });
        assert_eq!(merge().result_text(), "Applied patches: yes");
        let branch = IsolationMerge { patch_path: None, branch: Some("agentd/task/x".to_owned()), ..merge() };
        assert_eq!(branch.result_text(), "Merged branch: agentd/task/x");
        let nothing = IsolationMerge { changed: false, patch_path: None, ..merge() };
        assert_eq!(nothing.result_text(), "No changes to apply.");
        let failed = IsolationMerge { applied: false, conflict: conflict.clone(), ..merge() };
        let expected = "Changes were not merged, nothing was touched (conflicts in a, b). The changes are in /a/x.patch: \
            `git apply --3way` it by hand.";
        assert_eq!(failed.result_text(), expected);
        let nested = NestedMerge {
            path: "sub".to_owned(),
            mode: IsolationMode::Branch,
            applied: false,
            patch_path: None,
            branch: Some("b".to_owned()),
            conflict,
        };
        let noted = IsolationMerge { nested: vec![nested], notices: vec!["n".to_owned()], ..merge() };
        assert!(noted.result_text().ends_with("on the branch b: `git cherry-pick` them by hand.\nNote: n."));
    }
}
