//! `settings.json`, of the user and of the project.

mod explain;
mod intercept;
mod known;
mod layer;
mod load;
mod merge;
mod save;

pub use explain::{ExplainQuestion, UnknownSetting, explain};
pub use load::{LoadedSettings, http_idle_timeout, load, load_user};
pub use save::{SaveError, SettingChange, save};
