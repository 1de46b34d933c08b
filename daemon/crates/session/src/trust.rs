//! Whether a project's own settings and prompts count, and asking the user about it.
//!
//! A session works with one [`SessionContext`](crate::context::SessionContext) at a time. Trust that is given later makes another one, which
//! takes the place of the first while no run is under way: a run sees the settings that it began with to its end.

use std::{path::Path, sync::Arc};

use agentd_config::{StartingFiles, TrustSubject, save_trust, trust_subjects};
use agentd_protocol::ui::NotifyType;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::{
    context::SessionContext,
    open::{NewSettings, reconfigure},
    options::SessionOptions,
    project_answer::{Approval, ProjectAnswer},
    ui::{Asker, Dialog, DialogAnswer, Notice, Ui},
};

/// Files that a question names.
const NAMED: usize = 5;

const THIS_TIME: &str = "Trust it this time";

const ALWAYS: &str = "Always trust this folder";

const NOT_NOW: &str = "Not now";

const NEVER: &str = "Never trust this folder";

pub(crate) const IN_USE: &str = "The project's settings and prompts count from now on.";

const CHANGED_MEANWHILE: &str = "The project's files were changed while you were asked, so that its settings and prompts are not \
                                 used. You are asked again when the session is opened the next time.";

const NOT_USED: &str = "The project's settings and prompts are not used, now and in later sessions.";

/// The user's trust in the project, and the settings that it brings.
pub(crate) struct ProjectTrust {
    /// The options of the session, by which its settings are read.
    pub(crate) options: Arc<SessionOptions>,
    pub(crate) state: TrustState,
    /// What extensions said before it was opened.
    pub(crate) answer: Option<ProjectAnswer>,
    /// The files of the project that trust was given for, where the project is trusted.
    pub(crate) files: Option<StartingFiles>,
    /// The session comes back, and what it was trusted with has changed meanwhile.
    pub(crate) is_withdrawn: bool,
    /// Waits for the end of the run.
    pub(crate) next: Option<Box<NewSettings>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustState {
    /// Flags, files or settings decided, or nothing needs trust.
    Decided,
    /// Nobody was asked.
    Open,
    /// The user was asked, and may not have answered.
    Asked,
    /// The user, or an extension, trusts the project while the session is open.
    Given,
    /// An extension does not trust the project while the session is open.
    Refused,
}

impl ProjectTrust {
    /// `is_open`: somebody is to be asked, perhaps again; `was_given`: the user gave it to this session before; `answer`: what extensions
    /// said.
    pub(crate) fn new(
        options: Arc<SessionOptions>,
        (is_open, was_given): (bool, bool),
        answer: Option<ProjectAnswer>,
        files: Option<StartingFiles>,
    ) -> Self {
        let said = answer.as_ref().and_then(|answer| answer.trusted);
        let state = match (is_open, said.unwrap_or(was_given), said) {
            (true, _, _) => TrustState::Open,
            (false, true, _) => TrustState::Given,
            (false, false, Some(_)) => TrustState::Refused,
            (false, false, None) => TrustState::Decided,
        };
        Self { options, state, answer, files, is_withdrawn: false, next: None }
    }

    /// What was said about the project, for settings that are read again.
    pub(crate) fn approval(&self) -> Approval {
        match (self.state, &self.files) {
            (TrustState::Given, Some(files)) => Approval { approve: Some(true), files: Some(files.clone()) },
            (TrustState::Refused, _) => Approval { approve: Some(false), files: None },
            _ => Approval { approve: None, files: None },
        }
    }

    /// The files of the project that trust was given for, where the project is trusted.
    pub(crate) fn files(&self) -> Option<&StartingFiles> {
        self.files.as_ref()
    }

    /// The options of the session.
    pub(crate) fn options(&self) -> &Arc<SessionOptions> {
        &self.options
    }

    /// Whether the user gave it to this session.
    pub(crate) fn is_given(&self) -> bool {
        self.state == TrustState::Given
    }
}

/// The question on its way to the user.
pub(crate) struct TrustQuestion {
    pub(crate) ui: Ui,
    pub(crate) context: Arc<SessionContext>,
    pub(crate) options: Arc<SessionOptions>,
}

impl TrustQuestion {
    /// The session's surroundings with the project's settings, if the user trusts it. An answer that was meant to last is
    /// saved; where that fails, it counts this time, and the user is told.
    pub(crate) async fn ask(self) -> Option<NewSettings> {
        let (cwd, context) = (self.options.cwd.clone(), Arc::clone(&self.context));
        // The answer is about the files as they are now.
        let (title, files) = spawn_blocking(move || about(&cwd, &context)).await.ok()?;
        let dialog = Dialog::select(title, [THIS_TIME, ALWAYS, NOT_NOW, NEVER]);
        // The end of the session answers it, too.
        let answer = self.ui.ask(Asker::Daemon, dialog, &CancellationToken::new()).await;
        let DialogAnswer::Value(chosen) = answer else { return None };
        let trusted = match chosen.as_str() {
            THIS_TIME => true,
            ALWAYS => {
                self.save(Some(files.clone())).await;
                true
            }
            NEVER => {
                if self.save(None).await {
                    self.ui.tell(Asker::Daemon, Notice::notify(NOT_USED, NotifyType::Info)).await;
                }
                false
            }
            _ => false,
        };
        if !trusted {
            return None;
        }
        let (context, options) = (Arc::clone(&self.context), Arc::clone(&self.options));
        match spawn_blocking(move || reconfigure(&context, &options, files)).await {
            Ok(Ok(Some(mut reconfigured))) => {
                reconfigured.context.install_packages().await;
                Some(reconfigured)
            }
            Ok(Ok(None)) => {
                self.complain(CHANGED_MEANWHILE.to_owned()).await;
                None
            }
            Ok(Err(error)) => {
                self.complain(format!("The project's settings cannot be used: {error}")).await;
                None
            }
            Err(error) => {
                self.complain(format!("The project's settings cannot be read: {error}")).await;
                None
            }
        }
    }

    /// Whether the decision was saved; else the user is told why not.
    async fn save(&self, trusted: Option<StartingFiles>) -> bool {
        let (agent_dir, cwd) = (self.context.agent_dir.clone(), self.options.cwd.clone());
        let saved = spawn_blocking(move || save_trust(&agent_dir, &cwd, trusted.as_ref())).await;
        let error = match saved {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.complain(format!("The decision counts for this session, but was not saved: {error}")).await;
        false
    }

    async fn complain(&self, message: String) {
        tracing::warn!("{message}");
        self.ui.tell(Asker::Daemon, Notice::notify(message, NotifyType::Error)).await;
    }
}

/// The question, with what it is about, and the files that an answer is for.
fn about(cwd: &Path, context: &SessionContext) -> (String, StartingFiles) {
    let SessionContext { agent_dir, environment, prompt, .. } = context;
    let files = StartingFiles::of(cwd, &prompt.folders, agent_dir, environment);
    let subjects =
        trust_subjects(cwd, &prompt.folders, agent_dir, environment, context.discovery.get().foreign());
    let path = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
    let shown =
        |TrustSubject { path: subject, settings, note }: &TrustSubject| match (note, settings.as_slice()) {
            (Some(note), _) => format!("{} ({note})", path(subject)),
            (None, []) => path(subject),
            (None, settings) => format!("{} (sets {})", path(subject), settings.join(", ")),
        };
    let mut names: Vec<String> = subjects.iter().take(NAMED).map(shown).collect();
    if subjects.len() > NAMED {
        names.push(format!("{} more", subjects.len() - NAMED));
    }
    let changed: Vec<String> = prompt.changed.iter().map(|file| path(file)).collect();
    // The trusted folder is a parent, or the folder itself.
    let replaced = prompt.changed.iter().find(|changed| cwd.starts_with(changed));
    let question = match (changed.as_slice(), replaced) {
        ([], _) => format!("Trust the project in {}?", cwd.display()),
        (_, Some(folder)) => format!(
            "Trust the project in {} again? Another folder was trusted, and this one is in the place of it: {}.",
            cwd.display(),
            folder.display()
        ),
        (changed, None) => format!(
            "Trust the project in {} again? It was trusted before, and since then there was a change in {}.",
            cwd.display(),
            changed.join(", ")
        ),
    };
    let title = format!(
        "{question} It has settings, prompts or instructions that can change what the agent does and what commands run: {}",
        names.join(", ")
    );
    (title, files)
}
