//! Files that survive a crash: [`lock`]s whose holder was killed, [`replace`]ment in one step, the [`fail_point`]s where a
//! test makes either fail, and the extended attributes that a replaced file passes on. And [`QuickAccess`]: on which thread files are
//! accessed; [`Stamp`]s, by which changes are noticed; and [`AbsentNames`], which are looked for again only after one.

mod absent_names;
pub mod fail_point;
pub mod lock;
mod quick_access;
pub mod replace;
pub mod stamp;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod xattr;

pub use absent_names::AbsentNames;
pub use quick_access::{AccessInterrupted, QuickAccess};
pub use stamp::Stamp;
