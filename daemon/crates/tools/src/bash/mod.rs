//! The `bash` tool.

mod arguments;
mod background;
mod call;
mod features;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod intercept;
pub(crate) mod jobs;
mod movable;
mod ready;
mod report;
mod sandbox_note;
mod spec;
mod timeout;
mod tool;

pub use arguments::has_own_shell;
pub(crate) use call::run as run_command;
pub use features::{BackgroundFeature, BashFeatures, JobRecorder, JobsFeature, JobsSwitch, Recorded};
pub use intercept::{Interception, IsActive};
pub use report::{tail_details, tail_text};
pub(crate) use timeout::{BashTimeout, MAX_TIMEOUT};
pub use tool::{BashOptions, BashTool};
