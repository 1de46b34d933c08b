//! The parts that need Linux: the guard, its supervisors, and what only the kernel's own calls can do.

mod adopted;
mod guard;
mod marks;
mod meter;
mod peer;
mod procfs;
mod supervisor;
mod sys;
mod table;

pub(crate) use adopted::Adopted;
pub use guard::run_guard;
pub(crate) use guard::send_request;
pub use marks::OWNER_VARIABLE;
pub(crate) use marks::{DeadOwner, OwnerMark, has_lasting_marks, kill_marked, kill_session};
pub use peer::{CommandOrigin, Peer, PeerOrigin};
pub(crate) use procfs::{life_of, lists_children, own_life};
pub(crate) use table::Table;
