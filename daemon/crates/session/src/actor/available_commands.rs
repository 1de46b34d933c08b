//! What a message can begin with, in the form that omp's clients know, and telling them when that changes.
//!
//! Nothing is looked at before a client has asked for the list.

use agentd_protocol::{
    event::Event,
    resources::{AvailableCommands, AvailableCommandsUpdate},
};

use super::session_actor::Actor;
use crate::reply::Reply;

impl Actor {
    /// Answers with the commands; from here on, changes of them are told.
    pub(super) async fn get_available_commands(&mut self, reply: Reply) {
        let listed = self.command_list().await;
        let commands: Option<Vec<_>> =
            listed.as_ref().ok().map(|commands| commands.iter().map(Into::into).collect());
        if let Some(commands) = &commands {
            self.commands_told = Some(commands.clone());
        }
        reply
            .result(&self.feed, listed.map(|_| AvailableCommands { commands: commands.unwrap_or_default() }));
    }

    /// Tells of commands that came or went, if a client has asked for them. To be called after a change of extensions, servers or
    /// settings. Files are read; what changes in files alone is not noticed.
    pub(super) async fn tell_commands(&mut self) {
        let Some(told) = &self.commands_told else { return };
        let commands: Vec<_> = match self.command_list().await {
            Ok(commands) => commands.iter().map(Into::into).collect(),
            Err(failure) => return tracing::warn!(error = failure.error, "the commands could not be listed"),
        };
        if commands != *told {
            self.commands_told = Some(commands.clone());
            self.publish_to_introduced(&Event::from(AvailableCommandsUpdate { commands }));
        }
    }
}
