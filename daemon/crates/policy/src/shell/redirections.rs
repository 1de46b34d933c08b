//! The redirections of a syntax tree, here-documents among them.

use tree_sitter::Node;

use super::{
    heredoc,
    nodes::is_statement,
    script::{Access, Folders, Redirection, SimpleCommand},
    walk::Walk,
};

impl Walk<'_> {
    pub(super) fn redirect(&mut self, node: Node<'_>, folders: &Folders, command: &mut SimpleCommand) {
        match node.kind() {
            "file_redirect" => self.file_redirect(node, folders, command),
            "heredoc_redirect" => self.heredoc(node, folders, command),
            "herestring_redirect" => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    self.word(child, folders);
                }
            }
            _ => self.obscure("a redirection is not understood"),
        }
    }

    fn file_redirect(&mut self, node: Node<'_>, folders: &Folders, command: &mut SimpleCommand) {
        let (mut operator, mut targets) = ("", Vec::new());
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            self.same_line(end, child);
            end = child.end_byte();
            match child.kind() {
                "file_descriptor" => {
                    if !self.text(child).bytes().all(|byte| byte.is_ascii_digit()) {
                        self.obscure("a redirection is not understood");
                    }
                }
                _ if child.is_named() => targets.push(self.word(child, folders)),
                kind => operator = kind,
            }
        }
        let access = match operator {
            "<" => Access::Read,
            ">" | ">>" | "&>" | "&>>" | ">|" | ">&" | "<&" => Access::Write,
            // Closing needs no target: words behind it are arguments.
            ">&-" | "<&-" => return command.words.extend(targets),
            _ => return self.obscure("a redirection is not understood"),
        };
        let mut targets = targets.into_iter();
        let Some(target) = targets.next() else { return self.obscure("a redirection is not understood") };
        let is_number = target.text().is_some_and(|text| {
            text == "-" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        });
        // Bash reads what follows `>&` twice, and `>& -x` as `>&-` and the word `x`.
        let is_plain = |text: &str| {
            !text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_./-".contains(letter))
        };
        if matches!(operator, ">&" | "<&") && !is_number && !is_plain(&target.source) {
            self.obscure("a redirection is not understood");
        }
        if !(matches!(operator, ">&" | "<&") && is_number) {
            command.redirections.push(Redirection { access, target });
        }
        // The grammar counts the words behind a redirection to it.
        command.words.extend(targets);
    }

    fn heredoc(&mut self, node: Node<'_>, folders: &Folders, command: &mut SimpleCommand) {
        let (mut start, mut body, mut end, mut strips_tabs) = ("", "", "", false);
        let mut cursor = node.walk();
        let mut rest = Vec::new();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "<<" | "&&" | "||" | "|" | "|&" | "\n" => {}
                "<<-" => strips_tabs = true,
                "heredoc_start" => start = self.text(child),
                "heredoc_body" => body = self.text(child),
                "heredoc_end" => end = self.text(child),
                "file_redirect" => self.file_redirect(child, folders, command),
                kind if is_statement(kind) => rest.push(child),
                _ => self.obscure("a here-document is not understood"),
            }
        }
        match heredoc::check(start, body, end, strips_tabs) {
            None => self.obscure("a here-document is not understood"),
            Some(found) if found.is_literal || heredoc::is_plain(body) => {}
            // Expanded like a text between double quotes, but for the quotes in it.
            Some(_) if !body.contains("\\\"") => {
                let text = format!(": \"{}\"", body.replace('"', "\\\""));
                self.texts.push((text, folders.clone()));
            }
            Some(_) => self.obscure("a here-document is not understood"),
        }
        for statement in rest {
            self.statement(statement, folders.clone());
        }
    }
}
