//! Tests: `[[ … ]]` and `[ … ]`.

use tree_sitter::Node;

use super::{script::Folders, walk::Walk, word::WordValue};

impl Walk<'_> {
    /// `[[ … ]]` and `[ … ]`.
    pub(super) fn test(&mut self, node: Node<'_>, folders: &Folders) {
        let text = self.text(node);
        let single = !text.starts_with("[[");
        let inner = if single {
            text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        } else {
            text.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"))
        };
        // Brackets that touch what is between them are part of a word.
        let blank = [' ', '\t', '\n'];
        if !inner.is_some_and(|inner| inner.len() > 1 && inner.starts_with(blank) && inner.ends_with(blank))
            || !self.stands_apart(node)
        {
            self.obscure("a test is not understood");
        }
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                match child.kind() {
                    "[" | "]" | "[[" | "]]" | "!" | "=" | "==" | "!=" | "regex" => {}
                    "=~" | "<" | ">" | "&&" | "||" | "(" | ")" if !single => {}
                    "unary_expression" | "binary_expression" => nodes.push(child),
                    "parenthesized_expression" if !single => nodes.push(child),
                    "extglob_pattern" if !self.text(child).contains(['$', '`']) => {}
                    // These evaluate their operands, which can hold commands.
                    "test_operator" => {
                        let evaluates = ["-v", "-R"].contains(&self.text(child))
                            || (!single
                                && ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"].contains(&self.text(child)));
                        if evaluates {
                            self.obscure("a test evaluates its operands");
                        }
                    }
                    "word"
                    | "number"
                    | "string"
                    | "raw_string"
                    | "concatenation"
                    | "simple_expansion"
                    | "expansion"
                    | "command_substitution"
                    | "ansi_c_string" => {
                        let word = self.word(child, folders);
                        if single && word.value == WordValue::Dynamic {
                            self.obscure("a test is only known when it runs");
                        }
                    }
                    _ => {
                        self.obscure("a test is not understood");
                        self.substitutions(child, folders);
                    }
                }
            }
        }
    }
}
