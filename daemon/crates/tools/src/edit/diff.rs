//! Shows the changes of an edit: as a diff for people, and as a patch.

mod changes;
mod show;

pub(crate) use show::{Shown, show};
