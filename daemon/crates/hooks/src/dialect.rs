//! The two spellings of tools: agentd's own, and the one of Claude Code, for whose hooks many scripts are written.

/// How tools and their arguments are called in what a hook is told, and in what it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    /// As models see them here: `edit`, `path`.
    Own,
    /// As in Claude Code: `Edit`, `file_path`.
    Claude,
}

/// Own names and those of Claude Code; of several for one tool, a call is shown under the first.
const NAMES: [(&str, &[&str]); 12] = [
    ("read", &["Read"]),
    ("bash", &["Bash"]),
    ("edit", &["Edit", "MultiEdit"]),
    ("write", &["Write"]),
    ("grep", &["Grep"]),
    ("find", &["Glob"]),
    ("ls", &["LS"]),
    ("todo", &["TodoWrite"]),
    ("task", &["Task"]),
    ("lsp", &["LSP"]),
    ("web_fetch", &["WebFetch"]),
    ("web_search", &["WebSearch"]),
];

/// The names of Claude Code for a tool; empty where it has none. Tools of MCP servers have the same names in both.
pub(crate) fn claude_names(tool: &str) -> &'static [&'static str] {
    NAMES.iter().find(|(own, _)| *own == tool).map_or(&[], |(_, theirs)| theirs)
}

/// All names that a matcher can have for a tool, its own first.
pub(crate) fn names(tool: &str) -> Vec<&str> {
    std::iter::once(tool).chain(claude_names(tool).iter().copied()).collect()
}

/// The own name for a name in either spelling; any other name is as it is.
pub(crate) fn own_name(name: &str) -> &str {
    NAMES.iter().find(|(_, theirs)| theirs.contains(&name)).map_or(name, |(own, _)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_lead_to_one_tool() {
        assert_eq!(names("edit"), ["edit", "Edit", "MultiEdit"]);
        assert_eq!(names("find"), ["find", "Glob"]);
        assert_eq!(names("mcp__s__t"), ["mcp__s__t"]);
        for (own, theirs) in NAMES {
            for name in theirs {
                assert_eq!(own_name(name), own);
            }
            assert_eq!(own_name(own), own);
        }
        assert_eq!(own_name("mcp__s__t"), "mcp__s__t");
    }
}
