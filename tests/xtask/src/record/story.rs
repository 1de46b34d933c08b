//! What the recording shows: a prompt that finds and mends a fault, then the list of sessions.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::outcome::{About as _, Outcome, fail};

use super::{frames::Frames, recorder::Recorder};

const QUESTION: &str = "The test fails. Why? Mend it.";

/// A program with a fault, and its test.
const PROJECT: &[(&str, &str)] = &[
    (
        "total.sh",
        "#!/bin/sh\n# Adds the prices on stdin, in cents.\ntotal=0\nwhile read -r price; do\n  total=$price\ndone\necho \"$total\"\n",
    ),
    (
        "test.sh",
        "#!/bin/sh\nsleep 1\ngot=$(printf '250\\n1050\\n' | ./total.sh)\nif [ \"$got\" = 1300 ]; then\n  echo \"1 test passed\"\nelse\n  \
         echo \"FAILED: the total of 250 and 1050 is $got, not 1300\"\n  exit 1\nfi\n",
    ),
    ("README.md", "# Prices\n\n`total.sh` adds prices, `test.sh` tests it.\n"),
];

const ANSWER: &str = "The test passes now. `total.sh` kept only the **last** price: the loop assigned it\n\
    instead of adding it.\n\n```sh\ntotal=$((total + price))\n```\n\n\
    - `250` and `1050` give `1300`, as the test demands.\n- Nothing else was changed.\n";

/// The model's side. Steps are chosen by the number of answers, so that each session begins anew.
fn script() -> Value {
    let call = |name: &str, arguments: Value| json!({"toolCall": {"name": name, "arguments": arguments}});
    let usage = |input: u32, output: u32| json!({"usage": {"input": input, "output": output}});
    let edit = json!({"path": "total.sh", "edits": [{"oldText": "  total=$price\n", "newText": "  total=$((total + price))\n"}]});
    json!({
        "tokensPerSecond": 45,
        "chunks": {"min": 1, "max": 3, "seed": 7},
        "steps": [
            {"when": {"promptContains": "What is"}, "emit": [{"text": "A script that adds prices, and its test."}, usage(812, 11)]},
            {"when": {"promptContains": "faster"}, "emit": [{"text": "It takes a millisecond; most of it is the start of the shell."}, usage(901, 15)]},
            {"when": {"answers": 0}, "emit": [{"text": "I run the test first."}, call("bash", json!({"command": "./test.sh"})), usage(1_204, 31)]},
            {"when": {"answers": 1}, "emit": [call("read", json!({"path": "total.sh"})), usage(1_310, 18)]},
            {"when": {"answers": 2}, "emit": [{"text": "The loop forgets all prices but the last."}, call("edit", edit), usage(1_422, 64)]},
            {"when": {"answers": 3}, "emit": [call("bash", json!({"command": "./test.sh"})), usage(1_530, 20)]},
            {"when": {"answers": 4}, "emit": [{"text": ANSWER}, usage(1_588, 96)]},
        ]
    })
}

fn models(script: &Path) -> Value {
    json!({"providers": {"example": {
        "api": "scripted", "baseUrl": script, "apiKey": "none",
        "models": [{"id": "example-1", "name": "Example 1", "contextWindow": 200_000,
            "cost": {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}}],
    }}})
}

/// Records the story with the programs in a folder.
///
/// # Errors
/// When a program fails.
pub(crate) fn record(programs: &Path) -> Outcome<Frames> {
    let place = tempfile::Builder::new().prefix("agentd-record-").tempdir().about("a temporary folder")?;
    let place = place.path().canonicalize().at(place.path()).map(|path| (path, place))?;
    let (place, _kept) = (place.0.as_path(), &place.1);
    let project = place.join("home/prices");
    for name in ["home", "home/prices", "agent", "tmp", "runtime"] {
        let folder = place.join(name);
        fs::create_dir(&folder).at(&folder)?;
    }
    // The socket of a daemon is in a folder that nobody else can open.
    let runtime = place.join("runtime");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).at(&runtime)?;
    for (name, content) in PROJECT {
        let file = project.join(name);
        fs::write(&file, content).at(&file)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).at(&file)?;
    }
    let script_file = place.join("script.json");
    fs::write(&script_file, script().to_string()).at(&script_file)?;
    let models_file = place.join("agent/models.json");
    fs::write(&models_file, models(&script_file).to_string()).at(&models_file)?;

    let path = |name: &str| place.join(name).to_string_lossy().into_owned();
    let search = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    let environment: Vec<(String, String)> = [
        ("HOME", path("home")),
        ("AGENTD_DIR", path("agent")),
        ("TMPDIR", path("tmp")),
        ("XDG_RUNTIME_DIR", runtime.to_string_lossy().into_owned()),
        ("PATH", search),
        ("TERM", "xterm-256color".to_owned()),
        ("COLORTERM", "truecolor".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("SHELL", "/bin/bash".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let agentctl = programs.join("agentctl").to_string_lossy().into_owned();

    // Sessions of before, for the list.
    for message in ["What is in this folder?", "Can total.sh be made faster?"] {
        prepare(&agentctl, &project, &environment, message)?;
    }
    let mut recorder = Recorder::new(project, environment, (path("home"), "/home/me".to_owned()));
    recorder.pause(Duration::from_millis(600));
    recorder.type_line(&format!("agentctl prompt \"{QUESTION}\""));
    recorder.run(&agentctl, &["prompt", QUESTION])?;
    recorder.pause(Duration::from_secs(3));
    recorder.clear();
    recorder.type_line("agentctl sessions");
    recorder.run(&agentctl, &["sessions"])?;
    recorder.pause(Duration::from_secs(4));
    Ok(recorder.finish())
}

fn prepare(agentctl: &str, project: &Path, environment: &[(String, String)], message: &str) -> Outcome<()> {
    let mut command = Command::new(agentctl);
    command.args(["prompt", message]).current_dir(project).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let output = command.output().about(agentctl)?;
    if output.status.success() {
        return Ok(());
    }
    fail(format!("agentctl prompt \"{message}\": {}", String::from_utf8_lossy(&output.stderr)))
}
