//! What nodes of a syntax tree are.

use tree_sitter::Node;

use super::word::Word;

/// Words that are no commands where a command is expected, when they are not quoted.
pub(super) fn is_reserved(word: &Word) -> bool {
    const RESERVED: [&str; 20] = [
        "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "in", "case", "esac",
        "select", "function", "{", "}", "!", "[[", "]]",
    ];
    RESERVED.contains(&word.source.as_str())
        || (word.source.contains('=') && word.text() == Some(&word.source))
}

/// Whether a simple command has a here-string.
pub(super) fn has_herestring(command: Node<'_>) -> bool {
    let mut cursor = command.walk();
    command.named_children(&mut cursor).any(|child| child.kind() == "herestring_redirect")
}

/// Whether a list or a pipeline ends with a simple command.
pub(super) fn ends_with_command(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    let last = node.named_children(&mut cursor).last();
    matches!(node.kind(), "list" | "pipeline") && last.is_some_and(|last| last.kind() == "command")
}

pub(super) fn is_statement(kind: &str) -> bool {
    matches!(
        kind,
        "command"
            | "redirected_statement"
            | "list"
            | "pipeline"
            | "subshell"
            | "negated_command"
            | "compound_statement"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "do_group"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "test_command"
            | "variable_assignment"
            | "variable_assignments"
            | "declaration_command"
            | "unset_command"
            | "function_definition"
    )
}
