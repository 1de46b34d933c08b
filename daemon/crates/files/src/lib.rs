//! Files that survive a crash: [`lock`]s whose holder was killed, [`replace`]ment in one step, the [`fail_point`]s where a
//! test makes either fail, and the extended attributes that a replaced file passes on. And [`QuickAccess`]: on which thread files are
//! accessed; [`Stamp`]s, by which changes are noticed; [`AbsentNames`] and paths that are [absent](is_absent), which are looked for again only after one; and
//! [`looking_once`] at each path for as long as one reading takes.

mod absent_names;
mod absent_path;
pub mod fail_point;
pub mod lock;
mod quick_access;
pub mod replace;
pub mod stamp;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod xattr;

pub use absent_names::AbsentNames;
pub use absent_path::is_absent;

pub use quick_access::{AccessInterrupted, QuickAccess};
pub use stamp::{Look, Stamp, exists, is_file, is_folder, look, looking_once};
