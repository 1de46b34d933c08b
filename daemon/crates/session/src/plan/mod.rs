//! Plan mode: the model looks around and proposes a plan, and changes nothing before the user has approved it.
//!
//! The [permissions](crate::permissions) refuse what changes something. Here are the entries that keep the mode, what the model is told, and
//! what becomes of a plan that is approved.

mod mode_entry;
mod review;
mod texts;

pub(crate) use mode_entry::{ModeChange, PlanModels, last_change, mode_on};
pub(crate) use review::{PlanApproval, SessionPlans};
pub(crate) use texts::{PROMPT_SECTION, plan_message, prompt_section};
