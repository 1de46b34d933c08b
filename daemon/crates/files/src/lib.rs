//! Files that survive a crash: [`lock`]s whose holder was killed, [`replace`]ment in one step, and the [`fail_point`]s where a
//! test makes either fail.

pub mod fail_point;
pub mod lock;
pub mod replace;
