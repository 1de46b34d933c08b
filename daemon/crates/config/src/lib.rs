//! What configures a session: environment, directories, settings, models, instruction files.
//!
//! Everything here is synchronous and reads only what it is told to: an [`Environment`] and paths come in as arguments.
//! Only [`Environment::from_process`] looks at the process, once, from `main`. Callers in async code run these functions
//! on a blocking thread.
//!
//! Nothing here knows credentials: which providers can be used is a predicate that the caller passes in.

mod environment;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
mod json_comments;
mod json_edit;
mod json_file;
pub mod models;
mod models_edit;
mod neighbour_lock;
mod paths;
mod private_file;
mod private_object;
pub mod resources;
pub mod settings;
mod text_file;
mod trust;
mod unknown_keys;

pub use environment::Environment;
pub use json_file::{
    JsonDocument, JsonFileError, MAX_FILE_BYTES, read_json, read_project_json, without_value,
};
pub use models_edit::{ModelsChange, ModelsEditError, WriteMode, edit_models};
pub use paths::{
    AgentDir, NoAgentDir, ProjectFolders, SessionDir, expand_tilde, is_of_project, resolve_path, session_dir,
    temp_dir,
};
pub use private_object::{MemberChange, PrivateObject, PrivateObjectError};
pub use text_file::{MAX_TEXT_BYTES, TextFileError};
use trust::project_skill_folders;
pub use trust::{
    StartingFiles, TrustBasis, TrustDecision, TrustQuestion, TrustSubject, decide_trust, note_trusted_files,
    save_trust, trust_subjects,
};
