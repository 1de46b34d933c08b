//! What a shell command runs: its simple commands, their words, redirections and assignments, and the folders that they run in.
//!
//! The grammar is bash's, by `tree-sitter-bash`. That parser is lenient, so its tree is believed only where it can be checked: every
//! byte belongs to a known token, quotes and escapes are resolved here, and here-documents are compared with their delimiters. A text
//! that has anything else is *obscure*: the commands found in it are listed, but there may be others.

mod assignments;
mod conditions;
mod folders;
mod heredoc;
mod length;
mod nodes;
mod parse;
mod redirections;
mod script;
mod tokens;
mod walk;
mod word;
mod words;

pub use parse::{MAX_BYTES, parse};
pub use script::{Access, Assignment, Folders, Redirection, Script, SimpleCommand};
pub use word::{Word, WordValue};
