//! The mode of the session: changed by clients and by approved plans, on record, and told. What it refuses, the permissions know.

use agentd_agent::queue::QueueKind;
use agentd_protocol::{
    agent_mode::{AgentMode, ApprovedPlan, LOCAL_URL, ModeChanged, ModeState, SetModeParams},
    error::{ErrorCode, Failure},
    event::Event,
};
use agentd_tools::ProposedPlan;

use super::session_actor::{Actor, shutting_down};
use crate::{
    clock::now_ms,
    extensions::CustomDelivery,
    message_sender::MessageSender,
    permissions::Planning,
    plan::{ModeChange, PlanApproval, mode_on, plan_message},
    reply::Reply,
    run::{RunBeginning, RunMessage},
};

impl Actor {
    /// The session's own mode.
    pub(super) fn mode(&self) -> AgentMode {
        mode_of(self.context.permissions.own_planning())
    }

    /// The mode that counts: of a subagent, also that of the session that it works for.
    pub(super) fn mode_in_force(&self) -> AgentMode {
        mode_of(self.context.permissions.planning())
    }

    /// Begins in a mode, which need not be on record yet, and takes approved plans.
    pub(super) fn begin_mode(&mut self, mode: AgentMode) {
        let approvals = MessageSender::new(&self.to_actor, |plan| RunMessage::PlanApproved(Box::new(plan)));
        self.context.plans.lead_to(approvals);
        self.put_into(mode);
        self.mode_is_due = mode != mode_on(self.journal.tree());
    }

    /// The command `set_mode`.
    pub(super) async fn set_agent_mode(&mut self, params: SetModeParams, reply: Reply) {
        let outcome = self.try_set_agent_mode(params).await;
        reply.result(&self.feed, outcome);
    }

    async fn try_set_agent_mode(&mut self, params: SetModeParams) -> Result<ModeState, Failure> {
        let SetModeParams { mode, client } = params;
        if mode == AgentMode::Plan && self.mode() != mode {
            self.check_plan_mode()?;
        }
        if self.mode() != mode {
            self.use_mode(ModeChange { by: Some(client), ..ModeChange::to(mode) }).await?;
        }
        Ok(ModeState { mode })
    }

    /// Whether the settings let sessions plan.
    pub(super) fn check_plan_mode(&self) -> Result<(), Failure> {
        if self.context.plan_mode_is_off() {
            let text = "Plan mode is switched off by the setting plan.enabled.";
            return Err(Failure::new(ErrorCode::Unsupported, text));
        }
        Ok(())
    }

    /// Changes the mode and tells it; on record first. Only the way into plan mode counts even where the disk does not take it.
    pub(super) async fn use_mode(&mut self, change: ModeChange) -> Result<(), Failure> {
        if change.mode == AgentMode::Plan {
            self.put_into(change.mode);
        }
        let stored = self.journal.append(&change.entry()).await;
        if stored.is_err() && change.mode == AgentMode::Default {
            return stored;
        }
        self.mode_is_due = stored.is_err();
        self.put_into(change.mode);
        let ModeChange { mode, by, plan } = change;
        self.publish_to_introduced(&Event::from(ModeChanged { mode, by, plan }));
        self.tell_tools();
        self.tell_extensions();
        stored
    }

    fn put_into(&mut self, mode: AgentMode) {
        self.context.permissions.set_planning(mode == AgentMode::Plan);
        self.tools.mode_changed();
    }

    /// Puts the mode on record, where the branch that the session goes on with says something else.
    pub(super) async fn record_mode(&mut self) {
        let is_due = std::mem::take(&mut self.mode_is_due) || self.has_moved;
        if !is_due || mode_on(self.journal.tree()) == self.mode() {
            return;
        }
        if let Err(error) = self.journal.append(&ModeChange::to(self.mode()).entry()).await {
            // The run's first message meets the same trouble, and its client is told then.
            self.mode_is_due = true;
            tracing::error!(%error, "the mode of a branch could not be recorded");
        }
    }

    /// The user has approved a plan: plan mode ends, and the model gets the plan, unless another session carries it out.
    pub(super) async fn on_plan_approved(&mut self, approval: PlanApproval) {
        let PlanApproval { plan, successor, done } = approval;
        let is_here = successor.is_none();
        let (session_id, session_file) = successor.map_or((None, None), |it| (Some(it.id), it.file));
        let url = format!("{LOCAL_URL}{}", plan.name);
        let approved = ApprovedPlan { title: plan.title.clone(), url, session_id, session_file };
        let change = ModeChange { mode: AgentMode::Default, by: None, plan: Some(approved) };
        let changed = self.use_mode(change).await;
        if changed.is_ok() && is_here {
            let message = plan_message(&plan, false, now_ms());
            if !self.custom.push(CustomDelivery::Queued(QueueKind::Steering), message) {
                tracing::warn!("too many messages wait: the plan is not repeated to the model");
            }
        }
        // The call may have been stopped.
        let _ = done.send(changed);
    }

    /// Begins with a plan that was approved in another session.
    ///
    /// # Errors
    /// The plan's file cannot be written, or the session is at work.
    pub(super) async fn carry_out(&mut self, plan: ProposedPlan) -> Result<(), Failure> {
        if self.closing {
            return Err(shutting_down());
        }
        if self.run.is_active() {
            return Err(Failure::new(ErrorCode::Busy, "The session is at work."));
        }
        let (folder, kept) = (self.context.own_files.clone(), plan.clone());
        let written = tokio::task::spawn_blocking(move || folder.write(&kept.name, &kept.text)).await;
        let failed = |text: String| Failure::new(ErrorCode::Io, text);
        written.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.0))?;
        self.start(RunBeginning::Custom(Box::new(plan_message(&plan, true, now_ms()))), None);
        Ok(())
    }
}

fn mode_of(planning: Planning) -> AgentMode {
    if planning.is_on() { AgentMode::Plan } else { AgentMode::Default }
}
