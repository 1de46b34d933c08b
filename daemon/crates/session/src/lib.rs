//! One live session: its actor, its run, its feed of events.
//!
//! [`open`] makes a session from [`SessionOptions`] and gives a [`SessionHandle`], the only way in; what the session says
//! comes out of its [`Feed`]. This crate never learns who listens, or through what.

mod abort;
mod actor;
mod child_environment;
mod choice;
mod client_tools;
mod clock;
mod compaction;
mod context;
mod event_log;
mod fallback;
mod feed;
mod handle;
mod inbox;
mod intake;
mod intent_log;
mod interner;
mod journal;
mod messages;
mod models_file;
mod open;
mod options;
mod queues;
mod recovery;
mod renewal;
mod reply;
mod requests;
mod resources;
mod run;
mod run_message;
mod run_slot;
mod stall;
mod summary;
mod survivors;
mod system_prompt;
mod tools;
mod trust;
mod ui;
mod unload;
mod user_bash;
mod watch;

pub use actor::{Opened, open, open_after, open_copy, reload};
pub use child_environment::ChildEnvironment;
pub use client_tools::{ClientCalls, ToolProvider, check_client_tools};
pub use context::{IntakeLimits, Limits, Services, ToolContext, Toolbox};
pub use event_log::{Audience, FeedItem, SubscriberId};
pub use feed::{Feed, FeedLimits, Subscriber};
pub use handle::SessionHandle;
pub use interner::Interner;
pub use messages::{Attached, BranchCopy, CopyPoint, RegisterOutcome, ReopenError};
pub use open::{OpenError, locate};
pub use options::{SessionOptions, Target, ToolSelection};
pub use reply::Reply;
pub use summary::Summary;
pub use ui::{Asker, Dialog, DialogAnswer, Notice, PresenceGuard, Ui, UiAbilities};
pub use unload::Unloaded;
pub use watch::SessionWatch;
