//! What becomes of the plans that the model proposes: the tool's calls reach the session's actor, and the registry of sessions where another
//! session carries a plan out.

use std::sync::{Arc, OnceLock};

use agentd_protocol::error::{ErrorCode, Failure};
use agentd_tools::{PlanReview, ProposedPlan, Successor};
use futures::{FutureExt as _, future::BoxFuture};
use tokio::sync::oneshot;

use crate::{message_sender::MessageSender, permissions::PermissionGate, services::SessionWatch};

/// A plan that the user has approved, on its way to the actor.
pub(crate) struct PlanApproval {
    pub(crate) plan: ProposedPlan,
    /// The session that carries it out; `None`: this one.
    pub(crate) successor: Option<Successor>,
    /// Answered once plan mode is off.
    pub(crate) done: oneshot::Sender<Result<(), Failure>>,
}

/// The plans of a session. Cheap to clone; all clones are those of the same session.
#[derive(Clone)]
pub(crate) struct SessionPlans(Arc<Inner>);

struct Inner {
    session: String,
    permissions: Arc<PermissionGate>,
    watch: Arc<dyn SessionWatch>,
    /// There once the session's actor works.
    approvals: OnceLock<MessageSender<PlanApproval>>,
}

impl SessionPlans {
    /// The plans of a session with this id and these permissions.
    pub(crate) fn new(session: &str, permissions: Arc<PermissionGate>, watch: Arc<dyn SessionWatch>) -> Self {
        let approvals = OnceLock::new();
        Self(Arc::new(Inner { session: session.to_owned(), permissions, watch, approvals }))
    }

    /// Says where approved plans go. Only the first time counts.
    pub(crate) fn lead_to(&self, approvals: MessageSender<PlanApproval>) {
        // A session has one actor.
        let _ = self.0.approvals.set(approvals);
    }

    async fn tell(&self, plan: ProposedPlan, successor: Option<Successor>) -> Result<(), Failure> {
        let ended = || Failure::new(ErrorCode::NoSession, "The session has ended.");
        let approvals = self.0.approvals.get().ok_or_else(ended)?;
        let (done, told) = oneshot::channel();
        approvals.send(PlanApproval { plan, successor, done }).await;
        told.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl PlanReview for SessionPlans {
    fn is_open(&self) -> bool {
        self.0.permissions.planning().proposes()
    }

    fn approve(&self, plan: ProposedPlan) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let told = self.tell(plan, None).await;
            told.map_err(|failure| {
                format!("The plan is approved, but plan mode is still on: {}", failure.error)
            })
        }
        .boxed()
    }

    fn approve_elsewhere(&self, plan: ProposedPlan) -> BoxFuture<'_, Result<Successor, String>> {
        async move {
            let begun = self.0.watch.carry_out(&self.0.session, plan.clone()).await;
            let successor = begun.map_err(|failure| {
                format!("The plan is approved, but no other session could begin with it: {}", failure.error)
            })?;
            let told = self.tell(plan, Some(successor.clone())).await;
            told.map_err(|failure| {
                let id = &successor.id;
                format!(
                    "The session {id} carries out the plan, but plan mode is still on here: {}",
                    failure.error
                )
            })?;
            Ok(successor)
        }
        .boxed()
    }
}
