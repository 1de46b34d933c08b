//! The budgets of a session: what its runs, the session and the day may spend.
//!
//! Every model call of a session, whatever it is for, goes through [`SessionBudget::meter`]: it reserves before the request and
//! settles after the answer. Without limits it gives the provider back as it is.

mod call_meter;
mod day_watch;
mod metered;
mod reservation;
mod reserve;
mod run_guard;
mod session_budget;

pub(crate) use run_guard::RunGuard;
pub(crate) use session_budget::SessionBudget;
