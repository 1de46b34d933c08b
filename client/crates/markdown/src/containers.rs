//! Block quotes and items of lists around a block: which a line continues, and what stands before its rows.

use crate::{
    block_start::ListMark,
    style::{Span, Style},
    text::{columns, indent, is_blank},
};

/// The deepest nesting: deeper marks are text.
const MAX_DEPTH: usize = 16;

/// What a block is in.
#[derive(Debug, Clone)]
enum Container {
    Quote,
    Item(Item),
}

#[derive(Debug, Clone)]
struct Item {
    /// The indentation of its content.
    indent: usize,
    /// What is shown before its first row.
    mark: String,
    is_shown: bool,
    /// Whether its first line has nothing but the mark, and nothing came since.
    is_empty: bool,
}

/// The list of an item that has ended, which the next one may continue.
#[derive(Debug, Clone, Copy)]
struct ListRun {
    mark: u8,
    next: Option<u32>,
}

/// The containers of the current block, the outermost first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Containers {
    stack: Vec<Container>,
    /// The lists at each depth.
    lists: Vec<Option<ListRun>>,
}

impl Containers {
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.stack.len() < MAX_DEPTH
    }

    /// How many containers a line continues, and the rest of the line.
    pub(crate) fn continued<'a>(&self, line: &'a str) -> (usize, &'a str) {
        let mut rest = line;
        for (depth, container) in self.stack.iter().enumerate() {
            match container {
                Container::Quote => match quoted(rest) {
                    Some(inner) => rest = inner,
                    None => return (depth, rest),
                },
                Container::Item(item) if is_blank(rest) => {
                    if item.is_empty {
                        return (depth, rest);
                    }
                    rest = rest.get(item.indent..).unwrap_or_default();
                }
                Container::Item(item) if indent(rest) >= item.indent => rest = &rest[item.indent..],
                Container::Item(_) => return (depth, rest),
            }
        }
        (self.stack.len(), rest)
    }

    pub(crate) fn push_quote(&mut self) {
        self.lists.truncate(self.stack.len());
        self.stack.push(Container::Quote);
    }

    /// Adds an item whose mark is indented by `indent`. Items of a list are numbered by their place, whatever their numbers say.
    pub(crate) fn push_item(&mut self, mark: ListMark, indent: usize, task: Option<bool>) {
        let depth = self.stack.len();
        let run = self.lists.get(depth).copied().flatten().filter(|run| run.mark == mark.mark);
        let number = mark.number.map(|number| run.and_then(|run| run.next).unwrap_or(number));
        self.lists.resize(depth, None);
        self.lists
            .push(Some(ListRun { mark: mark.mark, next: number.map(|number| number.saturating_add(1)) }));
        let bullet = match number {
            Some(number) => format!("{number}{} ", char::from(mark.mark)),
            None if task.is_some() => String::new(),
            None => "• ".to_owned(),
        };
        let task = match task {
            Some(true) => "[x] ",
            Some(false) => "[ ] ",
            None => "",
        };
        self.stack.push(Container::Item(Item {
            indent: indent + mark.width,
            mark: bullet + task,
            is_shown: false,
            is_empty: mark.is_empty,
        }));
    }

    /// Notes that a block that is no item begins here: the next item begins a list of its own.
    pub(crate) fn begin_block(&mut self) {
        self.lists.truncate(self.stack.len());
        if let Some(Container::Item(item)) = self.stack.last_mut() {
            item.is_empty = false;
        }
    }

    /// Whether containers deeper than `depth` have marks that no row has shown.
    pub(crate) fn has_unshown(&self, depth: usize) -> bool {
        self.stack
            .iter()
            .skip(depth)
            .any(|container| matches!(container, Container::Item(item) if !item.is_shown))
    }

    pub(crate) fn truncate(&mut self, depth: usize) {
        self.stack.truncate(depth);
        // The list at this depth may go on.
        self.lists.truncate(depth + 1);
    }

    /// The columns before rows of this many in all.
    pub(crate) fn prefix_width(&self, width: usize) -> usize {
        self.shown(width).map(columns).sum()
    }

    /// The pieces before a row. Marks are shown once.
    pub(crate) fn prefix(&mut self, width: usize) -> Vec<Span> {
        let count = self.shown(width).count();
        let mut spans = Vec::new();
        for (at, container) in self.stack.iter_mut().enumerate() {
            let is_shown_now = at < count;
            match container {
                Container::Quote if is_shown_now => spans.push(Span::new(QUOTE, Style::faint())),
                Container::Item(item) if !item.is_shown => {
                    item.is_shown = true;
                    if is_shown_now {
                        spans.push(Span::new(item.mark.clone(), Style::list_mark()));
                    }
                }
                Container::Item(item) if is_shown_now => {
                    spans.push(Span::new(" ".repeat(columns(&item.mark)), Style::default()));
                }
                _ => {}
            }
        }
        spans
    }

    /// The pieces before an empty row in the outermost `depth` containers, up to the last one that is seen.
    pub(crate) fn blank_prefix(&self, depth: usize, width: usize) -> Vec<Span> {
        let count = self.shown(width).count().min(depth);
        let quote = |container: &Container| matches!(container, Container::Quote);
        let end = self.stack[..count].iter().rposition(quote).map_or(0, |at| at + 1);
        self.stack[..end]
            .iter()
            .map(|container| match container {
                Container::Quote => Span::new(QUOTE.trim_end(), Style::faint()),
                Container::Item(item) => Span::new(" ".repeat(columns(&item.mark)), Style::default()),
            })
            .enumerate()
            .map(|(at, span)| {
                let is_inner_quote = at + 1 < end && span.text == QUOTE.trim_end();
                if is_inner_quote { Span::new(QUOTE, span.style) } else { span }
            })
            .collect()
    }

    /// The prefixes of the containers that are shown: half of the width is for the text.
    fn shown(&self, width: usize) -> impl Iterator<Item = &str> {
        let mut left = width / 2;
        self.stack
            .iter()
            .map(|container| match container {
                Container::Quote => QUOTE,
                Container::Item(item) => &item.mark,
            })
            .take_while(move |prefix| match left.checked_sub(columns(prefix)) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            })
    }
}

const QUOTE: &str = "│ ";

/// The content of a line of a block quote.
pub(crate) fn quoted(line: &str) -> Option<&str> {
    let blanks = indent(line);
    if blanks > 3 {
        return None;
    }
    let inner = line[blanks..].strip_prefix('>')?;
    Some(inner.strip_prefix(' ').unwrap_or(inner))
}
