//! The conversation on the screen: its entries, where the screen stands in them, and how they are laid out.

mod convert;
mod entry;
mod image;
mod layout;
mod markdown;
mod scroll;
mod store;

pub(crate) use self::{
    convert::{ended_tool, entries_of, images},
    entry::{Entry, NoticeLevel, ToolCall, ToolState},
    image::CellSize,
    store::Transcript,
};
