//! The mode of the session: changed by clients and by approved plans, on record, and told. What it refuses, the permissions know.

use agentd_agent::queue::QueueKind;
use agentd_config::models::{ScopedModel, UsableModels, resolve_scope};
use agentd_protocol::{
    agent_mode::{AgentMode, ApprovedPlan, LOCAL_URL, ModeChanged, ModeState, SetModeParams},
    error::{ErrorCode, Failure},
    event::Event,
    model::Model,
    ui::NotifyType,
};
use agentd_tools::ProposedPlan;

use super::session_actor::{Actor, shutting_down};
use crate::{
    clock::now_ms,
    extensions::CustomDelivery,
    message_sender::MessageSender,
    models::Choice,
    permissions::Planning,
    plan::{ModeChange, PlanApproval, PlanModels, last_change, mode_on, plan_message},
    reply::Reply,
    run::{RunBeginning, RunMessage},
    ui::Notice,
};

/// The role of the model that plans.
const PLAN_ROLE: &str = "plan";

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

    /// Changes the mode and tells it; on record first. Only the way into plan mode counts even where the disk does not take it. The model of the
    /// role `plan` comes and goes with the mode.
    pub(super) async fn use_mode(&mut self, mut change: ModeChange) -> Result<(), Failure> {
        let swap = match change.mode {
            AgentMode::Plan => {
                self.put_into(change.mode);
                self.model_to_plan().await
            }
            AgentMode::Default => self.model_after_plan().await,
        };
        if change.mode == AgentMode::Plan {
            change.models = self.plan_models.clone();
        }
        let stored = self.journal.append(&change.entry()).await;
        if stored.is_err() && change.mode == AgentMode::Default {
            return stored;
        }
        self.mode_is_due = stored.is_err();
        self.put_into(change.mode);
        if change.mode == AgentMode::Default {
            self.plan_models = None;
        }
        if let Some(ScopedModel { model, level }) = swap {
            self.use_model(model, level).await?;
        }
        let ModeChange { mode, by, plan, models: _ } = change;
        self.publish_to_introduced(&Event::from(ModeChanged { mode, by, plan }));
        self.tell_tools();
        self.tell_extensions();
        stored
    }

    /// Goes over to the model of the role `plan`, where the session was opened in plan mode and no model was asked for.
    ///
    /// # Errors
    /// The disk did not take it.
    pub(super) async fn begin_planning(&mut self) -> Result<(), Failure> {
        if !self.mode_is_due || self.mode() != AgentMode::Plan || self.trust.options().model.is_some() {
            return Ok(());
        }
        match self.model_to_plan().await {
            Some(ScopedModel { model, level }) => self.use_model(model, level).await,
            None => Ok(()),
        }
    }

    /// The model of the role `plan`, where it is another; notes the one of now, to go back to.
    async fn model_to_plan(&mut self) -> Option<ScopedModel> {
        let pattern = self.context.settings.model_roles.get(PLAN_ROLE)?.clone();
        let asked = vec![pattern.clone()];
        let scope = self.context.with_usable_models(move |usable| resolve_scope(usable, &asked)).await;
        let Some(found) = scope.models.into_iter().next() else {
            let text = format!(
                "The model {pattern} of the role plan (modelRoles) cannot be used; the session's model goes on."
            );
            self.tell_user(Notice::notify(text, NotifyType::Warning));
            return None;
        };
        let Choice { model: before, level } = self.chooser.current();
        if before.name() == found.model.name() {
            return None;
        }
        let full = |model: &Model| format!("{}/{}", model.provider, model.id);
        self.plan_models = Some(PlanModels { before: full(&before), level, plan: full(&found.model) });
        Some(found)
    }

    /// The model of before plan mode, where the one of the role is still in use.
    async fn model_after_plan(&self) -> Option<ScopedModel> {
        let noted = self.plan_models.clone();
        let PlanModels { before, level, plan } =
            noted.or_else(|| last_change(self.journal.tree())?.models)?;
        let current = self.chooser.current().model;
        if format!("{}/{}", current.provider, current.id) != plan {
            return None;
        }
        let find = move |usable: &UsableModels<'_>| {
            let (provider, id) = before.split_once('/')?;
            usable.find_available(provider, id)
        };
        let model = self.context.with_usable_models(find).await?;
        Some(ScopedModel { model, level: Some(level) })
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
        let change = ModeChange { models: self.plan_models.clone(), ..ModeChange::to(self.mode()) };
        if let Err(error) = self.journal.append(&change.entry()).await {
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
        let change = ModeChange { plan: Some(approved), ..ModeChange::to(AgentMode::Default) };
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
