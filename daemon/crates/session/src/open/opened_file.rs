//! The file of a session, opened from its source: a new one, one of before, an unloaded one, or a copy.

use std::path::Path;

use agentd_protocol::{
    agent_mode::AgentMode,
    resources::{Diagnostic, DiagnosticKind},
};
use agentd_store::{NewEntry, OpenSession, network_warning};

use super::{
    beginning::UnfinishedCopy,
    error::OpenError,
    initial_choice::append,
    session_file::{file_diagnostics, project_file_diagnostic, read_only_diagnostic},
    target::{OpenedTarget, SessionFiles, adopt, open_session, reopen},
};
use crate::{
    messages::BranchCopy,
    options::{InitialMode, SessionOptions, ToolSelection},
    permissions::{session_rules, without_rules},
    plan::{ModeChange, mode_on},
    session_tools::{ToolChoice, choice_entry, chosen_on},
    unload::Unloaded,
};

/// The source of a session's entries.
pub(crate) enum SessionSource {
    /// The file, or the new session, that the options name.
    Options,
    /// A session that was unloaded.
    Unloaded(Unloaded),
    /// A branch of another session.
    Copy(BranchCopy),
}

impl SessionSource {
    pub(super) fn unloaded(&self) -> Option<&Unloaded> {
        match self {
            Self::Unloaded(unloaded) => Some(unloaded),
            Self::Options | Self::Copy(_) => None,
        }
    }
}

/// A session file that was opened, and what its source says of the session.
pub(super) struct OpenedFile {
    pub(super) session: OpenSession,
    /// The state that the session was unloaded with, if it was.
    pub(super) unloaded: Option<Unloaded>,
    pub(super) unfinished_copy: Option<UnfinishedCopy>,
    /// Whether it has entries of before.
    pub(super) has_past: bool,
    /// Whether another program has changed the file since the session was unloaded.
    pub(super) was_changed: bool,
    /// The chosen tools: those of the source, unless flags choose others for a file.
    pub(super) tools: ToolChoice,
    /// The mode: that of the source, unless a flag says more.
    pub(super) mode: AgentMode,
}

/// Opens the file of a session, or makes a new one. Reads and writes files; blocks.
pub(super) fn open_file(
    source: SessionSource,
    options: &SessionOptions,
    files: &SessionFiles<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<OpenedFile, OpenError> {
    let opened = match source {
        SessionSource::Unloaded(unloaded) => OpenedFile {
            session: reopen(&unloaded, files)?,
            unfinished_copy: None,
            has_past: true,
            was_changed: unloaded.has_changed(),
            tools: unloaded.tools.clone(),
            mode: unloaded.mode,
            unloaded: Some(unloaded),
        },
        SessionSource::Copy(copied) => {
            let (tools, mode) = (copied.tools.clone(), copied.mode);
            let mut session = adopt(copied, files)?;
            let unfinished_copy = UnfinishedCopy::of(&session);
            let has_past = !session.tree.entries().is_empty();
            if tools != chosen_on(&session.tree) {
                append(&mut session, NewEntry::from_body(&choice_entry(tools.as_deref()))?)?;
            }
            if mode != mode_on(&session.tree) {
                append(&mut session, NewEntry::from_body(&ModeChange::to(mode).entry())?)?;
            }
            if !session_rules(&session.tree).is_empty() {
                append(&mut session, NewEntry::from_body(&without_rules())?)?;
            }
            OpenedFile { session, unloaded: None, unfinished_copy, has_past, was_changed: false, tools, mode }
        }
        SessionSource::Options => {
            let OpenedTarget { session, has_past, passed_over } = open_session(options, files)?;
            diagnostics.extend(passed_over.as_deref().map(project_file_diagnostic));
            let has_flags = options.tools != ToolSelection::default();
            let tools = if has_flags { None } else { chosen_on(&session.tree) };
            let mode = match options.initial_mode {
                InitialMode::Default => mode_on(&session.tree),
                InitialMode::Plan => AgentMode::Plan,
            };
            OpenedFile {
                session,
                unloaded: None,
                unfinished_copy: None,
                has_past,
                was_changed: false,
                tools,
                mode,
            }
        }
    };
    let writer = &opened.session.writer;
    diagnostics.extend(file_diagnostics(&opened.session.report, writer.path()));
    diagnostics.extend(writer.path().filter(|_| writer.is_read_only()).map(read_only_diagnostic));
    diagnostics.extend(writer.path().and_then(Path::parent).and_then(|folder| {
        let text = network_warning(folder)?;
        Some(Diagnostic::warning(DiagnosticKind::Session, text).at(folder))
    }));
    Ok(opened)
}
