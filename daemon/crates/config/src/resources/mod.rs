//! Files with instructions: context files of the project, and what replaces or extends the system prompt.

mod context_files;
mod system_files;

pub use context_files::{ContextFile, ContextFiles, context_files};
pub use system_files::{PromptFile, appended_prompt_file, system_prompt_file, text_or_file};
