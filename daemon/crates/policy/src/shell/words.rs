//! The words of a syntax tree, with their quotes and expansions.

use tree_sitter::Node;

use super::{
    script::Folders,
    walk::Walk,
    word::{self, Word, WordPart, WordValue},
};

impl Walk<'_> {
    /// A word, and the commands of its substitutions.
    pub(super) fn word(&mut self, node: Node<'_>, folders: &Folders) -> Word {
        let source = self.text(node);
        let mut parts = Vec::new();
        if node.kind() == "process_substitution" {
            self.substitution(node, folders);
            return Word { source: source.to_owned(), value: WordValue::Pipe };
        }
        self.parts_of_word(node, folders, &mut parts);
        if !self.stands_apart(node) {
            self.obscure("where a word ends is not certain");
        }
        // `{name}>file` sets a variable, and the number in `2>file` is no word: behind a continued line the tree takes it for one.
        let mut behind = self.source.get(node.end_byte()..).unwrap_or_default();
        while let Some(continued) = behind.strip_prefix("\\\n") {
            behind = continued;
        }
        let is_number = source.bytes().all(|byte| byte.is_ascii_digit());
        if behind.starts_with(['<', '>']) && (is_number || (source.ends_with('}') && source.len() > 2)) {
            self.obscure("a redirection is not understood");
        }
        match word::value(&parts, self.home) {
            Some(value) => Word { source: source.to_owned(), value },
            None => {
                self.obscure("a word is not understood");
                Word::dynamic(source)
            }
        }
    }

    /// The parts of a simple command are on one line, which may be continued: the tree joins some lines that are not.
    pub(super) fn same_line(&mut self, end: usize, next: Node<'_>) {
        let gap = self.source.get(end..next.start_byte()).unwrap_or_default();
        if gap.replace("\\\n", "").contains('\n') {
            self.obscure("where a command ends is not certain");
        }
    }

    /// Whether blanks or operators are around a word: the tree takes some words for two.
    pub(super) fn stands_apart(&self, node: Node<'_>) -> bool {
        let before = self.source.get(..node.start_byte()).and_then(|text| text.chars().next_back());
        let behind = self.source.get(node.end_byte()..).unwrap_or_default();
        let separates = |character: char| {
            matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`')
        };
        before.is_none_or(|before| separates(before) || before == '=')
            && (behind.is_empty() || behind.starts_with(separates) || behind.starts_with("\\\n"))
    }

    fn parts_of_word(&mut self, node: Node<'_>, folders: &Folders, parts: &mut Vec<WordPart>) {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" => {
                if text.starts_with('#') && parts.is_empty() {
                    self.obscure("a word is not understood");
                }
                parts.push(WordPart::Bare(text.to_owned()));
            }
            "raw_string" => match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
                Some(inner) if !inner.contains('\'') => parts.push(WordPart::Quoted(inner.to_owned())),
                _ => self.obscure("a word is not understood"),
            },
            "ansi_c_string" => {
                let inner = text.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\''));
                match inner.and_then(word::ansi_quoted) {
                    Some(inner) => parts.push(WordPart::Quoted(inner)),
                    None => parts.push(WordPart::UnknownQuoted),
                }
            }
            "string" => self.string(node, folders, parts),
            "simple_expansion" => {
                self.simple_expansion(node);
                // These are numbers.
                let is_one = matches!(text, "$#" | "$?" | "$$");
                parts.push(if is_one { WordPart::UnknownQuoted } else { WordPart::Unknown });
            }
            "expansion" => {
                self.expansion(node, folders);
                parts.push(WordPart::Unknown);
            }
            "arithmetic_expansion" => {
                if text.chars().any(|character| character.is_alphabetic() || "$`[_".contains(character))
                    && !is_plain_sum(text)
                {
                    self.obscure("arithmetic is not looked into");
                    self.substitutions(node, folders);
                }
                parts.push(WordPart::Unknown);
            }
            "command_substitution" => {
                self.substitution(node, folders);
                parts.push(WordPart::Unknown);
            }
            "brace_expression" => parts.push(WordPart::Unknown),
            "concatenation" => {
                let mut end = node.start_byte();
                let mut cursor = node.walk();
                for child in node.children(&mut cursor) {
                    if child.start_byte() != end {
                        self.obscure("a word is not understood");
                    }
                    end = child.end_byte();
                    self.parts_of_word(child, folders, parts);
                }
            }
            _ => {
                self.obscure("a word is not understood");
                self.substitutions(node, folders);
                parts.push(WordPart::Unknown);
            }
        }
    }

    /// A text between double quotes. What is between its expansions is taken from the source: the tree leaves blanks out.
    fn string(&mut self, node: Node<'_>, folders: &Folders, parts: &mut Vec<WordPart>) {
        let text = self.text(node);
        if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
            return self.obscure("a word is not understood");
        }
        let (mut at, end) = (node.start_byte() + 1, node.end_byte() - 1);
        let mut cursor = node.walk();
        let expansions: Vec<Node<'_>> =
            node.named_children(&mut cursor).filter(|child| child.kind() != "string_content").collect();
        for child in expansions {
            self.quoted_piece(at, child.start_byte(), parts);
            at = child.end_byte();
            let mut inner = Vec::new();
            self.parts_of_word(child, folders, &mut inner);
            // `"$@"` is any number of words, even in quotes.
            let text = self.text(child);
            let many = matches!(text, "$@" | "${@}") || text.contains("[@]");
            parts.push(if many { WordPart::Unknown } else { WordPart::UnknownQuoted });
        }
        self.quoted_piece(at, end, parts);
    }

    fn quoted_piece(&mut self, from: usize, to: usize, parts: &mut Vec<WordPart>) {
        match self.source.get(from..to).and_then(word::double_quoted) {
            Some(text) => parts.push(WordPart::Quoted(text)),
            None => {
                self.obscure("a word is not understood");
                parts.push(WordPart::Unknown);
            }
        }
    }

    fn simple_expansion(&mut self, node: Node<'_>) {
        let name = self.text(node).strip_prefix('$').unwrap_or_default();
        let is_special =
            name.len() == 1 && name.chars().all(|special| "?$!#@*-_0123456789".contains(special));
        if !is_special && !is_name(name) {
            self.obscure("an expansion is not understood");
        }
    }

    /// `${…}`: a name, and what is put in its place or cut off it.
    fn expansion(&mut self, node: Node<'_>, folders: &Folders) {
        self.substitutions(node, folders);
        let inner = self.text(node).strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or("!");
        let inner = inner.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(inner);
        let name: String =
            inner.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
        let operation = without_index(&inner[name.len()..]);
        let known = [":-", ":+", ":?", "-", "+", "?", "#", "%", "/"];
        let is_plain = operation.is_empty() || known.into_iter().any(|known| operation.starts_with(known));
        // Each substitution has to be one that the tree knows.
        let (mut nodes, mut known_substitutions) = (vec![node], 0);
        while let Some(node) = nodes.pop() {
            let is_substitution = node.kind() == "command_substitution" && self.text(node).starts_with("$(");
            known_substitutions += usize::from(is_substitution);
            let mut cursor = node.walk();
            nodes.extend(node.children(&mut cursor));
        }
        if name.is_empty()
            || !is_plain
            || operation.matches("$(").count() != known_substitutions
            || operation.contains("<(")
            || operation.contains(">(")
            // For bash the first `}` outside of quotes is the end, whatever braces the tree pairs.
            || operation.contains(['`', '[', '\'', '{', '}'])
            || operation.contains("${")
            || operation.contains("$((")
        {
            self.obscure("an expansion is not understood");
        }
    }
}

/// What follows the index of an array, where that is a number or stands for all: others are evaluated.
fn without_index(operation: &str) -> &str {
    let Some((index, rest)) = operation.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return operation;
    };
    let is_plain =
        matches!(index, "@" | "*") || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()));
    if is_plain { rest } else { operation }
}

/// Whether a sum has numbers alone.
fn is_plain_sum(text: &str) -> bool {
    let inner = text.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
    inner.is_some_and(|inner| {
        inner.chars().all(|character| character.is_ascii_digit() || " +-*/%()".contains(character))
    })
}

/// Whether a shell takes the text for the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
