//! Everything of a session before its actor runs: settings, models, keys, the file, the tools.

mod build_context;
mod error;
mod first;
mod network;
mod oddities;
mod origin;
mod prepare;
mod target;

pub use error::OpenError;
pub(crate) use prepare::{
    NewModels, NewSettings, PreparedSession, SessionSource, prepare, reconfigure, with_models,
};
pub use target::locate;
pub(crate) use target::same_folder;
