//! One live session: its actor, its run, its feed of events.
//!
//! [`open`] makes a session from [`SessionOptions`] and gives a [`SessionHandle`], the only way in; what the session says
//! comes out of its [`Feed`]. This crate never learns who listens, or through what.

mod abort;
mod actor;
mod artifacts;
mod attach;
mod background;
mod child_environment;
mod choice;
mod client_tools;
mod clock;
mod closing;
mod commands;
mod compaction;
mod copy;
mod crash_ledger;
mod event_log;
mod explain;
mod export;
mod fallback;
mod feed;
mod handle;
mod intake;
mod journal;
mod models;
mod open;
mod options;
mod pool;
mod queues;
mod recovery;
mod renewal;
mod reply;
mod requests;
mod resources;
mod rest;
mod run;
mod run_slot;
mod shared;
mod stall;
mod step;
mod summary;
mod system_prompt;
mod tools;
mod tree;
mod trust;
mod ui;
mod user_bash;
mod watch;

pub use attach::Attached;
pub use child_environment::ChildEnvironment;
pub use client_tools::{ClientCalls, ToolSeat, check_client_tools};
pub use copy::{Copied, CopyPoint};
pub use event_log::{Audience, Item, ReaderId};
pub use feed::{Feed, FeedLimits, Reader as FeedReader};
pub use handle::SessionHandle;
pub use open::{OpenError, Opened, adopt, locate, open, open_after, resume};
pub use options::{SessionOptions, Target, ToolSelection};
pub use pool::Pool;
pub use reply::Reply;
pub use rest::Rested;
pub use shared::{IntakeLimits, Limits, Services, ToolContext, Toolbox};
pub use summary::Summary;
pub use tools::Registered;
pub use ui::{Abilities, Answer, Asker, Dialog, Notice, Present, Ui};
pub use watch::Watch;
