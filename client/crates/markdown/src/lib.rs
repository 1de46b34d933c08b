//! Markdown that arrives in pieces, laid out in lines for a terminal.
//!
//! Pure: text in, styled lines out. [`MarkdownStream`] takes the pieces of an answer as a model writes them and tells lines that are
//! final from the unfinished end; [`render`] lays out a whole text; [`write_ansi`] turns a line into the bytes of a terminal. The
//! work per piece does not grow with the length of the text.
//!
//! The text is not trusted: no control character and no escape sequence of it reaches a line.

mod ansi;
mod block_start;
mod blocks;
mod code;
mod containers;
mod highlight;
mod html;
mod inline;

mod links;
mod stream;
mod style;
mod table;
mod text;
mod wrap;

pub use ansi::write_ansi;
pub use stream::{MarkdownStream, render};
pub use style::{Color, Line, Span, Style};
