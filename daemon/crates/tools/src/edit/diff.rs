//! Shows what an edit changed: for people, and as a patch.

mod changes;
mod show;

pub(super) use show::{Shown, show};
