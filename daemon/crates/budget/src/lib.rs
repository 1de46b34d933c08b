//! What a run, a session and a day may spend. No models, sessions or runtime: only sums.
//!
//! Before a step, what it can take at most is *reserved* in every scope that has limits; afterwards what it really took is *settled*
//! in the place of the reservation. The sum of what is spent and what is reserved never exceeds a limit, in whatever order
//! steps that run side by side are reserved and settled. Money is counted in whole nano-dollars.
//!
//! [`Account`] is the sum of one run or one session, in memory; [`DayFile`] that of a day, shared by all processes of an agent directory.

mod account;
mod amounts;
mod day_file;
mod holder;
mod records;

pub use account::{Account, Refusal};
pub use amounts::{Amounts, Limits, OutputFit, Quote, dollars, nanodollars, nanodollars_up};
pub use day_file::{DayError, DayFile, DayReservation, DayUse};
pub use holder::Holder;
