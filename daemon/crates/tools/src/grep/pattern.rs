//! The regular expression and the engine that looks for it.

use agentd_agent::ToolError;
use agentd_safe_open::SeenFileSystems;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

/// The longest line that is looked at, in bytes: 32 MiB for each thread.
const MAX_LINE_BYTES: usize = 32 << 20;

/// Compiles a pattern with ripgrep's rules.
///
/// # Errors
/// What is wrong with it, in the words of ripgrep's parser.
pub(super) fn compile(pattern: &str, ignore_case: bool, literal: bool) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .case_insensitive(ignore_case)
        .fixed_strings(literal)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| {
            // The engine puts the pattern in a group first, and would show that.
            let as_given = if literal { None } else { regex_syntax::parse(pattern).err() };
            ToolError(as_given.map_or_else(|| error.to_string(), |error| error.to_string()))
        })
}

/// What one thread searches with.
pub(super) struct Engine {
    pub(super) searcher: Searcher,
    /// Whether the file was named, and is searched whatever it is.
    pub(super) is_named: bool,
    /// The beginning of a file.
    pub(super) head: Vec<u8>,
    /// Which file systems files were on.
    pub(super) file_systems: SeenFileSystems,
}

impl Engine {
    /// A file that was named is searched whatever it is, byte for byte; of files below a folder, those that are no text are left
    /// out.
    pub(super) fn new(context: usize, is_named: bool) -> Self {
        let binary = if is_named { BinaryDetection::none() } else { BinaryDetection::quit(0) };
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(context)
            .after_context(context)
            .binary_detection(binary)
            .heap_limit(Some(MAX_LINE_BYTES))
            .build();
        Self { searcher, is_named, head: Vec::new(), file_systems: SeenFileSystems::default() }
    }
}
