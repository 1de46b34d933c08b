//! Everything of a session before its actor runs: settings, models, keys, the file, the tools.

mod beginning;
mod build_context;
mod error;
mod extensions;
mod initial_choice;
mod mcp_servers;
mod prepare;
mod reconfigure;
mod session_file;
mod target;
mod trust_pass;

pub(crate) use beginning::{BegunSession, begin};
pub use build_context::network;
pub(crate) use build_context::with_extensions;
pub use error::OpenError;
pub(crate) use extensions::{ExtensionsFound, find_extensions, find_extensions_again};
pub(crate) use prepare::{Preparation, PreparedSession, SessionSource, TrustSource, prepare};
pub(crate) use reconfigure::{
    ModelsChange, ModelsFile, NewModels, NewSettings, look_at_models, reconfigure, reread, with_models,
    without_extensions,
};
pub use target::locate;
pub(crate) use target::same_folder;
pub(crate) use trust_pass::AskedExtensions;
