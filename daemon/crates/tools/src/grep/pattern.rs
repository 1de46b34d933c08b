//! The regular expression, and the engine that searches for it.

use agentd_agent::ToolError;
use agentd_safe_open::SeenFileSystems;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

/// The longest line that is searched, in bytes: 32 MiB for each thread.
const MAX_LINE_BYTES: usize = 32 << 20;

/// Compiles a pattern with ripgrep's rules.
///
/// # Errors
/// The problem, in the words of ripgrep's parser.
pub(super) fn compile(pattern: &str, ignore_case: bool, literal: bool) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .case_insensitive(ignore_case)
        .fixed_strings(literal)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| {
            // The engine wraps the pattern in a group, and its error would show that.
            let as_given = if literal { None } else { regex_syntax::parse(pattern).err() };
            ToolError(as_given.map_or_else(|| error.to_string(), |error| error.to_string()))
        })
}

/// The search state of one thread.
pub(super) struct Engine {
    pub(super) searcher: Searcher,
    /// Whether the call names the file, which is then searched even if it is not text.
    pub(super) is_named: bool,
    /// The buffer for the beginning of a file.
    pub(super) head: Vec<u8>,
    /// The file systems of earlier files.
    pub(super) file_systems: SeenFileSystems,
}

impl Engine {
    /// A named file is searched byte for byte, whatever it is; of the files below a folder, binary ones are left out.
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
