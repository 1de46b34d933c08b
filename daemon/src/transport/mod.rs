//! Ways in and out: they move lines and never look inside.

pub mod stdio;
