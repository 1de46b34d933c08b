//! The parts that need Linux: the guard, its supervisors, and what only the kernel's own calls can do.

mod adopted;
mod guard;
mod launch;
mod marks;
mod meter;
mod newer;
mod peer;
mod procfs;
mod requests;
mod supervisor;
mod sys;
mod table;

pub(crate) use adopted::Adopted;
pub use guard::run_guard;
pub use marks::OWNER_VARIABLE;
pub(crate) use marks::{DeadOwner, OwnerMark, has_lasting_marks, kill_marked, kill_session};
pub(crate) use newer::{TreeMark, kill_own};
pub use peer::{CommandOrigin, Peer, PeerOrigin};
pub(crate) use procfs::{life_of, lists_children, own_life};
pub(crate) use requests::send_request;
pub(crate) use table::Table;
