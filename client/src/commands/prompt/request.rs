//! What is asked for, read and checked before anything is started.

use std::{
    env,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use super::{pick, terminal::Terminal};
use agentd_input::Words;
use agentd_protocol::command::{PromptParams, StreamingBehavior};

use crate::{
    cli::{DaemonChoice, PromptOptions},
    exit::Fault,
    input::{fault, read_files, read_piped},
};

/// A prompt, and the daemon that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The message.
    pub(crate) prompt: PromptParams,
    /// Flags for the daemon.
    pub(crate) daemon_args: Vec<String>,
    /// The folder to work in, where it is not ours.
    pub(crate) cwd: Option<PathBuf>,
    /// The folder to work in: an absolute path.
    pub(crate) folder: PathBuf,
    /// Which daemon does it.
    pub(crate) choice: DaemonChoice,
    /// Whether the session is to be gone afterwards.
    pub(crate) ephemeral: bool,
    /// Whether the message may wait for the work of someone else.
    pub(crate) follow_up: bool,
    /// The terminal that we run in.
    pub(crate) terminal: Option<Terminal>,
    /// Whether the user named a model, the demo model too.
    pub(crate) model_named: bool,
    /// Whether somebody sits at a bare terminal: who types there, and reads the answer there.
    pub(crate) at_terminal: bool,
    /// Whether events are printed as they come.
    pub(crate) json: bool,
    /// Whether somebody is there to answer questions: who types, and sees stderr.
    pub(crate) can_answer: bool,
}

/// The demo model, as `--model` takes it.
const DEMO: &str = "demo/demo";

const NO_MESSAGE: &str = "\
agentctl prompt: there is no message. Give one, name a file, or pipe something in:
  agentctl prompt \"What is in this folder?\"
  agentctl prompt \"Explain this code.\" @src/main.rs
  git diff | agentctl prompt \"Review this change.\"";

impl Request {
    /// Checks the options, and reads the files and stdin.
    ///
    /// # Errors
    /// Faults of usage: no message, a file that cannot be sent, a folder that is none.
    pub(crate) fn read(options: PromptOptions) -> Result<Self, Fault> {
        let here = env::current_dir().map_err(|error| {
            Fault::usage(format!("Error: the current folder cannot be used: {error}. Go to one that exists."))
        })?;
        let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let cwd = options.cwd.as_deref().map(|cwd| folder(&here.join(cwd))).transpose()?;
        let words = Words::with_files(&options.words, &options.literal).map_err(|error| fault(&error))?;
        let attachments = read_files(&words.files, &here, home.as_deref())?;
        let mut prompt = words.compose(&read_piped(words.name_stdin())?, attachments);
        prompt.streaming_behavior = options.follow_up.then_some(StreamingBehavior::FollowUp);
        if prompt.message.trim().is_empty() && prompt.images.is_empty() {
            return Err(Fault::usage(NO_MESSAGE));
        }
        let folder = cwd.clone().unwrap_or_else(|| here.clone());
        let mut options = options;
        if options.resume {
            options.session = Some(pick::session_of(&folder)?);
        }
        let terminal = Terminal::current();
        let mut daemon_args = daemon_args(&options, cwd.is_some().then_some(here.as_path()));
        if options.continue_last
            && options.session.is_none()
            && let Some(id) = terminal.as_ref().and_then(|terminal| terminal.last(&folder))
        {
            daemon_args.extend(["--prefer".to_owned(), id]);
        }
        Ok(Self {
            prompt,
            daemon_args,
            terminal,
            folder,
            cwd,
            choice: DaemonChoice {
                private: options.choice.private || options.record.is_some() || options.replay.is_some(),
                ..options.choice
            },
            ephemeral: options.no_session,
            follow_up: options.follow_up,
            model_named: options.model.is_some() || options.demo,
            at_terminal: io::stdin().is_terminal() && io::stdout().is_terminal(),
            json: options.json,
            can_answer: io::stdin().is_terminal() && io::stderr().is_terminal(),
        })
    }
}

fn folder(path: &Path) -> Result<PathBuf, Fault> {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(Fault::usage(format!("Error: --cwd {} is not a folder", path.display()))),
        Err(error) => Err(Fault::usage(format!("Error: --cwd {} cannot be used: {error}", path.display()))),
    }
}

/// The flags that the daemon reads. With `here`, the daemon works in another folder, and relative paths are made ours.
fn daemon_args(options: &PromptOptions, here: Option<&Path>) -> Vec<String> {
    let ours = |path: &str| match here {
        Some(here) if !path.starts_with('~') => here.join(path).display().to_string(),
        _ => path.to_owned(),
    };
    let session = |session: &str| {
        let is_path = session.contains(['/', '\\']) || session.ends_with(".jsonl");
        if is_path { ours(session) } else { session.to_owned() }
    };
    let text_or_file = |text: &str| match here {
        Some(here) if here.join(text).is_file() => ours(text),
        _ => text.to_owned(),
    };
    let mut args = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            args.extend([name.to_owned(), value]);
        }
    };
    flag("--provider", options.provider.clone());
    flag("--model", options.model.clone().or_else(|| options.demo.then(|| DEMO.to_owned())));
    flag("--api-key", options.api_key.clone());
    flag("--thinking", options.thinking.clone());
    flag("--fallback-models", options.fallback_models.clone());
    flag("--session", options.session.as_deref().map(session));
    flag("--name", options.name.clone());
    flag("--session-dir", options.session_dir.as_deref().map(ours));
    flag("--record", options.record.as_deref().map(ours));
    flag("--replay", options.replay.as_deref().map(ours));
    flag("--tools", options.tools.clone());
    flag("--ssh", options.ssh.clone());
    flag("--system-prompt", options.system_prompt.as_deref().map(text_or_file));
    for text in &options.append_system_prompt {
        flag("--append-system-prompt", Some(text_or_file(text)));
    }
    for (given, name) in [(options.continue_last, "--continue"), (options.no_session, "--no-session")] {
        if given {
            args.push(name.to_owned());
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_passed_on() {
        let options = PromptOptions {
            model: Some("a/b".into()),
            provider: Some("p".into()),
            thinking: Some("high".into()),
            continue_last: true,
            session: Some("abc".into()),
            tools: Some("read".into()),
            ssh: Some("box:src".into()),
            append_system_prompt: vec!["x".into(), "y".into()],
            ..PromptOptions::default()
        };
        let expected = "--provider p --model a/b --thinking high --session abc --tools read --ssh box:src \
                        --append-system-prompt x --append-system-prompt y --continue";
        assert_eq!(daemon_args(&options, None).join(" "), expected);
        // A text is not mistaken for a path, nor an id.
        assert_eq!(daemon_args(&options, Some(Path::new("/here"))).join(" "), expected);
    }

    #[test]
    fn the_demo_is_asked_for_by_its_name() {
        let options = PromptOptions { demo: true, ..PromptOptions::default() };
        assert_eq!(daemon_args(&options, None), ["--model", "demo/demo"]);
    }

    #[test]
    fn relative_paths_stay_ours_in_another_folder() {
        let options = PromptOptions {
            session: Some("s/x.jsonl".into()),
            session_dir: Some("~/dir".into()),
            no_session: true,
            record: Some("rec".into()),
            ..PromptOptions::default()
        };
        let args = daemon_args(&options, Some(Path::new("/here"))).join(" ");
        assert_eq!(args, "--session /here/s/x.jsonl --session-dir ~/dir --record /here/rec --no-session");
    }
}
