//! The tools of a session: which it has, which of them the model can call, and who changes that.

mod choice;
mod own;
mod session_tools;

pub(crate) use self::{
    choice::{ToolChoice, chosen_on, entry as choice_entry},
    own::OwnTools,
    session_tools::{SessionTools, named},
};
