//! The prompt and its options, read and checked before anything is started. With `--resume`, the user picks a session
//! of the folder.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
};

use agentd_protocol::{
    command::{PromptParams, StreamingBehavior},
    daemon::{ListSessionsParams, SessionInfo},
    package_request::names_a_path,
};
use jiff::Timestamp;

use super::output_schema::{self, OutputSchema};
use crate::{
    cli::{DaemonChoice, PromptOptions, SESSION_FLAGS},
    commands::{confirm, controlling_terminal::ControllingTerminal, daemon_call, picker, resume},
    exit::{self, Exit, Fault},
    prompt_parts::{MessageWords, fault, read_files, read_piped},
    render::{StreamStyle, ago, cut, one_line, session_title},
    rpc::ListSessions,
};

/// How many sessions `--resume` offers in a list that can be filtered.
const OFFERED: u32 = 1_000;

/// How many sessions `--resume` shows where the terminal cannot move its cursor.
const SHOWN: u32 = 20;

/// The length of a session's title, in characters.
const TITLE: usize = 60;

/// A prompt, and the options of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptRequest {
    pub(crate) prompt: PromptParams,
    /// The flags for agentd.
    pub(crate) daemon_args: Vec<String>,
    /// The folder of the session, when `--cwd` names one.
    pub(crate) cwd: Option<PathBuf>,
    /// The folder of the session, absolute.
    pub(crate) folder: PathBuf,
    /// The choice of the daemon.
    pub(crate) choice: DaemonChoice,
    /// Whether the session ends with us.
    pub(crate) ephemeral: bool,
    /// Whether the message may wait for another client's work.
    pub(crate) follow_up: bool,
    /// The terminal of this process.
    pub(crate) terminal: Option<ControllingTerminal>,
    /// Whether the user named a model, also the demo model.
    pub(crate) model_named: bool,
    /// Whether stdin and stdout are a terminal: one person types and reads the answer.
    pub(crate) at_terminal: bool,
    /// What stdout gets.
    pub(crate) stdout: StdoutContent,
    /// The schema that the answer is to fit.
    pub(crate) schema: Option<OutputSchema>,
    /// The file that the last answer is written to.
    pub(crate) answer_file: Option<PathBuf>,
    /// The abilities of the two streams.
    pub(crate) style: StreamStyle,
    /// Whether stdin and stderr are a terminal: the person can answer questions.
    pub(crate) can_answer: bool,
    /// Whether the user said if the project is trusted.
    pub(crate) trust_given: bool,
}

/// What stdout gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdoutContent {
    /// The session, its events and the result, as JSON Lines.
    Records,
    /// The text of all answers, as it comes.
    AllAnswers,
    /// The text of the last answer.
    LastAnswer,
}

/// The demo model, as `--model` takes it.
const DEMO: &str = "demo/demo";

/// The variable that names the span that the prompt belongs to, as the W3C header `traceparent` has it.
const TRACEPARENT: &str = "TRACEPARENT";

const NO_MESSAGE: &str = "\
agentctl prompt: there is no message. Give one, name a file, or pipe something in:
  agentctl prompt \"What is in this folder?\"
  agentctl prompt \"Explain this code.\" @src/main.rs
  git diff | agentctl prompt \"Review this change.\"";

impl PromptRequest {
    /// Checks the options, and reads the files and stdin.
    ///
    /// # Errors
    /// Faults of usage: no message, a file that cannot be sent, a folder that does not exist.
    pub(crate) fn read(options: PromptOptions) -> Result<Self, Fault> {
        let here = env::current_dir().map_err(|error| {
            Fault::usage(format!("Error: the current folder cannot be used: {error}. Go to one that exists."))
        })?;
        let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let cwd = options.cwd.as_deref().map(|cwd| folder(&here.join(cwd))).transpose()?;
        let answer_file = options.output.as_deref().map(|path| checked_target(path, &here)).transpose()?;
        let schema =
            options.output_schema.as_deref().map(|file| OutputSchema::read(file, &here)).transpose()?;
        let words =
            MessageWords::with_files(&options.words, &options.literal).map_err(|error| fault(&error))?;
        let attachments = read_files(&words.files, &here, home.as_deref())?;
        let mut prompt = words.compose(&read_piped(words.name_stdin())?, attachments);
        prompt.budget = options.guard_rails.budget();
        prompt.traceparent = env::var(TRACEPARENT).ok().filter(|it| !it.is_empty());
        prompt.streaming_behavior = options.follow_up.then_some(StreamingBehavior::FollowUp);
        if prompt.message.trim().is_empty() && prompt.images.is_empty() {
            return Err(Fault::usage(NO_MESSAGE));
        }
        let folder = cwd.clone().unwrap_or_else(|| here.clone());
        let mut options = options;
        if options.resume {
            options.session = Some(pick_session(&folder)?);
        }
        let terminal = ControllingTerminal::current();
        let mut daemon_args = daemon_args(&options, cwd.is_some().then_some(here.as_path()));
        // Recordings are played back by agentd itself, too, whose sessions have the tools of pi.
        if options.record.is_none() && options.replay.is_none() {
            daemon_args.extend(SESSION_FLAGS.map(str::to_owned));
        }
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
            stdout: match (options.json, options.all || io::stdout().is_terminal()) {
                (true, _) => StdoutContent::Records,
                (false, true) => StdoutContent::AllAnswers,
                (false, false) => StdoutContent::LastAnswer,
            },
            answer_file,
            schema,
            style: StreamStyle {
                show_thinking: options.show_thinking,
                ..if options.json { StreamStyle::detect() } else { StreamStyle::detect_live() }
            },
            can_answer: io::stdin().is_terminal() && io::stderr().is_terminal(),
            trust_given: options.approve || options.no_approve,
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

/// The absolute path of the file for the answer, which the work of a run should not find unusable.
fn checked_target(path: &Path, here: &Path) -> Result<PathBuf, Fault> {
    let cannot = |why: &str| Err(Fault::usage(format!("Error: --output {}: {why}.", path.display())));
    let whole = here.join(path);
    match whole.parent().map(Path::metadata) {
        _ if whole.is_dir() => cannot("it is a folder"),
        Some(Ok(folder)) if folder.is_dir() => Ok(whole),
        Some(Ok(_)) => cannot("what it is in is no folder"),
        Some(Err(error)) => cannot(&format!("the folder cannot be used: {error}")),
        None => cannot("it is no name of a file"),
    }
}

/// The flags for agentd. With `here`, the session works in another folder, and relative paths are made absolute.
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
    // A list of tools would leave out the one for the answer.
    let is_list = |tools: &String| !tools.trim_start().starts_with(['+', '-']);
    flag(
        "--tools",
        options.tools.clone().map(|tools| match options.output_schema {
            Some(_) if is_list(&tools) => format!("{tools},{}", output_schema::TOOL),
            _ => tools,
        }),
    );
    flag("--permissions", options.guard_rails.permissions.clone());
    flag("--permission-rules", options.guard_rails.permission_rules.as_deref().map(ours));
    flag("--ssh", options.ssh.clone());
    flag("--sandbox", options.guard_rails.sandbox.clone());
    flag("--network", options.guard_rails.network.clone());
    for folder in &options.guard_rails.writable_root {
        flag("--writable-root", Some(ours(folder)));
    }
    flag("--undo", options.guard_rails.undo.clone());
    flag("--system-prompt", options.system_prompt.as_deref().map(text_or_file));
    for text in &options.append_system_prompt {
        flag("--append-system-prompt", Some(text_or_file(text)));
    }
    for source in &options.extension {
        let is_path = names_a_path(source);
        flag("--extension", Some(if is_path { ours(source) } else { source.clone() }));
    }
    let alone = [
        (options.continue_last, "--continue"),
        (options.no_session, "--no-session"),
        (options.plan, "--plan-mode"),
        (options.approve, "--approve"),
        (options.no_approve, "--no-approve"),
        (options.no_mcp, "--no-mcp"),
        (options.no_extensions, "--no-extensions"),
    ];
    for (given, name) in alone {
        if given {
            args.push(name.to_owned());
        }
    }
    args
}

/// Asks which session to go on with; gives its id.
///
/// # Errors
/// When nobody can be asked, when there is no session, and when none is picked.
fn pick_session(folder: &Path) -> Result<String, Fault> {
    if !confirm::possible() {
        let text = "agentctl prompt: --resume asks which session to go on with, and nobody is at the terminal to answer. \
                    --session ID names one (`agentctl sessions --here` lists them), --continue takes the last.";
        return Err(Fault::usage(text));
    }
    let cwd = Some(folder.display().to_string());
    let limit = Some(if picker::possible() { OFFERED } else { SHOWN });
    let params = ListSessionsParams { cwd, limit, ..ListSessionsParams::default() };
    let sessions = daemon_call::any::<ListSessions>(&params)?.sessions;
    if sessions.is_empty() {
        let text = format!("agentctl prompt: {} has no sessions to go on with.", folder.display());
        return Err(Fault::new(Exit::Failed, text));
    }
    let none = || Fault::new(Exit::Failed, "agentctl prompt: no session was picked.");
    if picker::possible() {
        let picked = picker::pick(resume::items(&sessions, Timestamp::now()))?;
        return picked.map(|at| sessions[at].id.clone()).ok_or_else(none);
    }
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot ask: {error}"));
    let mut stderr = exit::stderr();
    stderr.write_all(menu(&sessions, Timestamp::now()).as_bytes()).map_err(broken)?;
    loop {
        // In one write, so that keys that the terminal echoes meanwhile do not stand in the middle of the question.
        let question = format!("Which one (1-{}, Enter for none)? ", sessions.len());
        stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush()).map_err(broken)?;
        let mut answer = String::new();
        let count = io::stdin().lock().read_line(&mut answer).map_err(broken)?;
        match menu_answer(&answer, sessions.len()) {
            MenuAnswer::One(at) => return Ok(sessions[at].id.clone()),
            MenuAnswer::Nothing => return Err(none()),
            MenuAnswer::Unclear if count == 0 => return Err(none()),
            MenuAnswer::Unclear => {}
        }
    }
}

/// The meaning of a typed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MenuAnswer {
    /// The session at that index.
    One(usize),
    Nothing,
    /// The question is to be repeated.
    Unclear,
}

fn menu_answer(answer: &str, count: usize) -> MenuAnswer {
    match answer.trim() {
        "" => MenuAnswer::Nothing,
        answer => match answer.parse::<usize>() {
            Ok(number) if (1..=count).contains(&number) => MenuAnswer::One(number - 1),
            _ => MenuAnswer::Unclear,
        },
    }
}

fn menu(sessions: &[SessionInfo], now: Timestamp) -> String {
    let line = |(at, session): (usize, &SessionInfo)| {
        let title = cut(&one_line(&session_title(session)), TITLE);
        format!("{:>3}  {:>4}  {title}\n", at + 1, ago(&session.modified, now))
    };
    sessions.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::example_session as example;

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
        // Neither a text nor an id is mistaken for a path.
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

    #[test]
    fn numbers_pick() {
        for (answer, means) in [
            ("2\n", MenuAnswer::One(1)),
            (" 1 ", MenuAnswer::One(0)),
            ("\n", MenuAnswer::Nothing),
            ("0\n", MenuAnswer::Unclear),
            ("4\n", MenuAnswer::Unclear),
            ("x\n", MenuAnswer::Unclear),
        ] {
            assert_eq!(menu_answer(answer, 3), means, "{answer:?}");
        }
    }

    #[test]
    fn the_menu_counts_and_steers_no_terminal() {
        let mut other = example("b");
        other.first_message = "Red \u{1b}[31m".into();
        let text = menu(&[example("a"), other], "2026-11-21T14:09:00Z".parse().unwrap());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  1    5m  ") && lines[0].ends_with("What is this?"), "{text}");
        assert!(lines[1].starts_with("  2    5m  ") && !text.contains('\u{1b}'), "{text}");
    }
}
