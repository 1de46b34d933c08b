//! `settings.json`, of the user and of the project.

mod explain;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod intercept;
mod layer;
mod load;
mod merge;
mod permissions;
mod place;
mod reach;
mod save;
mod schema;

pub use explain::{ExplainQuestion, UnknownSetting, explain};
pub use load::{LoadedSettings, http_idle_timeout, load, load_as_given, load_user};
pub use permissions::add_permission_rule;
pub use place::place_of;
pub(crate) use reach::is_told;
pub use reach::{SettingEffect, SettingReach, reach};
pub use save::{SaveError, SettingChange, save, save_listed};
