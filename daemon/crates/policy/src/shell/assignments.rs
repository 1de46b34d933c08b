//! The assignments of a syntax tree: before commands, for themselves, and of `export`, `declare` and the like.

use tree_sitter::Node;

use super::{
    script::{Assignment, Folders, SimpleCommand},
    walk::Walk,
    word::Word,
    words::is_name,
};

impl Walk<'_> {
    /// `export`, `declare` and the like, and `unset`.
    pub(super) fn declaration(&mut self, node: Node<'_>, folders: &Folders) {
        let mut command = self.nothing(folders.clone());
        let mut cursor = node.walk();
        let mut end = node.start_byte();
        let first = node.child(0).map_or("", |first| self.text(first));
        let options: Vec<&str> = node
            .children(&mut cursor)
            .filter(|child| child.kind() == "word")
            .map(|child| self.text(child))
            .collect();
        let exported = first == "export" || options.contains(&"-x");
        for child in node.children(&mut cursor) {
            self.same_line(end, child);
            end = child.end_byte();
            match child.kind() {
                "variable_assignment" => self.assignments(child, exported, &mut command),
                "variable_name" => {
                    command.assignments.push(Assignment { name: self.text(child).to_owned(), exported });
                }
                // Of numbers (`-i`), the values are evaluated.
                "word" if matches!(self.text(child), "-a" | "-A" | "-g" | "-p" | "-r" | "-v" | "-x") => {}
                _ if child.is_named() => {
                    self.obscure("a declaration is not understood");
                    self.substitutions(child, folders);
                }
                _ => command.words.push(Word::of(child.kind())),
            }
        }
        self.push(command);
    }

    pub(super) fn assignments(&mut self, node: Node<'_>, exported: bool, command: &mut SimpleCommand) {
        let mut cursor = node.walk();
        let folders = command.folders.clone();
        let mut end = node.start_byte();
        for child in node.children(&mut cursor) {
            if node.kind() == "variable_assignment" && child.start_byte() != end {
                self.obscure("where a value begins is not certain");
            }
            end = child.end_byte();
            match child.kind() {
                "variable_assignment" => self.assignments(child, exported, command),
                "variable_name" if node.kind() == "variable_assignment" => {
                    // With another text before `=` the word is a command: `1=x`.
                    if !is_name(self.text(child)) {
                        self.obscure("what is before = is no name of a variable");
                    }
                    command.assignments.push(Assignment { name: self.text(child).to_owned(), exported });
                }
                "=" | "+=" => {}
                "array" => self.parts_of_array(child, &folders),
                "subscript" => {
                    self.obscure("an index is evaluated");
                    self.substitutions(child, &folders);
                }
                _ => {
                    self.word(child, &folders);
                }
            }
        }
    }

    fn parts_of_array(&mut self, node: Node<'_>, folders: &Folders) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.word(child, folders);
        }
    }
}
