//! What the daemon and the program `agentd-syntax` say to each other: which languages there are, requests and answers.
//!
//! The program parses code and matches patterns in it. It is a process of its own since the grammars are many times as large as the
//! daemon, and since a parser that crashes or swells must take nothing with it. It gets texts and no paths: it reads no files.
//!
//! Both sides send JSON Lines: a [`Request`] each on its input, a [`Response`] each on its output, in any order, paired by `id`.

mod languages;

use serde::{Deserialize, Serialize};

pub use languages::{LANGUAGES, LanguageFacts, by_extension, by_name};

/// The name of the program's file, beside that of the daemon.
pub const PROGRAM: &str = "agentd-syntax";

/// The longest line in either direction, in bytes: 64 MiB. A longer one ends the connection.
pub const MAX_LINE: usize = 64 << 20;

/// The longest text that is parsed, in bytes: 4 MiB.
pub const MAX_TEXT: usize = 4 << 20;

/// The most matches that are returned for one text.
pub const MAX_MATCHES: usize = 20_000;

/// The longest pattern or rewriting, in bytes: 16 KiB.
pub const MAX_PATTERN: usize = 16 << 10;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// The language, by the name in [`LANGUAGES`].
    pub language: String,
    /// Code in that language, in which `$NAME` stands for one node and `$$$NAME` for any number of them.
    pub pattern: String,
    /// The kind of node within the pattern that is meant; absent for the whole pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// What matches are replaced by; absent where they are only found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Comes back with the answer.
    pub id: u64,
    /// What to look for.
    pub query: Query,
    /// The texts to look into; none: the query is only checked.
    pub texts: Vec<String>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// That of the request.
    pub id: u64,
    /// What came of it.
    pub answer: Answer,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The query cannot be used: a sentence.
    Refused(String),
    /// The query can be used.
    Found {
        /// Texts that every matching file contains, for leaving others out without parsing them.
        literals: Vec<String>,
        /// For each text of the request its matches, in the order of the text, or why it was not parsed.
        texts: Vec<Result<Vec<Match>, String>>,
    },
}

/// A match: bytes of the text. With a rewriting, matches do not overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What takes its place, with a rewriting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
}
