//! The configuration of a session: environment, directories, settings, models, instruction files.
//!
//! Everything here is synchronous and gets its inputs as arguments: an [`Environment`] and paths. Only
//! [`Environment::from_process`] looks at the process, once, from `main`. Async callers run these functions on a blocking
//! thread.
//!
//! The crate knows no credentials: the caller passes a predicate for the providers that can be used.

mod environment;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod json_comments;
mod json_edit;
mod json_file;
pub mod models;
mod models_edit;
mod paths;
mod private_file;
mod private_object;
mod real_folders;
pub mod resources;
pub mod settings;
mod ssh_hosts;
mod text_file;
mod trust;
mod unknown_keys;

pub use environment::Environment;
pub use json_file::{
    JsonDocument, JsonFileError, MAX_FILE_BYTES, parse as parse_json, read_json, read_project_json,
    without_value,
};
pub use models_edit::{ModelsChange, ModelsEditError, WriteMode, edit_models};
pub use paths::{
    AgentDir, NoAgentDir, ProjectFolders, SessionDir, expand_tilde, is_of_project, resolve_path, session_dir,
    temp_dir,
};
pub use private_file::FileLock;
pub use private_object::{MemberChange, PrivateObject, PrivateObjectError};
pub use real_folders::real_path;
pub use resources::ProjectBounds;
pub use ssh_hosts::{SshHostConfig, SshHostSources, ssh_hosts};
pub use text_file::{MAX_TEXT_BYTES, TextFileError};
use trust::project_skill_folders;
pub use trust::{
    StartingFiles, TrustBasis, TrustDecision, TrustQuestion, TrustSubject, decide_trust, note_trusted_files,
    save_trust, trust_subjects,
};
