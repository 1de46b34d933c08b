//! A running server: its process, what it can do, the texts that it has, what it says.

mod documents;
mod incoming;
mod launch;
mod message_rate;
mod running;
mod server_link;

pub(crate) use self::{
    documents::{FileText, read_text},
    launch::{LaunchPlan, start},
    running::Client,
};
