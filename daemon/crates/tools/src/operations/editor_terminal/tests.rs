use std::sync::Mutex;

use agentd_agent::Tool;
use agentd_process::{GuardCommand, Launcher};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{BashFeatures, BashOptions, BashTool, testing::call_with};

/// An editor that answers as it is told, and keeps what it was asked.
#[derive(Default)]
struct FakeEditor {
    /// `None`: never answers.
    terminal: Option<Result<String, String>>,
    exit: Option<Result<TerminalExit, String>>,
    output: Option<Result<TerminalOutput, String>>,
    kills: bool,
    asked: Mutex<Vec<String>>,
    cwd: Mutex<PathBuf>,
}

impl FakeEditor {
    fn note(&self, what: &str) {
        self.asked.lock().unwrap().push(what.to_owned());
    }

    fn answer<'a, T: Clone + Send + 'a>(
        &self,
        what: &str,
        answer: Option<Result<T, String>>,
    ) -> EditorAnswer<'a, T> {
        self.note(what);
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => pending().await,
            }
        })
    }
}

impl EditorTerminals for FakeEditor {
    fn offers_terminals(&self) -> bool {
        true
    }

    fn create<'a>(&'a self, _: &'a str, call: &'a str, command: TerminalCommand) -> EditorAnswer<'a, String> {
        *self.cwd.lock().unwrap() = command.cwd;
        self.answer(&format!("create {call}: {}", command.args.join(" ")), self.terminal.clone())
    }

    fn exit<'a>(&'a self, _: &'a str, _: &'a str) -> EditorAnswer<'a, TerminalExit> {
        self.answer("exit", self.exit.clone())
    }

    fn output<'a>(&'a self, _: &'a str, _: &'a str) -> EditorAnswer<'a, TerminalOutput> {
        self.answer("output", self.output.clone())
    }

    fn kill<'a>(&'a self, _: &'a str, _: &'a str) -> EditorAnswer<'a, ()> {
        self.answer("kill", self.kills.then_some(Ok(())))
    }

    fn release(&self, _: &str, terminal: &str) {
        self.note(&format!("release {terminal}"));
    }
}

/// A call of `bash` in the editor's terminal: the text of its result or error, and what the editor was asked.
async fn run(
    editor: FakeEditor,
    timeout: Option<f64>,
    cancel: CancellationToken,
) -> (Result<String, String>, Vec<String>) {
    let editor = Arc::new(editor);
    let folder = tempfile::tempdir().unwrap();
    // Nothing is started here: the editor does that.
    let launcher = Launcher::limited(GuardCommand::this_program(), None, 1);
    let local =
        LocalShell { group: launcher.group(), path: None, env: Arc::new([]), sandbox: None, snapshot: None };
    let tool = BashTool::new(BashOptions {
        shell: Arc::new(EditorShell::new(local, Arc::clone(&editor) as _, "s")),
        command_prefix: None,
        outputs: folder.path().into(),
        home: None,
        features: BashFeatures::default(),
        undo: None,
    });
    let mut arguments = json!({"command": "make"});
    if let Some(seconds) = timeout {
        arguments["timeout"] = seconds.into();
    }
    let tool: Arc<dyn Tool> = Arc::new(tool);
    let result = call_with(&tool, folder.path(), arguments, cancel).await;
    assert_eq!(*editor.cwd.lock().unwrap(), folder.path());
    let text = result.map(|result| result.content[0].as_text().unwrap().to_owned()).map_err(|error| error.0);
    (text, std::mem::take(&mut editor.asked.lock().unwrap()))
}

fn output(text: &str, is_cut: bool) -> Option<Result<TerminalOutput, String>> {
    Some(Ok(TerminalOutput { text: text.to_owned(), is_cut }))
}

fn exit(code: Option<u32>, signal: Option<&str>) -> Option<Result<TerminalExit, String>> {
    Some(Ok(TerminalExit { code, signal: signal.map(str::to_owned) }))
}

fn editor() -> FakeEditor {
    FakeEditor {
        terminal: Some(Ok("t1".to_owned())),
        output: output("up\n", false),
        kills: true,
        ..FakeEditor::default()
    }
}

const ALL: [&str; 4] = ["create call: -c make", "exit", "output", "release t1"];
const STOPPED: [&str; 5] = ["create call: -c make", "exit", "kill", "output", "release t1"];

#[tokio::test(start_paused = true)]
async fn the_end_of_a_command_is_that_of_its_terminal() {
    for (given, expected) in [
        (exit(Some(0), None), "up\n"),
        (exit(Some(3), None), "up\n\n\nCommand exited with code 3"),
        (exit(None, Some("SIGTERM")), "up\n\n\nCommand exited with code 143"),
        (exit(Some(1), Some("9")), "up\n\n\nCommand exited with code 137"),
        (exit(None, None), "up\n\n\nCommand exited with code -1"),
    ] {
        let (text, asked) = run(FakeEditor { exit: given, ..editor() }, None, CancellationToken::new()).await;
        assert_eq!((text.unwrap().as_str(), asked), (expected, ALL.map(str::to_owned).to_vec()));
    }
}

#[tokio::test(start_paused = true)]
async fn output_that_the_editor_did_not_keep_is_told() {
    let editor = FakeEditor { exit: exit(Some(0), None), output: output("end\n", true), ..editor() };
    let (text, _) = run(editor, None, CancellationToken::new()).await;
    let expected = "end\n\n\n[The beginning of the output is missing: the editor's terminal keeps the last 1.0MB at most.]";
    assert_eq!(text.unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_too_long_is_killed_and_its_output_told() {
    let (text, asked) = run(editor(), Some(2.0), CancellationToken::new()).await;
    assert_eq!(text.unwrap_err(), "up\n\n\nCommand timed out after 2 seconds");
    assert_eq!(asked, STOPPED);
}

#[tokio::test(start_paused = true)]
async fn an_abort_kills_and_waits_for_no_silent_editor() {
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        later.cancel();
    });
    let silent = FakeEditor { output: None, kills: false, ..editor() };
    let before = Instant::now();
    let (text, asked) = run(silent, None, cancel).await;
    let expected =
        "Command aborted\n\n[The editor did not give the output of its terminal: it does not answer.]";
    assert_eq!(text.unwrap_err(), expected);
    assert_eq!(asked, ["create call: -c make", "exit", "kill", "release t1"]);
    assert_eq!(before.elapsed(), Duration::from_secs(5) + STOP_WAIT);
}

#[tokio::test(start_paused = true)]
async fn what_the_editor_refuses_is_told() {
    let refuses = FakeEditor { terminal: Some(Err("no shell".to_owned())), ..editor() };
    let (text, asked) = run(refuses, None, CancellationToken::new()).await;
    let expected = "The command was not run: the editor gave no terminal: no shell. The user can turn the setting acp.clientTerminal off.";
    assert_eq!((text.unwrap_err().as_str(), asked), (expected, vec!["create call: -c make".to_owned()]));

    let forgets = FakeEditor { exit: Some(Err("unknown terminal".to_owned())), ..editor() };
    let (text, asked) = run(forgets, None, CancellationToken::new()).await;
    let expected = "up\n\n\nIt is not known how the command ended: the editor, in whose terminal it ran, did not say: unknown terminal.";
    assert_eq!((text.unwrap_err().as_str(), asked), (expected, ALL.map(str::to_owned).to_vec()));

    let mute = FakeEditor { exit: exit(Some(0), None), output: Some(Err("gone".to_owned())), ..editor() };
    let (text, _) = run(mute, None, CancellationToken::new()).await;
    assert_eq!(text.unwrap(), "(no output)\n\n[The editor did not give the output of its terminal: gone.]");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_releases_its_terminal() {
    let editor = Arc::new(editor());
    let launcher = Launcher::limited(GuardCommand::this_program(), None, 1);
    let local =
        LocalShell { group: launcher.group(), path: None, env: Arc::new([]), sandbox: None, snapshot: None };
    let shell = EditorShell::new(local, Arc::clone(&editor) as _, "s");
    let job = ShellJob {
        command: "make".to_owned(),
        cwd: std::env::temp_dir(),
        base: None,
        env: Vec::new(),
        timeout: None,
        cancel: CancellationToken::new(),
        streams: CommandStreams::Output,
        work: agentd_protocol::command::Work {
            kind: agentd_protocol::command::WorkKind::Tool,
            id: Some("call".into()),
            name: None,
        },
        outside_sandbox: false,
    };
    drop(shell.start(job).await.unwrap());
    assert_eq!(*editor.asked.lock().unwrap(), ["create call: -c make", "release t1"]);
}

#[test]
fn signals_have_names_and_numbers() {
    for (name, number) in
        [("SIGKILL", Some(9)), ("term", Some(15)), ("11", Some(11)), ("0", None), ("SIGWHAT", None)]
    {
        assert_eq!(signal_number(name), number, "{name}");
    }
}
