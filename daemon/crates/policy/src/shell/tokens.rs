//! Checks that a syntax tree accounts for every byte of its text.

use tree_sitter::{Node, TreeCursor};

/// Tokens with a text of their own.
const NAMED: &[&str] = &[
    "word",
    "number",
    "string_content",
    "raw_string",
    "ansi_c_string",
    "variable_name",
    "special_variable_name",
    "file_descriptor",
    "heredoc_start",
    "heredoc_body",
    "heredoc_content",
    "heredoc_end",
    "comment",
    "test_operator",
    "extglob_pattern",
    "regex",
    // Nodes that are empty, such as `{}` of no commands.
    "string",
    "array",
];

/// Operators, brackets and reserved words.
const PLAIN: &[&str] = &[
    "\n", ";", ";;", "&", "&&", "||", "|", "|&", "(", ")", "{", "}", "!", "if", "then", "elif", "else", "fi",
    "while", "until", "do", "done", "for", "in", "case", "esac", "$(", "`", "\"", ">", ">>", "<", "&>",
    "&>>", ">&", "<&", ">|", ">&-", "<&-", "<<", "<<-", "<<<", "=", "+=", "[", "]", "[[", "]]", "$", "${",
    "<(", ">(", "$((", "))", "export", "declare", "typeset", "readonly", "local", "unset", "==", "!=", "=~",
    "-", "+", ":-", ":=", ":?", ":+", "?", "#", "##", "%", "%%", "/", "//", "*", "**", "(", "-=", "<=", ">=",
    ",", "/#", "/%", "@", "^", "^^", ",,", "function", "..",
];

/// What of the text the tree does not account for; `None` if nothing.
pub(super) fn unaccounted(root: Node<'_>, source: &str) -> Option<&'static str> {
    let mut cursor = root.walk();
    let mut end = 0;
    loop {
        let node = cursor.node();
        if node.is_missing() || node.is_error() {
            return Some("its syntax");
        }
        let is_leaf = node.child_count() == 0;
        if is_leaf {
            if let Some(problem) = leaf(node, source, end) {
                return Some(problem);
            }
            end = end.max(node.end_byte());
        }
        if !next(&mut cursor, !is_leaf) {
            break;
        }
    }
    if is_blank(source.get(end..)?) { None } else { Some("the end of its text") }
}

fn leaf(node: Node<'_>, source: &str, end: usize) -> Option<&'static str> {
    let kind = node.kind();
    let known = if node.is_named() { NAMED.contains(&kind) } else { PLAIN.contains(&kind) };
    let is_empty_text = node.start_byte() == node.end_byte() && node.parent().is_none();
    if !known && !is_empty_text {
        return Some("a part of its syntax");
    }
    // The grammar has operators that begin too early: `find . -delete<<E` has the token `-delete<<` for `<<`.
    if !node.is_named() && source.get(node.byte_range()).is_none_or(|text| text.trim() != kind.trim()) {
        return Some("an operator");
    }
    if node.start_byte() > end && !source.get(end..node.start_byte()).is_some_and(is_blank) {
        return Some("text between its words");
    }
    // The grammar takes these for one token, whatever bash expands in them.
    if matches!(kind, "regex" | "extglob_pattern") {
        let text = source.get(node.byte_range()).unwrap_or_default();
        if ["`", "$(", "${", "<(", ">("].into_iter().any(|expansion| text.contains(expansion)) {
            return Some("a pattern");
        }
    }
    if kind == "comment" {
        let text = source.get(node.byte_range()).unwrap_or_default();
        let before = source.get(..node.start_byte()).and_then(|text| text.chars().next_back());
        let begins =
            before.is_none_or(|before| matches!(before, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')'));
        if !text.starts_with('#') || text.contains('\n') || !begins {
            return Some("a comment");
        }
    }
    None
}

/// Moves to the next node in the order of the text; false at the end.
fn next(cursor: &mut TreeCursor<'_>, into: bool) -> bool {
    if into && cursor.goto_first_child() {
        return true;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return false;
        }
    }
    true
}

/// Whether a text between two tokens only separates them: blanks, ends of lines, and continued lines with a blank beside.
fn is_blank(gap: &str) -> bool {
    let plain = gap.replace("\\\n", "");
    plain.chars().all(|character| matches!(character, ' ' | '\t' | '\n'))
        && (plain.len() == gap.len() || !plain.is_empty())
}
