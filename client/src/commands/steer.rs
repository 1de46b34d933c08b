//! `agentctl steer`: sends a message to a session at work.

use agentd_input::Attachments;
use agentd_protocol::{command::QueueParams, daemon::Role};

use super::{
    daemon_call,
    find_session::{self, SessionScope},
};
use crate::{
    cli::SteerOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    prompt_parts::{MessageWords, fault, read_piped},
    render::short_id,
    rpc::{FollowUp, Steer},
};

const NO_MESSAGE: &str = "\
agentctl steer: there is no message. Give one, or pipe it in:
  agentctl steer 0198c0de \"Leave the tests alone.\"
  agentctl steer 0198c0de --follow-up < next.txt";

pub(crate) fn run(options: &SteerOptions) -> Exit {
    conclude(send(options))
}

fn send(options: &SteerOptions) -> Result<Exit, Fault> {
    let words = MessageWords::plain(&options.words, &options.literal).map_err(|error| fault(&error))?;
    let message = words.compose(&read_piped(words.name_stdin())?, Attachments::default()).message;
    if message.trim().is_empty() {
        return Err(Fault::usage(NO_MESSAGE));
    }
    daemon_call::block_on(queue(options, message))
}

async fn queue(options: &SteerOptions, message: String) -> Result<Exit, Fault> {
    let connection = daemon_call::require(Role::Control).await?;
    let session = find_session::on(&connection.client, &options.id, SessionScope::All).await?;
    let id = short_id(&session.id);
    if !session.is_streaming {
        let text = format!(
            "Error: session {id} is not at work, so there is nothing to steer. This goes on with it:\n  \
             agentctl prompt --session {} \"...\"",
            session.id
        );
        return Err(Fault::new(Exit::Failed, text));
    }
    let params = QueueParams { message, ..QueueParams::default() };
    let client = &connection.client;
    let queued = if options.follow_up {
        client.call_in::<FollowUp>(&session.id, &params).await
    } else {
        client.call_in::<Steer>(&session.id, &params).await
    };
    queued?;
    let when = if options.follow_up { "when the run would end" } else { "before the next call of the model" };
    print_stderr(&format!(
        "{id}: queued; it is delivered {when}. `agentctl attach {id}` shows what comes of it."
    ));
    Ok(Exit::Answered)
}
