//! The parts that need Linux: the guard, its supervisors, and what only the kernel's own calls can do.

mod adopted;
mod freeze;
mod guard;
mod marks;
mod meter;
mod peer;
mod procfs;
mod scope;
mod shared;
mod sys;
mod table;

pub(crate) use adopted::Adopted;
pub use guard::run_guard;
pub(crate) use guard::send_request;
pub(crate) use marks::{has_lasting_marks, kill_marked, largest_mark};
pub use peer::{CommandOrigin, Peer, PeerOrigin};
pub(crate) use procfs::{kill_session, life_of, lists_children, own_life};
pub(crate) use table::Table;
