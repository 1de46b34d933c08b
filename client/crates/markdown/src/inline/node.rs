//! The parts of a text within a block.

/// A part of a text.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) content: Content<'a>,
    /// The changes of emphasis before and after it.
    pub(super) before: Emphases,
    pub(super) after: Emphases,
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(&'a str),
    /// A character that the source writes otherwise.
    Char(char),
    Code(String),
    Tag(&'a str),
    /// The end of a line of the source.
    SoftBreak,
    HardBreak,
    /// A run of marks that may emphasise: its text is what is left of them.
    Marks(Marks<'a>),
    /// The beginning of a link, or a bracket.
    Bracket {
        text: &'a str,
        target: Option<String>,
    },
    LinkEnd,
    /// An address that stands for itself.
    Address {
        text: &'a str,
        target: String,
    },
}

#[derive(Debug)]
pub(super) struct Marks<'a> {
    pub(super) mark: u8,
    pub(super) text: &'a str,
    pub(super) opens: bool,
    pub(super) closes: bool,
}

/// How many emphases begin or end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Emphases {
    pub(super) bold: i32,
    pub(super) italic: i32,
    pub(super) strikethrough: i32,
}

impl<'a> Node<'a> {
    pub(super) fn new(content: Content<'a>) -> Self {
        Self { content, before: Emphases::default(), after: Emphases::default() }
    }
}
