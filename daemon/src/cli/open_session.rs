//! What each flag means for a session that is open already.

/// What a flag does where `open_session` comes to a session that the daemon has open, in memory or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnOpen {
    /// It says which session is meant. It counts as ever.
    Which,
    /// It is about the client or its connection. It counts as ever.
    OfClient,
    /// What differs is changed, for all clients, as by the command for that.
    Applied,
    /// It counts when a session is opened: what differs is refused.
    Compared,
    /// No flag of a session that a client of the daemon opens, or without any effect: refused, or taken, in any case.
    NotOfSession,
}

use OnOpen::{Applied, Compared, NotOfSession, OfClient, Which};

/// Every flag by its names; with them, the field of `open_session` that means the same.
pub(super) const ON_OPEN: &[(&[&str], Option<&str>, OnOpen)] = &[
    (&["--continue", "-c"], Some("continue"), Which),
    (&["--prefer"], None, Which),
    (&["--session"], Some("path"), Which),
    (&["--session-id"], Some("sessionId"), Which),
    (&["--fork"], None, Which),
    (&["--resume", "-r"], None, NotOfSession),
    (&["--cumulative-updates"], None, OfClient),
    (&["--on-eof"], None, OfClient),
    (&["--ready"], None, OfClient),
    (&["--offline"], Some("env"), OfClient),
    (&["--name", "-n"], Some("name"), Applied),
    (&["--provider"], None, Applied),
    (&["--model"], Some("model"), Applied),
    (&["--demo"], Some("model"), Applied),
    (&["--thinking"], Some("thinkingLevel"), Applied),
    (&["--tools", "-t"], Some("tools"), Applied),
    (&["--exclude-tools", "-xt"], None, Applied),
    (&["--no-tools", "-nt"], None, Applied),
    (&["--no-builtin-tools", "-nbt"], None, Applied),
    (&["--no-session"], Some("ephemeral"), Compared),
    (&["--session-dir"], None, Compared),
    (&["--models"], None, Compared),
    (&["--fallback-models"], None, Compared),
    (&["--api-key"], None, Compared),
    (&["--system-prompt"], Some("systemPrompt"), Compared),
    (&["--append-system-prompt"], Some("appendSystemPrompt"), Compared),
    (&["--ssh"], None, Compared),
    (&["--no-context-files", "-nc"], None, Compared),
    (&["--skill"], None, Compared),
    (&["--no-skills", "-ns"], None, Compared),
    (&["--prompt-template"], None, Compared),
    (&["--no-prompt-templates", "-np"], None, Compared),
    (&["--approve", "-a"], None, Compared),
    (&["--no-approve", "-na"], None, Compared),
    (&["--stdio"], None, NotOfSession),
    (&["--mode"], None, NotOfSession),
    (&["--print", "-p"], None, NotOfSession),
    (&["--shared"], None, NotOfSession),
    (&["--socket"], None, NotOfSession),
    (&["--detached"], None, NotOfSession),
    (&["--compat"], None, NotOfSession),
    (&["--record"], None, NotOfSession),
    (&["--replay"], None, NotOfSession),
    (&["--replay-match"], None, NotOfSession),
    (&["--replay-timing"], None, NotOfSession),
    (&["--help", "-h"], None, NotOfSession),
    (&["--version", "-v"], None, NotOfSession),
    (&["--list-models"], None, NotOfSession),
    (&["--export"], None, NotOfSession),
    (&["--bug-report"], None, NotOfSession),
    (&["--fsck"], None, NotOfSession),
    (&["--extension", "-e"], None, NotOfSession),
    (&["--no-extensions", "-ne"], None, NotOfSession),
    (&["--theme"], None, NotOfSession),
    (&["--no-themes"], None, NotOfSession),
    (&["--use-theme"], None, NotOfSession),
    (&["--tui-mode"], None, NotOfSession),
    (&["--no-mcp"], None, NotOfSession),
    (&["--verbose"], None, NotOfSession),
];

/// The field of `open_session` that means the same as a flag.
#[must_use]
pub fn field_of(flag: &str) -> Option<&'static str> {
    ON_OPEN.iter().find(|(names, ..)| names.contains(&flag)).and_then(|(_, field, _)| *field)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::known::NAMES;

    /// A flag that is new has to say what it means for a session that is open.
    #[test]
    fn every_flag_is_here_once() {
        let all: Vec<&str> = ON_OPEN.iter().flat_map(|(names, ..)| names.iter().copied()).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), NAMES.iter().copied().collect());
    }

    #[test]
    fn fields_are_those_of_the_command() {
        let known = agentd_protocol::daemon::OpenSessionParams {
            path: Some(String::new()),
            session_id: Some(String::new()),
            continue_last: Some(true),
            ephemeral: Some(true),
            name: Some(String::new()),
            model: Some(String::new()),
            thinking_level: Some(agentd_protocol::model::ThinkingLevel::Off),
            tools: Some(Vec::new()),
            system_prompt: Some(String::new()),
            append_system_prompt: Some(String::new()),
            env: Some(std::collections::BTreeMap::new().into_iter().collect()),
            ..agentd_protocol::daemon::OpenSessionParams::default()
        };
        let known = serde_json::to_value(known).unwrap();
        for field in ON_OPEN.iter().filter_map(|(_, field, _)| *field) {
            assert!(known.get(field).is_some(), "{field}");
        }
    }
}
