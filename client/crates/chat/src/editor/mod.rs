//! The text that is being typed: a buffer with a cursor, undo, a kill ring, and pastes that stand as tokens.

mod buffer;
mod edits;
mod moves;
mod pastes;

pub(crate) use self::{buffer::Editor, edits::Edit, moves::Move};
