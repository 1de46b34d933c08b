//! `agentctl chat`, a bare `agentctl`, and `agentctl attach` on a terminal: the interactive client.

use std::{
    env,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use agentd_chat::{ChatEnd, ChatError, FirstSession};
use agentd_connect::environment;
use agentd_protocol::daemon::OpenSessionParams;

use super::{controlling_terminal::ControllingTerminal, daemon_call};
use crate::{
    cli::{ChatOptions, SESSION_FLAGS},
    exit::{Exit, Fault, conclude, print_stderr},
    render::{colour_wanted, one_line},
    rpc::CallError,
    shared_daemon::{Endpoint, client_info, launch},
};

/// Whether the program was started by its name alone, by somebody at a terminal.
pub(crate) fn is_meant_by_no_arguments() -> bool {
    env::args_os().len() == 1 && is_at_terminal() && !is_dumb()
}

/// Whether stdin and stdout are a terminal.
pub(crate) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether the terminal can only show line after line.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether the terminal is kitty or Ghostty, whose graphics protocol is spoken. Programs between us and it, such as tmux, keep it away.
fn draws_images(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is =
        |name: &str, values: &[&str]| variable(name).is_some_and(|value| values.contains(&value.as_str()));
    let is_between = ["TMUX", "STY", "ZELLIJ"].iter().any(|name| variable(name).is_some());
    let is_known = is("TERM", &["xterm-kitty", "xterm-ghostty"]) || is("TERM_PROGRAM", &["ghostty", "kitty"]);
    is_known && !is_between
}

/// Runs the interactive client on a session of its own, or on the one that the flags name.
pub(crate) fn run(options: &ChatOptions) -> Exit {
    conclude(chat(options))
}

fn chat(options: &ChatOptions) -> Result<Exit, Fault> {
    if !is_at_terminal() {
        let text =
            "agentctl chat: stdin and stdout have to be a terminal. `agentctl prompt` works in pipes, too.";
        return Err(Fault::usage(text));
    }
    if is_dumb() {
        let text = "agentctl chat: the terminal (TERM) cannot show a whole screen. `agentctl prompt` and `agentctl attach --plain ID` \
                    work line by line.";
        return Err(Fault::usage(text));
    }
    let here = env::current_dir().map_err(|error| {
        Fault::usage(format!("Error: the current folder cannot be used: {error}. Go to one that exists."))
    })?;
    let folder = options.cwd.as_ref().map_or_else(|| here.clone(), |cwd| here.join(cwd));
    if !folder.is_dir() {
        return Err(Fault::usage(format!("Error: --cwd {} is not a folder", folder.display())));
    }
    let terminal = ControllingTerminal::current();
    let first = FirstSession::Flags(session_flags(options, &here, &folder, terminal.as_ref()));
    let end = converse(
        folder.clone(),
        flags(options).into_iter().chain(SESSION_FLAGS.map(str::to_owned)).collect(),
        first,
        options.words.join(" "),
    )?;
    if let Some(terminal) = &terminal {
        terminal.remember(&folder, &end.session);
    }
    Ok(Exit::Answered)
}

/// Runs the interactive client on a session that the daemon lists.
pub(crate) fn attach(id: String, cwd: String) -> Result<Exit, Fault> {
    converse(cwd.into(), Vec::new(), FirstSession::Listed(id), String::new())?;
    Ok(Exit::Answered)
}

fn converse(
    folder: PathBuf,
    args: Vec<String>,
    first: FirstSession,
    draft: String,
) -> Result<ChatEnd, Fault> {
    let endpoint = (*Endpoint::find()?).clone();
    let options = agentd_chat::ChatOptions {
        history: endpoint.agent_dir.join("chat-commands.jsonl"),
        endpoint,
        launch: launch()?,
        client: client_info(),
        open: OpenSessionParams {
            cwd: folder.display().to_string(),
            args,
            env: Some(environment()),
            ..OpenSessionParams::default()
        },
        first,
        has_colours: colour_wanted(),
        draws_images: draws_images(|name| env::var(name).ok()),
        draft,
    };
    let end = daemon_call::block_on(async { agentd_chat::run(options).await.map_err(fault) })?;
    if end.has_messages {
        print_stderr(&format!("The session goes on: agentctl attach {}", one_line(&end.session)));
    }
    Ok(end)
}

fn fault(error: ChatError) -> Fault {
    match error {
        ChatError::Connect(error) => error.into(),
        ChatError::Call(CallError::Refused { error, code: Some(code), hint }) if code == "shutting_down" => {
            Fault { exit: Exit::Ending, ..Fault::from(CallError::Refused { error, code: Some(code), hint }) }
        }
        ChatError::Call(error) => error.into(),
        ChatError::Terminal(error) => {
            Fault::new(Exit::Failed, format!("agentctl: the terminal cannot be used: {error}"))
        }
    }
}

/// The flags of agentd that say what kind of session it is.
fn flags(options: &ChatOptions) -> Vec<String> {
    let model = options.model.clone().or_else(|| options.demo.then(|| "demo/demo".to_owned()));
    let given = [
        ("--model", &model),
        ("--thinking", &options.thinking),
        ("--tools", &options.tools),
        ("--permissions", &options.permissions),
        ("--sandbox", &options.sandbox),
        ("--undo", &options.undo),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    let more = options.append_system_prompt.iter().map(|text| ("--append-system-prompt", text.clone()));
    let extensions = options.extension.iter().map(|source| ("--extension", source.clone()));
    let alone = [
        (options.plan, "--plan-mode"),
        (options.approve, "--approve"),
        (options.no_approve, "--no-approve"),
        (options.no_mcp, "--no-mcp"),
        (options.no_extensions, "--no-extensions"),
    ];
    let alone = alone.into_iter().filter(|(given, _)| *given).map(|(_, name)| name.to_owned());
    given
        .chain(more)
        .chain(extensions)
        .flat_map(|(name, value)| [name.to_owned(), value])
        .chain(alone)
        .collect()
}

/// The flags of agentd that say which session it is.
fn session_flags(
    options: &ChatOptions,
    here: &Path,
    folder: &Path,
    terminal: Option<&ControllingTerminal>,
) -> Vec<String> {
    let mut flags = Vec::new();
    if let Some(session) = &options.session {
        let is_path = session.contains('/') || session.ends_with(".jsonl");
        let session = if is_path && !session.starts_with('~') {
            here.join(session).display().to_string()
        } else {
            session.clone()
        };
        flags.extend(["--session".to_owned(), session]);
    }
    if let Some(name) = &options.name {
        flags.extend(["--name".to_owned(), name.clone()]);
    }
    if options.continue_last {
        flags.push("--continue".to_owned());
        if let Some(id) = terminal.and_then(|terminal| terminal.last(folder)) {
            flags.extend(["--prefer".to_owned(), id]);
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_that_draw_images() {
        let draws = |set: &[(&str, &str)]| {
            draws_images(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
            })
        };
        assert!(draws(&[("TERM", "xterm-kitty")]) && draws(&[("TERM_PROGRAM", "ghostty")]));
        assert!(!draws(&[("TERM", "xterm-256color")]) && !draws(&[]));
        assert!(!draws(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x,1,0")]));
    }

    #[test]
    fn flags_are_those_of_agentd() {
        let options = ChatOptions {
            demo: true,
            tools: Some("-bash".into()),
            session: Some("a.jsonl".into()),
            name: Some("n".into()),
            append_system_prompt: vec!["x".into(), "y".into()],
            no_mcp: true,
            extension: vec!["npm:x".into()],
            no_extensions: true,
            ..ChatOptions::default()
        };
        let given = [
            "--model",
            "demo/demo",
            "--tools",
            "-bash",
            "--append-system-prompt",
            "x",
            "--append-system-prompt",
            "y",
            "--extension",
            "npm:x",
            "--no-mcp",
            "--no-extensions",
        ];
        assert_eq!(flags(&options), given);
        let folder = Path::new("/project");
        let session = ["--session", "/project/a.jsonl", "--name", "n"];
        assert_eq!(session_flags(&options, folder, folder, None), session);
        let last = ChatOptions { continue_last: true, ..ChatOptions::default() };
        assert_eq!(session_flags(&last, folder, folder, None), ["--continue"]);
    }
}
