//! `agentctl steer`: sends a message to a session at work.

use agentd_input::Attachments;
use agentd_protocol::{command::QueueParams, daemon::Role};

use super::{
    daemon_call,
    find_session::{self, SessionScope},
    only_at_work,
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
  agentctl steer \"Leave the tests alone.\"
  agentctl steer 0198c0de \"Leave the tests alone.\"
  agentctl steer 0198c0de --follow-up < next.txt";

pub(crate) fn run(options: &SteerOptions) -> Exit {
    conclude(send(options))
}

fn send(options: &SteerOptions) -> Result<Exit, Fault> {
    let (given, words) = split(&options.words);
    if given.is_some_and(|id| id.trim().is_empty()) {
        return Err(Fault::usage(
            "agentctl steer: the ID is empty (a variable that is not set?): give one, or only the message.",
        ));
    }
    let words = MessageWords::plain(words, &options.literal).map_err(|error| fault(&error))?;
    let message = words.compose(&read_piped(words.name_stdin())?, Attachments::default()).message;
    if message.trim().is_empty() {
        return Err(Fault::usage(NO_MESSAGE));
    }
    daemon_call::block_on(queue(options, given, message))
}

/// The id, if the words begin with one, and the words of the message. A single word that can be no id is the message.
fn split(words: &[String]) -> (Option<&str>, &[String]) {
    match words {
        [] => (None, words),
        [only] if only == "-" || only.contains(char::is_whitespace) => (None, words),
        [id, message @ ..] => (Some(id), message),
    }
}

async fn queue(options: &SteerOptions, given: Option<&str>, message: String) -> Result<Exit, Fault> {
    let connection = daemon_call::require(Role::Control).await?;
    let session = match given {
        Some(id) => find_session::on(&connection.client, id, SessionScope::All).await?,
        None => only_at_work::only(&connection.client).await?.ok_or_else(|| {
            let text = "Error: no session is at work, so there is nothing to steer. This goes on with the last one here:\n  \
                        agentctl prompt -c \"...\"";
            Fault::new(Exit::Failed, text)
        })?,
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_an_id_is_one() {
        for (words, id, rest) in [
            (&["0198", "Stop."][..], Some("0198"), &["Stop."][..]),
            (&["0198"], Some("0198"), &[]),
            (&["Leave the tests."], None, &["Leave the tests."]),
            (&["Leave", "the tests."], Some("Leave"), &["the tests."]),
            (&["-"], None, &["-"]),
            (&[], None, &[]),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (given, message) = split(&words);
            assert_eq!(
                (given, message),
                (id, rest.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().as_slice()),
                "{words:?}"
            );
        }
    }
}
