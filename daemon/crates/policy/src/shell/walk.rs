//! Walks a syntax tree, and collects its simple commands with the folders that they run in.

use tree_sitter::Node;

use super::{
    folders::{After, folders_after},
    nodes::{ends_with_command, has_herestring, is_reserved, is_statement},
    script::{Assignment, Folders, Script, SimpleCommand},
};

/// How deep commands may lie in one another.
const MAX_DEPTH: u32 = 100;

/// The most simple commands of a text.
const MAX_COMMANDS: usize = 500;

/// A walk through the tree of one text.
pub(super) struct Walk<'a> {
    pub(super) source: &'a str,
    pub(super) home: &'a str,
    depth: u32,
    script: &'a mut Script,
    /// Texts that are expanded in turn, and the folders that this is done in.
    pub(super) texts: Vec<(String, Folders)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(source: &'a str, home: &'a str, script: &'a mut Script) -> Self {
        Self { source, home, depth: 0, script, texts: Vec::new() }
    }

    /// Adds the commands below `root` to the script; returns the texts in it that are expanded in turn.
    pub(super) fn run(mut self, root: Node<'_>, folders: Folders) -> Vec<(String, Folders)> {
        self.sequence(root, folders);
        self.texts
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    pub(super) fn obscure(&mut self, what: &str) {
        self.script.be_obscure(what);
    }

    pub(super) fn push(&mut self, command: SimpleCommand) {
        if self.script.commands.len() >= MAX_COMMANDS {
            return self.obscure("it has too many commands");
        }
        if !command.words.is_empty() || !command.redirections.is_empty() || !command.assignments.is_empty() {
            self.script.commands.push(command);
        }
    }

    /// Statements one after the other; those before `&` change no folder of those after it.
    fn sequence(&mut self, node: Node<'_>, folders: Folders) -> After {
        let mut after = After::same(folders);
        // The next sibling is looked up in this list: asking the tree for it begins at the root each time.
        let mut cursor = node.walk();
        let mut children = node.children(&mut cursor).peekable();
        while let Some(child) = children.next() {
            if child.kind() == ";;" {
                self.obscure("its syntax is not understood");
            }
            if !child.is_named() || child.kind() == "comment" {
                continue;
            }
            let before = after.any();
            let ends = self.statement(child, before.clone());
            let in_background = children.peek().is_some_and(|next| next.kind() == "&");
            after = if in_background { After::same(before) } else { ends };
        }
        after
    }

    pub(super) fn statement(&mut self, node: Node<'_>, folders: Folders) -> After {
        self.depth += 1;
        let after = if self.depth > MAX_DEPTH {
            self.obscure("it is nested too deeply");
            After { success: Folders::Unknown, failure: Folders::Unknown }
        } else {
            self.statement_within(node, folders)
        };
        self.depth -= 1;
        after
    }

    fn statement_within(&mut self, node: Node<'_>, folders: Folders) -> After {
        match node.kind() {
            "command" => self.command(node, folders, None),
            "redirected_statement" => self.redirected(node, folders),
            "list" => self.list(node, folders),
            "pipeline" => {
                self.pipeline(node, &folders);
                After::same(folders)
            }
            "subshell" => {
                self.sequence(node, folders.clone());
                After::same(folders)
            }
            "negated_command" => {
                let After { success, failure } = self.sequence(node, folders);
                After { success: failure, failure: success }
            }
            "compound_statement" => {
                let text = self.text(node);
                if text.starts_with("((") {
                    self.obscure("arithmetic is not looked into");
                }
                // For a shell the brace is one only as a word of its own: `{}` is a command.
                if text.strip_prefix('{').is_some_and(|rest| !rest.starts_with([' ', '\t', '\n'])) {
                    self.obscure("a brace is no word of its own");
                }
                self.sequence(node, folders)
            }
            "if_statement" | "elif_clause" | "else_clause" | "do_group" => self.branches(node, folders),
            "while_statement" | "for_statement" => self.repeated(node, folders),
            "case_statement" => self.case(node, folders),
            "test_command" => {
                self.test(node, &folders);
                After::same(folders)
            }
            "variable_assignment" | "variable_assignments" => {
                let mut command = self.nothing(folders.clone());
                self.assignments(node, false, &mut command);
                self.push(command);
                After::same(folders)
            }
            "declaration_command" | "unset_command" => {
                self.declaration(node, &folders);
                After::same(folders)
            }
            "comment" => After::same(folders),
            kind => {
                let what = if kind == "function_definition" { "a function" } else { "a part of its syntax" };
                self.obscure(&format!("{what} is not looked into"));
                // Its commands are listed all the same, for the rules that refuse.
                self.parts(node, &Folders::Unknown);
                After { success: Folders::Unknown, failure: Folders::Unknown }
            }
        }
    }

    /// Every statement below, each run for itself.
    fn parts(&mut self, node: Node<'_>, folders: &Folders) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if is_statement(child.kind()) {
                self.statement(child, folders.clone());
            } else {
                self.substitutions(child, folders);
            }
        }
    }

    /// The commands of a pipeline. Each is told which ones feed it, as long as all of them are simple.
    fn pipeline(&mut self, node: Node<'_>, folders: &Folders) {
        let first = self.script.commands.len();
        let mut is_simple = true;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let before = self.script.commands.len();
            if !is_statement(child.kind()) {
                self.substitutions(child, folders);
                is_simple = false;
                continue;
            }
            self.statement(child, folders.clone());
            // Anything more than the command itself may read or write other files.
            is_simple &= child.kind() == "command" && self.script.commands.len() == before + 1;
            match self.script.commands.last_mut() {
                Some(last) if is_simple && !has_herestring(child) => last.fed_by = first..before,
                _ => is_simple = false,
            }
        }
    }

    fn list(&mut self, node: Node<'_>, folders: Folders) -> After {
        let (mut after, mut operator) = (After::same(folders), "");
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if !child.is_named() {
                operator = child.kind();
                continue;
            }
            let After { success, failure } = after;
            after = match operator {
                "&&" => {
                    let right = self.statement(child, success);
                    After { success: right.success, failure: failure.or(right.failure) }
                }
                "||" => {
                    let right = self.statement(child, failure);
                    After { success: success.or(right.success), failure: right.failure }
                }
                _ => self.statement(child, success.or(failure)),
            };
        }
        after
    }

    /// Statements of which some may not run.
    fn branches(&mut self, node: Node<'_>, folders: Folders) -> After {
        let mut reached = folders;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let after = self.statement(child, reached.clone());
            reached = reached.or(after.any());
        }
        After::same(reached)
    }

    fn repeated(&mut self, node: Node<'_>, folders: Folders) -> After {
        if node.child(0).is_none_or(|first| !matches!(first.kind(), "while" | "until" | "for")) {
            self.obscure("a part of its syntax is not looked into");
        }
        let mut reached = folders.clone();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if is_statement(child.kind()) {
                let after = self.statement(child, reached.clone());
                reached = reached.or(after.any());
            } else if child.kind() == "variable_name" {
                let mut command = self.nothing(folders.clone());
                let name = self.text(child).to_owned();
                command.assignments.push(Assignment { name, exported: false });
                self.push(command);
            } else {
                self.word(child, &folders);
            }
        }
        // A second round begins where the first has ended.
        if reached != folders && folders != Folders::Unknown {
            return self.repeated(node, Folders::Unknown);
        }
        After::same(reached)
    }

    fn case(&mut self, node: Node<'_>, folders: Folders) -> After {
        let mut reached = folders.clone();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if child.kind() != "case_item" {
                self.word(child, &folders);
                continue;
            }
            let mut items = child.walk();
            for part in child.named_children(&mut items) {
                if is_statement(part.kind()) {
                    let after = self.statement(part, reached.clone());
                    reached = reached.or(after.any());
                } else if part.kind() == "extglob_pattern" {
                    if self.text(part).contains(['$', '`', '\\', '"', '\'']) {
                        self.obscure("a pattern is not understood");
                    }
                } else {
                    self.word(part, &folders);
                }
            }
        }
        After::same(reached)
    }

    pub(super) fn nothing(&self, folders: Folders) -> SimpleCommand {
        SimpleCommand {
            assignments: Vec::new(),
            words: Vec::new(),
            redirections: Vec::new(),
            folders,
            fed_by: 0..0,
        }
    }

    /// A simple command, with the redirections around it.
    fn command(&mut self, node: Node<'_>, folders: Folders, around: Option<Node<'_>>) -> After {
        let mut command = self.nothing(folders.clone());
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            self.same_line(end, child);
            end = child.end_byte();
            match child.kind() {
                "variable_assignment" => self.assignments(child, true, &mut command),
                "command_name" => {
                    let inner = child.child(0).unwrap_or(child);
                    let word = self.word(inner, &folders);
                    if is_reserved(&word) {
                        self.obscure("a reserved word stands in the place of a command");
                    }
                    command.words.push(word);
                }
                "file_redirect" | "herestring_redirect" => self.redirect(child, &folders, &mut command),
                "<<<" => {}
                _ if child.is_named() => {
                    let word = self.word(child, &folders);
                    command.words.push(word);
                }
                _ => self.obscure("a part of its syntax is not understood"),
            }
        }
        if let Some(around) = around {
            let mut cursor = around.walk();
            for redirect in around.children_by_field_name("redirect", &mut cursor) {
                self.same_line(end, redirect);
                end = redirect.end_byte();
                self.redirect(redirect, &folders, &mut command);
            }
        }
        let after = folders_after(&command, self.home);
        self.push(command);
        after
    }

    fn redirected(&mut self, node: Node<'_>, folders: Folders) -> After {
        let body = node.child_by_field_name("body");
        if let Some(body) = body.filter(|body| body.kind() == "command") {
            return self.command(body, folders, Some(node));
        }
        let after = match body {
            Some(body) => self.statement(body, folders.clone()),
            None => After::same(folders.clone()),
        };
        let After { success, failure } = after;
        // Those of a list or a pipeline belong to its last command, which was the last to be added.
        let last = body.filter(|body| ends_with_command(*body)).and_then(|_| self.script.commands.pop());
        let mut command =
            last.unwrap_or_else(|| self.nothing(folders.or(success.clone()).or(failure.clone())));
        let (reached, words) = (command.folders.clone(), command.words.len());
        let mut cursor = node.walk();
        for redirect in node.children_by_field_name("redirect", &mut cursor) {
            self.redirect(redirect, &reached, &mut command);
        }
        if words == 0 && !command.words.is_empty() {
            self.obscure("words stand behind a redirection");
        }
        self.push(command);
        After { success, failure }
    }

    /// The commands of all substitutions in a part of the tree.
    pub(super) fn substitutions(&mut self, node: Node<'_>, folders: &Folders) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            if matches!(node.kind(), "command_substitution" | "process_substitution") {
                self.substitution(node, folders);
            } else if is_statement(node.kind()) && node.kind() != "variable_assignment" {
                self.statement(node, folders.clone());
            } else {
                let mut cursor = node.walk();
                nodes.extend(node.children(&mut cursor));
            }
        }
    }

    pub(super) fn substitution(&mut self, node: Node<'_>, folders: &Folders) {
        let text = self.text(node);
        if text.starts_with('`') && text.contains('\\') {
            self.obscure("escapes between backquotes are not looked into");
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.obscure("it is nested too deeply");
        } else if let Some(redirect) = node.child_by_field_name("redirect") {
            // `$(< file)`
            let mut command = self.nothing(folders.clone());
            self.redirect(redirect, folders, &mut command);
            self.push(command);
        } else {
            self.sequence(node, folders.clone());
        }
        self.depth -= 1;
    }
}
