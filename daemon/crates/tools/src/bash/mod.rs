//! The `bash` tool.

mod arguments;
mod background;
mod call;
mod features;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod intercept;
mod report;
mod sandbox_note;
mod spec;
mod timeout;
mod tool;

pub use features::{BackgroundFeature, BashFeatures};
pub use intercept::{Interception, IsActive};
pub use report::{tail_details, tail_text};
pub(crate) use timeout::MAX_TIMEOUT;
pub use tool::{BashOptions, BashTool};
