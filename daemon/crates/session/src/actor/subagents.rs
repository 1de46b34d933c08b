//! The subagents of a session: what is on record of them, and the commands about them.

use std::{
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_isolation::Git;
use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::Event,
    isolation::CommitMessages,
    jobs::{JobEnd, JobStart},
    subagent::{
        GetSubagentMessagesParams, SubagentLifecycle, SubagentList, SubagentMessages, SubagentPatchParams,
        SubagentSnapshot, SubagentStatus,
    },
};
use agentd_safe_open::{LinkPolicy, OpenRules};
use serde_json::Value;

use super::session_actor::Actor;
use crate::{
    commit_messages::ModelAuthor,
    discovery::ContextLookup,
    event_log::{Audience, Feed},
    jobs::of_subagent,
    reply::{Reply, encode},
    subagent_records::{subagent_entry, subagents_in},
    subagents::{CommitAuthor, IsolationPlace, ParentFacts, SubagentMessage},
};

/// The most bytes of a file that one answer has.
const MOST_BYTES: u64 = 1 << 20;

impl Actor {
    pub(super) async fn on_subagent_message(&mut self, message: SubagentMessage) {
        match message {
            SubagentMessage::Facts(asked) => {
                self.restore_subagents();
                // The call may have been stopped.
                let _ = asked.send(Box::new(self.parent_facts()));
            }
            SubagentMessage::Record { subagents, done } => {
                let recorded = self.record_subagents(subagents).await;
                let _ = done.send(recorded.map_err(|failure| failure.error));
            }
            SubagentMessage::Progressed(progressed) => {
                self.publish_about_subagents(&Event::from(*progressed));
            }
            SubagentMessage::Merged(merged) => self.publish_about_subagents(&Event::from(*merged)),
            SubagentMessage::Spawn(work) => {
                // A session that is closing stops it at once, and waits for its end.
                self.tasks.spawn(work);
                if self.closing {
                    self.context.subagents.stop_background();
                }
            }
            SubagentMessage::Ended(message) => {
                // A session that ends has stopped it.
                if !self.closing {
                    self.tell_job_end(*message).await;
                }
            }
            SubagentMessage::Told { message, done } => {
                self.take_agent_message(*message).await;
                // The sender may have been stopped.
                let _ = done.send(());
            }
            SubagentMessage::Restore(done) => {
                self.restore_subagents();
                let _ = done.send(());
            }
        }
    }

    fn parent_facts(&self) -> ParentFacts {
        let context = &self.context;
        ParentFacts {
            lookup: Arc::new(ContextLookup(Arc::clone(context))),
            hosting: context.services.subagent_hosting.clone(),
            settings: context.settings.task.clone().unwrap_or_default(),
            model_roles: context.settings.model_roles.clone(),
            cwd: context.cwd.clone(),
            session_file: context.session_file.clone(),
            is_trusted: context.prompt.is_trusted(),
            key_provider: context.key_provider.clone(),
            budget: Arc::clone(&context.budget),
            permissions: Arc::clone(&context.permissions),
            isolation: self.isolation(false),
            choice: self.chooser.in_use(),
            active: self.tools.active(&context.tools),
            ui: self.ui(),
        }
    }

    /// How changes of subagents are isolated; `None` where the settings do not enable it, unless `anyway`.
    fn isolation(&self, anyway: bool) -> Option<IsolationPlace> {
        let context = &self.context;
        let of_task =
            context.settings.task.as_ref().and_then(|task| task.isolation.clone()).unwrap_or_default();
        if !(anyway || of_task.enabled.unwrap_or(false)) || context.is_elsewhere {
            return None;
        }
        let settings = context.settings.isolation.clone().unwrap_or_default();
        let variable = |name: &str| context.environment.non_empty(name).map(PathBuf::from);
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
        let cache = cache.filter(|cache| cache.is_absolute()).unwrap_or_else(std::env::temp_dir);
        Some(IsolationPlace {
            git: Git::new(context.processes.clone(), &context.child_environment),
            backend: settings.backend.unwrap_or_default(),
            links: settings.links,
            mode: of_task.merge.unwrap_or_default(),
            applies: of_task.apply.unwrap_or(true),
            author: (of_task.commits == Some(CommitMessages::Ai)).then(|| {
                let (context, choice) = (Arc::clone(context), self.chooser.in_use());
                Arc::new(ModelAuthor { context, choice }) as Arc<dyn CommitAuthor>
            }),
            base_dir: cache.join("agentd").join("isolation"),
            // The end of an id of this form is random.
            session: context.session_id.chars().rev().take(8).collect::<String>().chars().rev().collect(),
        })
    }

    /// Works in a task: git may take a while.
    pub(super) fn apply_patch(&mut self, params: SubagentPatchParams, reply: Reply) {
        let Some((isolation, folder, feed)) = self.waiting_changes() else {
            return reply.fail(&self.feed, no_changes(&params.subagent_id));
        };
        self.tasks.spawn(async move {
            let applied = isolation.apply(&folder, &params.subagent_id).await;
            reply.result(&feed, applied.map_err(|error| Failure::new(ErrorCode::Io, error)));
        });
    }

    /// Works in a task: git may take a while.
    pub(super) fn discard_patch(&mut self, params: SubagentPatchParams, reply: Reply) {
        let Some((isolation, folder, feed)) = self.waiting_changes() else {
            return reply.fail(&self.feed, no_changes(&params.subagent_id));
        };
        self.tasks.spawn(async move {
            let discarded = isolation.discard(&folder, &params.subagent_id).await;
            reply.outcome(&feed, discarded.map_err(|error| Failure::new(ErrorCode::Io, error)));
        });
    }

    fn waiting_changes(&self) -> Option<(IsolationPlace, PathBuf, Feed)> {
        let folder = self.context.subagents.folder()?.to_owned();
        Some((self.isolation(true)?, folder, self.feed.clone()))
    }

    /// Reads the session's entries about subagents, once.
    pub(super) fn restore_subagents(&self) {
        self.context.subagents.restore(|| subagents_in(self.journal.tree()));
    }

    /// On record first.
    async fn record_subagents(&mut self, subagents: Vec<SubagentSnapshot>) -> Result<(), Failure> {
        self.journal.append(&subagent_entry(&subagents)).await?;
        if subagents.iter().any(|subagent| !subagent.status.is_active()) {
            self.context.job_news.job_ended();
        }
        for subagent in subagents {
            match subagent.status {
                SubagentStatus::Pending => {
                    self.publish_to_introduced(&JobStart { job: of_subagent(&subagent) }.into())
                }
                SubagentStatus::Running => {}
                _ => self.publish_to_introduced(&JobEnd { job: of_subagent(&subagent) }.into()),
            }
            let detached = self.context.subagents.is_detached(&subagent.id);
            self.publish_about_subagents(&SubagentLifecycle::new(subagent, detached).into());
        }
        Ok(())
    }

    fn publish_about_subagents(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.feed.publish_for(Audience::Subagents, line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }

    pub(super) fn get_subagents(&self, reply: Reply) {
        self.restore_subagents();
        reply.data(&self.feed, SubagentList { subagents: self.context.subagents.list() });
    }

    /// Reads on a blocking thread; the session waits, as for other answers from its files.
    pub(super) async fn get_subagent_messages(&self, params: GetSubagentMessagesParams, reply: Reply) {
        self.restore_subagents();
        let GetSubagentMessagesParams { subagent_id, from_byte } = params;
        let Some(subagent) = self.context.subagents.find(&subagent_id) else {
            let known: Vec<String> = self.context.subagents.list().into_iter().map(|it| it.id).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let text = format!("The session has no subagent \"{subagent_id}\"; there are: {known}.");
            return reply.fail(&self.feed, Failure::new(ErrorCode::InvalidField, text));
        };
        let Some(file) = subagent.session_file.map(PathBuf::from) else {
            let text = format!("The session of the subagent \"{subagent_id}\" has no file.");
            let hint = "attach_session joins it while it works.";
            return reply.fail(&self.feed, Failure::new(ErrorCode::Unsupported, text).hint(hint));
        };
        let read = tokio::task::spawn_blocking(move || messages(&file, from_byte.unwrap_or(0)));
        let result =
            read.await.unwrap_or_else(|error| Err(Failure::new(ErrorCode::Internal, error.to_string())));
        reply.result(&self.feed, result);
    }
}

fn no_changes(id: &str) -> Failure {
    Failure::new(ErrorCode::InvalidField, format!("The subagent {id} has no changes that wait."))
}

/// The entries of a file from a byte on, in whole lines.
fn messages(path: &Path, from: u64) -> Result<SubagentMessages, Failure> {
    let unreadable =
        |error: String| Failure::new(ErrorCode::Io, format!("{} cannot be read: {error}", path.display()));
    let failed = |error: std::io::Error| unreadable(error.to_string());
    let session_file = path.display().to_string();
    let rules = OpenRules::new(LinkPolicy::Refused);
    let mut file = match rules.open(path) {
        Ok(file) => file,
        // It appears with the first answer.
        Err(error) if error.is_missing() => {
            return Ok(SubagentMessages {
                session_file,
                from_byte: 0,
                next_byte: 0,
                reset: from > 0,
                entries: Vec::new(),
                messages: Vec::new(),
            });
        }
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let length = file.metadata().map_err(failed)?.len();
    let reset = from > length;
    let from_byte = if reset { 0 } else { from };
    file.seek(SeekFrom::Start(from_byte)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    let mut end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if end == 0 && from_byte + (bytes.len() as u64) < length {
        // A line that is longer than an answer usually is comes whole.
        file.read_to_end(&mut bytes).map_err(failed)?;
        end = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    }
    let (mut entries, mut messages) = (Vec::new(), Vec::new());
    for line in bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // The header and the entries are objects; a damaged line is passed over, as when the file is opened.
        let Ok(entry) = serde_json::from_slice::<Value>(line) else { continue };
        match entry["type"].as_str() {
            Some("session") => continue,
            Some("message") => messages.push(entry["message"].clone()),
            _ => {}
        }
        entries.push(entry);
    }
    Ok(SubagentMessages {
        session_file,
        from_byte,
        next_byte: from_byte + end as u64,
        reset,
        entries,
        messages,
    })
}
