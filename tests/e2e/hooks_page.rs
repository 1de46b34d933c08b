//! The examples of docs/hooks.md work as they stand there.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use agentd_e2e::{Daemon, Home, binaries};
use serde_json::{Value, json};

use crate::{
    shell_hooks::{calling, write_program},
    support::{ended, text},
};

/// The code blocks of the page in a language.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(binaries::workspace().join("docs/hooks.md")).unwrap();
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1).filter_map(|rest| rest.split_once("```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

#[test]
fn the_examples_of_the_hooks_page_work() {
    let push = json!({"command": "git push origin main"});
    let server = calling(&[
        ("bash", push),
        ("bash", json!({"command": "echo pulled"})),
        ("write", json!({"path": "Cargo.lock", "content": "x"})),
        ("write", json!({"path": "a.rs", "content": "x"})),
        ("greet", json!({"name": "Ada"})),
    ]);
    let home = Home::with_model(&server);
    let [settings, tool] = <[String; 2]>::try_from(blocks("json")).unwrap();
    let [python] = <[String; 1]>::try_from(blocks("python")).unwrap();
    let [shell] = <[String; 1]>::try_from(blocks("sh")).unwrap();
    home.write_agent("settings.json", &settings);
    write_program(&home, ".agentd/hooks/pre/write.py", &python);
    home.write_agent("tools/greet.json", &tool);
    home.write_agent("tools/greet.sh", &shell);
    fs::set_permissions(home.agent_dir().join("tools/greet.sh"), Permissions::from_mode(0o755)).unwrap();
    let mut daemon = Daemon::start(&home, &["--approve"]);
    let events = daemon.prompt("Go.");
    let results: Vec<String> = ended(&events, "toolResult").into_iter().map(text).collect();
    assert_eq!(results[0], "Blocked by a hook: Pushing is left to me.");
    assert_eq!(results[1], "pulled\n");
    assert_eq!(results[2], "Blocked by a hook: Lock files are written by their tools.");
    assert!(results[3].starts_with("Successfully wrote"), "{results:?}");
    assert_eq!(results[4], "Hello, Ada!\n");
    let found = daemon.done(json!({"type": "get_diagnostics"}));
    let kinds: Vec<&Value> = found["diagnostics"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert!(kinds.iter().all(|kind| *kind != "hook" && *kind != "tools"), "{found}");
}
