//! `settings.json`, of the user and of the project.

mod explain;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod intercept;
mod known;
mod layer;
mod load;
mod merge;
mod save;

pub use explain::{ExplainQuestion, UnknownSetting, explain};
pub use load::{LoadedSettings, http_idle_timeout, load, load_user};
pub use save::{SaveError, SettingChange, save};
