//! Runs commands in the background of a session, under names: they can be read, written to and ended while other work
//! goes on.
//!
//! [`BackgroundProcesses`] is the list, [`BackgroundProcess`] one of them. Output goes to bounded memory and to a
//! bounded file as it comes, whether it is read or not.
//!
//! The list belongs to the session and outlives its runs. A task for each process reads what it writes.

mod adopted;
mod list;
mod log;
mod process;
mod terms;
mod worker;

pub use adopted::{AdoptedOutput, AdoptedProcess};
pub use list::{BackgroundError, BackgroundLimits, BackgroundProcesses};
pub use log::OutputExcerpt;
pub use process::{BackgroundEnd, BackgroundJob, BackgroundProcess, BackgroundState, EndedBy};
pub use terms::{Delivery, DeliveryState, JobFacts, JobTerms, OutputListener};
