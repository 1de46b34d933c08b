//! `agentd --policy-check`: verdicts about calls, for `agentctl policy`. The request comes on stdin; stdout gets a line for each example.

use std::{
    io::{self, BufRead, BufWriter, Write},
    path::{Path, PathBuf},
};

use agentd_config::{AgentDir, Environment, NoAgentDir, ProjectFolders, read_project_json, settings::load};
use agentd_lsp::LSP_TOOL;
use agentd_policy::{
    DecidingRule, Policy, PolicyDecision, PolicyError, PolicyOptions, ProjectPolicy, RuleLayer, RuleSource,
    Subject,
};
use agentd_protocol::policy_check::{
    PolicyCheckRequest, PolicyExample, PolicyVerdict, VerdictCommand, VerdictRule,
};
use agentd_protocol::{
    ask::ASK_TOOL,
    jobs::WAIT_TOOL,
    patch::PATCH_TOOL,
    remote_hosts::SSH_TOOL,
    subagent::{TASK_TOOL, YIELD_TOOL},
    syntax::{AST_EDIT_TOOL, AST_GREP_TOOL},
    todo::TODO_TOOL,
    web::{WEB_FETCH_TOOL, WEB_SEARCH_TOOL, host_of},
};
use agentd_tools::resolve_path_argument;

/// Why nothing was judged.
#[derive(Debug, thiserror::Error)]
pub enum PolicyCheckError {
    /// The folder of the user's settings is unknown.
    #[error(transparent)]
    NoAgentDir(#[from] NoAgentDir),
    /// Stdin holds no request.
    #[error("--policy-check is for agentctl policy, which says on stdin what to judge: {0}")]
    Request(#[source] serde_json::Error),
    /// A rule cannot be used.
    #[error(transparent)]
    Rule(#[from] PolicyError),
    /// The user's settings hold permissions that cannot be read: a session would not open.
    #[error("permissions cannot be used: {0}")]
    Setting(String),
    /// The policy of the trusted project cannot be read: a session would not open.
    #[error("{} cannot be used: {problem}", path.display())]
    Project {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody says where `~` is.
    #[error("HOME is not set: rules may begin with ~/")]
    NoHome,
    /// Stdin or stdout failed.
    #[error("the verdicts cannot be passed on: {0}")]
    Io(#[from] io::Error),
}

/// Answers one request. Runs nothing; looks at links of the paths that are judged.
///
/// # Errors
/// [`PolicyCheckError`].
pub fn run(environment: &Environment, compat: bool, cwd: &Path) -> Result<(), PolicyCheckError> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: PolicyCheckRequest = serde_json::from_str(&line).map_err(PolicyCheckError::Request)?;
    let cwd = request.cwd.as_ref().map_or_else(|| cwd.to_owned(), |given| cwd.join(given));
    let (permissions, project) = match request.permissions {
        // What is given means the same in every folder.
        Some(permissions) => (permissions, ProjectPolicy::default()),
        None => {
            let agent_dir = AgentDir::find(environment, compat, &cwd)?;
            let loaded = load(&agent_dir, &cwd, environment, None);
            if let Some(fault) = loaded.guard_rails_fault {
                return Err(PolicyCheckError::Setting(fault));
            }
            let project = if loaded.trust.trusted {
                project_policy(&loaded.folders)?
            } else {
                ProjectPolicy::default()
            };
            (loaded.settings.permissions.unwrap_or_default(), project)
        }
    };
    let home = request.home.map(PathBuf::from).or_else(|| environment.non_empty("HOME").map(PathBuf::from));
    let policy = Policy::new(PolicyOptions {
        preset: request.preset.or(permissions.preset).unwrap_or_default(),
        project_preset: project.preset,
        layers: vec![
            RuleLayer { source: RuleSource::User, rules: permissions.rules.unwrap_or_default() },
            RuleLayer { source: RuleSource::Project, rules: project.rules },
            RuleLayer { source: RuleSource::Flags, rules: request.rules },
        ],
        cwd: cwd.clone(),
        folders: Vec::new(),
        home: home.ok_or(PolicyCheckError::NoHome)?,
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    for example in &request.examples {
        serde_json::to_writer(&mut out, &shown(verdict(&policy, example, &cwd))).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// `.agentd/policy.json` of a trusted project; nothing where there is none.
fn project_policy(folders: &ProjectFolders) -> Result<ProjectPolicy, PolicyCheckError> {
    let Some(path) = folders.own("policy.json") else { return Ok(ProjectPolicy::default()) };
    let fault = |problem: String| PolicyCheckError::Project { path: path.clone(), problem };
    let document = read_project_json(&path).map_err(|error| fault(error.to_string()))?;
    let Some(document) = document else { return Ok(ProjectPolicy::default()) };
    ProjectPolicy::of(document.value).map_err(|error| fault(error.to_string()))
}

fn verdict(policy: &Policy, example: &PolicyExample, cwd: &Path) -> PolicyDecision {
    let tool = example.tool.as_deref().unwrap_or("bash");
    let home = &policy.options().home;
    // What is no path for a tool is left to the tool, as in a session.
    let path = example
        .path
        .as_ref()
        .map(|path| resolve_path_argument(path, cwd, home).unwrap_or_else(|_| cwd.to_owned()));
    let host = example.domain.as_deref().and_then(host_of);
    let subject = match (tool, &example.command, &path) {
        // As in a rule: the host, then the command.
        (SSH_TOOL, Some(text), _) => {
            let (host, text) = text.trim_start().split_once(' ').unwrap_or((text, ""));
            Subject::RemoteCommand { host, text }
        }
        (_, Some(text), _) => Subject::Command { text, folder: cwd, variables: &[] },
        ("read" | "ls" | LSP_TOOL, _, Some(path)) => Subject::Read { path, is_deep: false },
        ("grep" | "find" | AST_GREP_TOOL | AST_EDIT_TOOL | PATCH_TOOL, _, Some(path)) => {
            Subject::Read { path, is_deep: true }
        }
        ("write" | "edit", _, Some(path)) => Subject::Write { path },
        (TODO_TOOL | ASK_TOOL | TASK_TOOL | WAIT_TOOL | YIELD_TOOL, ..) => Subject::OwnNotes,
        (WEB_FETCH_TOOL, ..) => Subject::Web { host: host.as_deref() },
        (WEB_SEARCH_TOOL, ..) => Subject::Web { host: None },
        _ => Subject::Other,
    };
    policy.decide(tool, subject)
}

fn shown(PolicyDecision { action, rule, reason, parsed, .. }: PolicyDecision) -> PolicyVerdict {
    let rule = rule.map(|DecidingRule { source, index, rule }| VerdictRule {
        source: source.as_str().to_owned(),
        number: index as u64 + 1,
        tool: rule.tool,
        command: rule.command,
        path: rule.path,
        domain: rule.domain,
        action: rule.action,
        reason: rule.reason,
    });
    let parsed = parsed
        .into_iter()
        .map(|command| VerdictCommand { words: command.words, redirections: command.redirections })
        .collect();
    PolicyVerdict { action, rule, reason, parsed }
}
