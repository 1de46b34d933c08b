//! What stands in the place of the input for a while: lists to pick from, the tree, questions of the session.

mod picker;
mod question;
mod tree;

pub(crate) use self::{
    picker::{PickItem, Picked, Picker},
    question::{QuestionAnswer, QuestionPanel},
    tree::{TreeChoice, TreePanel},
};
