//! `abort`: what it stops, when it is answered, and with what.

use std::time::Duration;

use agentd_agent::StoppedCall;
use agentd_protocol::command::{AbortParams, AbortReceipt, AbortScope, Work, WorkKind};
use futures::future::join_all;
use serde_json::Value;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{lifecycle::BACKGROUND_GRACE, session_actor::Actor};
use crate::{
    abort::AbortWaiter,
    compaction::{CompactionError, WORK},
    reply::Reply,
    run::RunMessage,
};

/// Time after which an abort of everything is answered, even if some work has not ended. Less than a second in all.
const ANSWERED_AFTER: Duration = Duration::from_millis(900);

impl Actor {
    /// Stops work. Answered when what was to stop has: for a run, when it has settled.
    pub(super) fn abort(&mut self, params: AbortParams, reply: Reply) {
        self.abort.arrived();
        match params.scope {
            None => self.abort_run(AbortWaiter::Plain(reply)),
            Some(AbortScope::Turn) => self.abort_run(AbortWaiter::Receipt(reply)),
            Some(AbortScope::Tools) => self.abort_tools(reply),
            Some(AbortScope::All) => self.abort_all(reply),
        }
    }

    /// Stops the run or the compaction, which never work at the same time. A compaction that waits for the run's end
    /// does not begin.
    fn abort_run(&mut self, aborting: AbortWaiter) {
        self.server_prompts.give_up();
        self.give_up_compactions();
        let aborting = self.run.abort(aborting);
        if let Some(aborting) = aborting.and_then(|aborting| self.compacting.abort(aborting)) {
            let mut ended = std::mem::take(&mut self.stopped_run);
            ended.extend(self.compacting.just_stopped());
            self.answer_abort(aborting, ended);
        }
    }

    /// Refuses the compactions that wait for the end of the run.
    pub(super) fn give_up_compactions(&mut self) {
        for reply in self.run.give_up_compactions() {
            reply.fail(&self.feed, CompactionError::Cancelled.into());
        }
    }

    /// Stops the calls of the current answer. The switch may have done so before this command was taken: then the
    /// calls may be gone already.
    fn abort_tools(&mut self, reply: Reply) {
        // Later calls are not the ones that this command stops.
        let is_done = !self.stopped_tools.is_empty();
        let waiting =
            if !is_done && self.abort.fire_tools() { self.run.await_tools(reply) } else { Some(reply) };
        if let Some(reply) = waiting {
            let ended = std::mem::take(&mut self.stopped_tools);
            self.answer_receipt(reply, tools(ended));
        }
    }

    /// Stops the calls of the current answer for a steering message that interrupts. Only the results of the calls say
    /// so.
    pub(super) fn interrupt_tools(&mut self) {
        if self.abort.fire_tools() {
            self.tools_interrupted = true;
        }
    }

    /// Stops everything in parallel, since a command may ignore the first signal for a while. The answer waits neither
    /// for slower work nor for a process that nothing ends.
    fn abort_all(&mut self, reply: Reply) {
        let (commands, ends) = self.user_bash.abort_each();
        let mut ended: Vec<Work> = commands;
        ended.extend(self.background());
        self.context.subagents.stop_background();
        let (part, run) = oneshot::channel();
        self.abort_run(AbortWaiter::Part(part));
        let (processes, to_actor) = (self.context.processes.clone(), self.to_actor.clone());
        let (gone, all_gone) = oneshot::channel();
        self.tasks.spawn(async move {
            processes.end_all(BACKGROUND_GRACE).await;
            // The abort may have been answered already.
            let _: Result<(), ()> = gone.send(());
        });
        self.aborting_all += 1;
        let reply = Box::new(reply);
        let deadline = Instant::now() + ANSWERED_AFTER;
        self.tasks.spawn(async move {
            let stopped = timeout_at(deadline, run).await;
            let others = timeout_at(deadline, async { tokio::join!(join_all(ends), all_gone) }).await;
            let is_late = stopped.is_err() || others.is_err();
            let mut all = stopped.ok().and_then(Result::ok).unwrap_or_default();
            all.extend(ended);
            // A session that is gone needs no answer.
            let _ = to_actor.send(RunMessage::AllAborted { reply, ended: all, is_late }).await;
        });
    }

    /// An abort of everything is over, or has waited long enough.
    pub(super) fn on_all_aborted(&mut self, reply: Reply, mut ended: Vec<Work>, is_late: bool) {
        self.aborting_all -= 1;
        let survives = self.at_work();
        if is_late {
            for work in &survives {
                if let Some(at) = ended.iter().position(|ended| ended == work) {
                    ended.remove(at);
                }
            }
        }
        reply.data(&self.feed, AbortReceipt { ended, survives });
    }

    /// The calls of an answer were stopped, and their results are stored.
    pub(super) fn on_tools_stopped(&mut self, calls: Vec<StoppedCall>) {
        let waiting = self.run.tools_ended();
        let was_interrupted = std::mem::take(&mut self.tools_interrupted);
        if waiting.is_empty() {
            if was_interrupted {
                return;
            }
            // The command that stopped them is on its way here, or the run ends.
            self.stopped_tools = calls;
            return;
        }
        for reply in waiting {
            self.answer_receipt(reply, tools(calls.clone()));
        }
    }

    /// Answers all waiters for the end of a run.
    pub(super) fn answer_aborts(
        &mut self,
        aborting: Vec<AbortWaiter>,
        stopping: Vec<Reply>,
        was_aborted: bool,
    ) {
        let stopped = tools(if was_aborted { std::mem::take(&mut self.stopped_tools) } else { Vec::new() });
        for reply in stopping {
            self.answer_receipt(reply, stopped.clone());
        }
        let turn = Work { kind: WorkKind::Turn, id: None, name: None };
        let ended: Vec<Work> = std::iter::once(turn).chain(stopped).collect();
        if was_aborted && aborting.is_empty() {
            // The command that fired the switch is on its way here.
            self.stopped_run.clone_from(&ended);
        }
        for aborting in aborting {
            self.answer_abort(aborting, ended.clone());
        }
    }

    pub(super) fn answer_abort(&mut self, aborting: AbortWaiter, ended: Vec<Work>) {
        match aborting {
            AbortWaiter::Compact(params, asker) => self.start_compaction(params, asker),
            AbortWaiter::Plain(reply) if self.survivors.works().is_empty() => reply.done(&self.feed),
            AbortWaiter::Plain(reply) => self.answer_receipt(reply, ended),
            AbortWaiter::Receipt(reply) => self.answer_receipt(reply, ended),
            AbortWaiter::Part(part) => {
                // The task that waits for it ends only with the session.
                let _ = part.send(ended);
            }
        }
    }

    /// Answers with what ended and what is at work now.
    fn answer_receipt(&self, reply: Reply, ended: Vec<Work>) {
        reply.data(&self.feed, AbortReceipt { ended, survives: self.at_work() });
    }

    /// The work of the session now.
    fn at_work(&self) -> Vec<Work> {
        let turn = self.run.is_active().then_some(Work { kind: WorkKind::Turn, id: None, name: None });
        let compaction = self.compacting.is_asked_for();
        let compaction = compaction.then_some(WORK);
        turn.into_iter()
            .chain(compaction)
            .chain(self.survivors.works())
            .chain(self.user_bash.works())
            .chain(self.background())
            .collect()
    }

    /// Background processes, and processes that finished commands left running.
    fn background(&self) -> impl Iterator<Item = Work> + use<> {
        let left = Work { kind: WorkKind::Background, id: None, name: None };
        let left = std::iter::repeat_n(left, self.left_by_others());
        self.background_works().into_iter().chain(left)
    }
}

/// The calls that ended.
fn tools(calls: Vec<StoppedCall>) -> Vec<Work> {
    let work = |call: StoppedCall| Work {
        kind: WorkKind::Tool,
        id: Some(Value::String(call.id)),
        name: Some(call.name),
    };
    calls.into_iter().filter(|call| !call.survives).map(work).collect()
}
