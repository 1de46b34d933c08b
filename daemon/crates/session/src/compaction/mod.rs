//! Compaction: the older part of a context gives way to a summary, so that the conversation can go on.
//!
//! Pure: [`policy`] says when a context is too full and [`trigger`] what an answer means for it; [`cut`] finds where the
//! kept part begins, [`plan`] what is to be summarised, [`conversation`] and [`files`] turn that into text. Driving:
//! [`summarise`] asks the model, [`work`] does a whole compaction, [`manual`] the command, [`branch`] and [`leave`] summaries
//! of branches that the conversation leaves; [`slot`] is the place that what a command asks for takes. When a run compacts by itself is in [`crate::run`].

mod branch;
mod conversation;
mod cut;
mod error;
mod files;
mod plan;
mod policy;
mod slot;
mod summarise;
#[cfg(test)]
mod testing;
mod trigger;
mod work;

pub(crate) use branch::{plan as plan_branch, summary as summarise_branch};
pub(crate) use error::CompactionError;
pub(crate) use plan::{Plan, PlanRequest, plan};
pub(crate) use policy::CompactionPolicy;
pub(crate) use policy::branch_budget;
pub(crate) use slot::{Compacting, SummaryEnding, WORK};
pub(crate) use trigger::{LastAnswer, OverflowRetry, OverflowRetryGuard, Trigger};
pub(crate) use work::{CompactionOrder, CompactionWorker, end, manual};
