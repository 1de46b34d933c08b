//! What plan mode refuses, before anything else is asked about a call.

use agentd_agent::hooks::Action;
use agentd_mcp::SEARCH_TOOL;
use agentd_policy::{Policy, Subject};
use agentd_protocol::settings::PermissionAction;

use super::{in_force::GateSources, subject::CallSubject};

/// Whether plan mode is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Planning {
    /// It is off.
    #[default]
    Off,
    /// It is on, and the model proposes a plan to the user.
    On,
    /// It is on for the session that a subagent works for, and so for the subagent, which proposes nothing.
    ForParent,
}

impl Planning {
    /// Whether it is on.
    pub(crate) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Whether the model can propose a plan.
    pub(crate) fn proposes(self) -> bool {
        self == Self::On
    }

    /// The advice to the model after a refusal.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::ForParent => "This session only looks: answer with what you found.",
            Self::On | Self::Off => {
                "Nothing is changed before the user has approved a plan: look, write it to local://TITLE-plan.md, and call \
                 propose_plan."
            }
        }
    }
}

/// Tools of agentd that change nothing and need no more than their name to know it.
const READING_TOOLS: [&str; 6] = [
    "process_list",
    "process_output",
    SEARCH_TOOL,
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
];

/// Whether a call changes nothing, where only its tool says so.
pub(super) fn is_reading(action: &Action<'_>) -> bool {
    action.declares_reading || READING_TOOLS.contains(&action.tool)
}

/// Why plan mode refuses a call of `tool`; `None` where it does not. Looks at links of the paths that it names; blocks.
///
/// # Errors
/// The reason why it cannot be judged.
pub(super) fn refusal(
    sources: &GateSources,
    tool: &str,
    subject: &CallSubject,
    is_reading: bool,
) -> Result<Option<String>, String> {
    let judged = match subject.borrowed() {
        Subject::Other if is_reading || matches!(subject, CallSubject::Resource(_)) => Subject::TrustedRead,
        judged => judged,
    };
    let policy = Policy::planning(&sources.cwd, &sources.folders, &sources.home)
        .map_err(|error| format!("plan mode cannot judge the call: {error}"))?;
    let verdict = policy.decide(tool, judged);
    Ok((verdict.action != PermissionAction::Allow).then_some(verdict.reason))
}
