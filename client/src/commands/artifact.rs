//! `agentctl artifact`: long outputs of a session.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal},
    path::PathBuf,
};

use agentd_protocol::{command::NoParams, daemon::Role, storage::GetArtifactParams};

use super::{daemon_call, last_session};
use crate::{
    cli::ArtifactOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    private_daemon::StartOptions,
    render::steers,
    rpc::{Call, CallError, Client, GetArtifact, ListArtifacts},
};

pub(crate) fn run(options: &ArtifactOptions) -> Exit {
    conclude(show(options))
}

fn show(options: &ArtifactOptions) -> Result<Exit, Fault> {
    let session = last_session::given_or_last(options.session.as_deref())?;
    let of_daemon = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(Role::Observe).await? else { return Ok(None) };
        if !session.live {
            return Ok(None);
        }
        let source = ArtifactSource { client: &connection.client, session: Some(&session.id) };
        answer(options, &source).await.map(Some).map_err(PrintError::into_fault)
    })?;
    if let Some(exit) = of_daemon {
        return Ok(exit);
    }
    let Some(path) = &session.path else {
        let text = format!("Error: session {} has no file, so it keeps no outputs.", session.id);
        return Err(Fault::new(Exit::Failed, text));
    };
    let start = StartOptions {
        args: vec!["--session".to_owned(), path.clone()],
        cwd: Some(PathBuf::from(&session.cwd)).filter(|cwd| cwd.is_dir()),
    };
    let mut written = Ok(Exit::Answered);
    daemon_call::with_private(start, async |client: &Client| {
        match answer(options, &ArtifactSource { client, session: None }).await {
            Ok(exit) => written = Ok(exit),
            Err(PrintError::Output(fault)) => written = Err(fault),
            Err(PrintError::Call(error)) => return Err(error),
        }
        Ok(())
    })?;
    written
}

/// A connection, and the session to ask about; `None` for the only session of an agentd of our own.
struct ArtifactSource<'a> {
    client: &'a Client,
    session: Option<&'a str>,
}

impl ArtifactSource<'_> {
    async fn call<C: Call>(&self, params: &C::Params) -> Result<C::Data, PrintError> {
        let answer = match self.session {
            Some(session) => self.client.call_in::<C>(session, params).await,
            None => self.client.call::<C>(params).await,
        };
        answer.map_err(PrintError::Call)
    }
}

/// The reason why printing ended.
enum PrintError {
    Call(CallError),
    Output(Fault),
}

impl PrintError {
    fn into_fault(self) -> Fault {
        match self {
            Self::Call(error) => Fault::from(&error),
            Self::Output(fault) => fault,
        }
    }
}

async fn answer(options: &ArtifactOptions, source: &ArtifactSource<'_>) -> Result<Exit, PrintError> {
    match &options.id {
        Some(id) => print(source, id).await,
        None => list(source).await,
    }
}

async fn list(source: &ArtifactSource<'_>) -> Result<Exit, PrintError> {
    let list = source.call::<ListArtifacts>(&NoParams {}).await?;
    if list.artifacts.is_empty() {
        print_stderr("The session keeps no outputs.");
        return Ok(Exit::Answered);
    }
    let lines = list.artifacts.iter().fold(String::new(), |mut lines, artifact| {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{}  {:>12}  {}", artifact.artifact_id, artifact.total_bytes, artifact.path);
        lines
    });
    output::print(&lines).map_err(PrintError::Output)
}

/// Prints an output part by part, so that memory does not grow with its length.
async fn print(source: &ArtifactSource<'_>, id: &str) -> Result<Exit, PrintError> {
    let is_terminal = io::stdout().is_terminal();
    let mut params = GetArtifactParams { artifact_id: id.to_owned(), ..GetArtifactParams::default() };
    loop {
        let part = source.call::<GetArtifact>(&params).await?;
        let text = if is_terminal { harmless(&part.data) } else { part.data };
        let exit = output::print(&text).map_err(PrintError::Output)?;
        if part.eof || exit != Exit::Answered {
            return Ok(exit);
        }
        params.offset = Some(part.next_offset);
    }
}

/// The text with characters that steer a terminal as `\u001b`.
fn harmless(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if steers(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(harmless("é\tb\n\u{1b}[31mred"), "é\tb\n\\u001b[31mred");
    }
}
