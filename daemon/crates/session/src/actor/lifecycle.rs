//! The end of a session, and of its stay in memory.

use std::{path::Path, sync::Arc, time::Duration};

use agentd_config::models::RestoredChoice;
use agentd_protocol::error::{ErrorCode, Failure};
use tokio::sync::mpsc;

use super::session_actor::Actor;
use crate::{
    messages::InboxMessage,
    models::Choice,
    replacement::SessionEnd,
    run::RunMessage,
    unload::{Leaf, Stamp, Unloaded},
};

/// Time that background processes of a closing session have between SIGTERM and SIGKILL.
pub(super) const BACKGROUND_GRACE: Duration = Duration::from_secs(2);

/// Time that the session of a subagent stays in memory after its end.
const SUBAGENT_IDLE: Duration = Duration::from_millis(420_000);

impl Actor {
    /// Ends everything that works for the session, and stores how it ended.
    /// `taken` are messages that were taken and not looked at, `end` says where its client goes.
    pub(super) async fn close(
        &mut self,
        taken: impl Iterator<Item = InboxMessage>,
        inbox: &mut mpsc::Receiver<InboxMessage>,
        from_tasks: &mut mpsc::Receiver<RunMessage>,
        end: Option<Box<SessionEnd>>,
    ) {
        self.closing = true;
        self.run.cancel();
        if let Some(mcp) = &self.context.mcp {
            mcp.give_up_connecting();
        }
        self.server_prompts.give_up();
        self.command_runs.give_up();
        self.hook_start.give_up();
        if let Some(pending) = &self.pending_start {
            pending.cancel.cancel();
        }
        self.compacting.cancel();
        self.user_bash.abort_all();
        self.context.subagents.close();
        self.give_up_dialogs();
        if self.going_on.give_up() && !self.run.is_active() {
            self.settle_intent_log();
        }
        // Tasks end only once their last steps are taken.
        while !self.tasks.is_empty() {
            tokio::select! {
                Some(message) = from_tasks.recv() => self.on_run_message(message).await,
                Some(request) = self.extension_requests.1.recv() => self.on_extension(request).await,
                Some(_) = self.tasks.join_next() => {}
            }
        }
        while let Ok(message) = from_tasks.try_recv() {
            self.on_run_message(message).await;
        }
        self.end_hooks(end.as_deref().map(|end| end.reason)).await;
        self.end_extensions(end).await;
        self.give_up_requests();
        self.give_up_prompt_results();
        // A client that closes a session knows its queues.
        self.forget_waiting().await;
        self.retry_failed_writes().await;
        self.journal.intent_log().close().await;
        self.context.processes.terminate(BACKGROUND_GRACE).await;
        self.tell_last_ends().await;
        self.tell_idle();
        self.refuse_late(taken, inbox).await;
        self.feed.close();
    }

    /// Takes no more messages, and answers those that came too late.
    ///
    /// Done before anybody is told of the end: a message that is sent in the moment in which the inbox is dropped would stay in
    /// it, neither taken nor given back, and its sender would wait for ever.
    pub(super) async fn refuse_late(
        &self,
        taken: impl Iterator<Item = InboxMessage>,
        inbox: &mut mpsc::Receiver<InboxMessage>,
    ) {
        inbox.close();
        let refuse = |message: InboxMessage| {
            message.refuse(&self.feed, || Failure::new(ErrorCode::NoSession, "The session has ended."));
        };
        taken.for_each(refuse);
        while let Some(message) = inbox.recv().await {
            refuse(message);
        }
    }

    /// The state for a reload, if the session can be unloaded: it has a file, nothing works for it, and nothing waits.
    pub(super) async fn unloaded(&mut self) -> Option<Unloaded> {
        if !self.is_quiet() {
            return None;
        }
        let file: Arc<Path> = self.journal.file()?.into();
        let unsaved = self.journal.unsaved().map(Into::into);
        // While the file is still locked: nobody who keeps to that has changed it since our last write.
        let stamp = match &unsaved {
            Some(_) => None,
            None => {
                let file = Arc::clone(&file);
                tokio::task::spawn_blocking(move || Stamp::of(&file)).await.ok().flatten()
            }
        };
        let tree = self.journal.tree();
        let last = tree.entries().last().map(|entry| entry.id());
        let leaf = match tree.leaf_id() {
            leaf if leaf == last => Leaf::Last,
            Some(leaf) => Leaf::At(leaf.into()),
            None => Leaf::Root,
        };
        let Choice { model, level } = self.chooser.current();
        let moved = self.has_moved.then(|| RestoredChoice {
            model: (!model.is_placeholder()).then(|| (model.provider.clone(), model.id.clone())),
            level: Some(level),
        });
        Some(Unloaded {
            file: (*file).into(),
            stamp,
            unsaved,
            leaf,
            moved,
            tools: self.tools.chosen().clone(),
            mode: self.mode(),
            fallback_models: self.context.fallbacks.chosen(),
            permissions: self.context.permissions.changes().map(Box::new),
            trusted: self.trust.is_given(),
            trusted_files: self.trust.files().cloned().map(Box::new),
            key_provider: self.context.key_provider.as_deref().map(Into::into),
        })
    }

    /// After how long without work it may leave memory; `None`: never. A subagent that has ended is parked sooner.
    pub(super) fn idle_after(&self) -> Option<Duration> {
        let of_all = self.context.services.limits.idle_after;
        if self.context.subagents.own().is_none() {
            return of_all;
        }
        let set = self.context.settings.task.as_ref().and_then(|task| task.idle_ms);
        match set.map_or(SUBAGENT_IDLE, Duration::from_millis) {
            Duration::ZERO => of_all,
            parked => Some(of_all.map_or(parked, |of_all| of_all.min(parked))),
        }
    }

    /// Whether nothing works for the session and nothing waits in it.
    pub(super) fn is_quiet(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.is_idle()
            && !self.closing
            // Extensions have state, timers and watchers of their own.
            && self.context.extensions.is_none()
            && self.tasks.is_empty()
            && self.queues.len() == 0
            && self.idle_waiters.is_empty()
            && self.joining.is_empty()
            && self.dialogs.is_empty()
            && !self.unflushed.is_in_memory()
            && self.context.processes.running() == 0
            && self.context.background.is_idle()
            && !self.context.subagents.has_active()
    }
}
