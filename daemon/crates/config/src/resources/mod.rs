//! Files that tell agents what to do: skills, prompt templates, context files, and what replaces or extends the system
//! prompt.
//!
//! Nothing here fails because of a file: what is wrong with one is a [`Diagnostic`](agentd_protocol::resources::Diagnostic)
//! with its path and line. All of it reads files and blocks; how much is read is bounded.

mod context_files;
mod expand;
mod found;
pub mod front_matter;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod load;
mod places;
mod resource_file;
mod shell_commands;
mod skills;
mod substitute;
mod system_files;
mod templates;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use context_files::{Candidate, context_candidates};
pub use context_files::{
    ContextFile, ContextFiles, ContextPath, ContextQuery, ProjectBounds, context_files, context_paths,
};
pub use expand::{ExpandError, Expansion, TemplateCommands, expand, instructions};
pub use load::{DiscoveredResources, Resources, load_every, load_resources, load_skills};
pub use places::{
    ExtensionPlace, ExtensionResources, ListedPaths, PackageFile, PackageResources, ResourceFlags,
    ResourceLists, ResourceQuery,
};
pub use skills::Skill;
pub use substitute::{is_space, split_arguments};
pub use system_files::{PromptFile, appended_prompt_file, system_prompt_file, text_or_file};
pub use templates::PromptTemplate;
pub use walk::{FolderChild, FolderLayout, FolderWalk};
