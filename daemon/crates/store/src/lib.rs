//! Session files: append-only trees of entries, one JSON object a line.
//!
//! Two independent halves: [`SessionTree`] and [`Context`] are pure; they hold the content of a session and touch no file.
//! [`SessionWriter`] writes entries to disk and holds only unwritten lines; it blocks, so it belongs on a blocking thread. [`Store`]
//! opens both together.
//!
//! A new entry goes to disk first, and into the tree once that worked:
//!
//! ```
//! use agentd_protocol::entry::EntryBody;
//! use agentd_store::{Context, NewEntry, NewSession, Store, StoreOptions};
//!
//! # fn main() -> Result<(), agentd_store::StoreError> {
//! let store = Store::new(StoreOptions::default());
//! let mut session = store.in_memory(NewSession::new("/home/user/project", 0))?;
//! let mut context = Context::new(&session.tree);
//!
//! let body = EntryBody::ThinkingLevelChange { thinking_level: "high".into() };
//! let entry = session.tree.prepare(NewEntry::from_body(&body)?, 1_000);
//! session.writer.append(&entry)?;
//! session.tree.push(entry);
//! context.follow(&session.tree);
//! assert_eq!(context.thinking_level(), Some("high"));
//! # Ok(())
//! # }
//! ```
//!
//! Facts about the format (names, shapes, rules of reading) are those of pi's session files, version 3.

mod append;
mod context;
mod counted_usage;
mod counts;
mod edit;
mod entry;
mod error;
mod estimate;
mod file_texts;
mod fork;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod header;
mod ids;
pub mod intent_log;
mod io;
mod lines;
mod list;
mod load;
mod lock;
mod meter;
mod migrate;
mod new_entry;
mod object;
mod own_spending;
mod paths;
mod read_ahead;
mod repair;
mod replace;
mod spending;
mod stats;
mod store;
#[cfg(test)]
mod testing;
mod time;
mod totals;
mod tree;
mod tree_json;
mod usage_scan;

pub use append::SessionWriter;
pub use context::{Choices, Context, Contribution, ModelRef, model_of};
pub use edit::{EditTargetError, check_edit_target};
pub use entry::{Entry, EntryKind, Role};
pub use error::{Holder, StoreError};
pub use estimate::{context_usage, estimate_tokens};
pub use fork::{ForkError, ForkMessage, ForkPoint, NavigationTarget, copy_all, copy_branch, fork_messages};
pub use header::{Header, NewSession};
pub use ids::{check_session_id, new_session_id};
pub use io::Durability;
pub use lines::LinePosition;
pub use list::{
    FoundSession, ListText, SessionList, SessionSummary, find, find_by_id, is_own_file, list,
    looks_like_path, newest, read_header, summarize,
};
pub use load::{KEPT_ODDITIES, LoadReport, Oddity, OddityKind};
pub use meter::ContextMeter;
pub use new_entry::NewEntry;
pub use own_spending::own_spending;
pub use paths::{
    SessionDir, create_dirs, cwd_dir_name, network_file_system, network_warning, session_file_name,
};
pub use repair::{FileCheck, RepairResult, unreadable_lines};
pub use replace::kept_originals;
pub use spending::{SPENDING_ENTRY, Spending, spending};
pub use stats::StatsCounter;
pub use store::{FileCreation, OpenSession, Store, StoreOptions};
pub use time::{iso_timestamp, parse_timestamp};
pub use totals::SessionTotals;
pub use tree::{Label, SessionTree, UnknownEntry};
pub use tree_json::TreeJson;
pub use usage_scan::{UsagePart, UsageScan};
