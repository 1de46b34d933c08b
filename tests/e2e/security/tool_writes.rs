//! What says what agentd does is not the tools' to change.

use std::{fs, path::Path};

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::assert_says;

/// The tools that change files leave the agent directory alone, by whatever name.
#[test]
fn file_tools_leave_the_agent_directory_alone() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let models = home.agent_dir().join("models.json");
    let before = fs::read_to_string(&models).unwrap();
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, home.project().join(name)).unwrap();
    };
    link(&home.agent_dir(), "link");
    link(&models, "file");
    link(&home.agent_dir().join("auth.json"), "new");
    fs::hard_link(&models, home.project().join("hard")).unwrap();
    let theft = r#"{"providers": {"x": {"apiKey": "!env"}}}"#;
    let write = |path: &str| ("write", json!({"path": path, "content": theft}));
    let absolute = models.display().to_string();
    let tried = [
        write(&absolute),
        write("../agent/models.json"),
        write("link/settings.json"),
        write("link/skills/a/SKILL.md"),
        write("file"),
        write("new"),
        write("hard"),
        write("../agent/trust.json"),
        ("edit", json!({"path": "file", "edits": [{"oldText": "test-key-1234", "newText": "!env"}]})),
        ("edit", json!({"path": "hard", "edits": [{"oldText": "test-key-1234", "newText": "!env"}]})),
    ];
    let results = |settings: Value, tried: &[(&str, Value)]| {
        home.settings(&settings);
        let calls: Vec<(String, &str, Value)> = tried
            .iter()
            .enumerate()
            .map(|(index, (tool, arguments))| (format!("c{index}"), *tool, arguments.clone()))
            .collect();
        let calls: Vec<_> =
            calls.iter().map(|(id, tool, arguments)| (&**id, *tool, arguments.clone())).collect();
        server.push(Reply::stream(sse::calls(&calls)));
        server.push(Reply::stream(sse::answer("Done.")));
        let mut daemon = Daemon::start(&home, &["--no-session", "--approve", "--model", "fake/fake"]);
        let said = daemon.prompt("Write.");
        let ends = said.into_iter().filter(|line| line["type"] == "tool_execution_end");
        let mut ends: Vec<(String, bool, String)> = ends
            .map(|line| {
                let id = line["toolCallId"].as_str().unwrap().to_owned();
                (id, line["isError"] == json!(true), line["result"].to_string())
            })
            .collect();
        ends.sort();
        ends
    };
    // A project has no say, trusted or not.
    home.write(".agentd/settings.json", &json!({"agentDirWritable": ["*"]}).to_string());
    let refused = results(json!({}), &tried);
    assert_eq!(refused.len(), tried.len());
    for (id, is_error, said) in refused {
        assert!(is_error, "{id}: {said}");
        assert_says(&said, &["agentDirWritable", "the agent directory"]);
    }
    assert_eq!(fs::read_to_string(&models).unwrap(), before);
    let of_agent = |name: &str| home.agent_dir().join(name).exists();
    assert!(!of_agent("auth.json") && !of_agent("trust.json") && !of_agent("skills"));
    // The user lets some of it be written.
    let tried = [write("link/skills/a/SKILL.md"), write("link/models.json"), write("plain")];
    let done = results(json!({"agentDirWritable": ["skills/*"]}), &tried);
    assert_eq!(done.iter().map(|(_, is_error, _)| *is_error).collect::<Vec<_>>(), [false, true, false]);
    assert!(of_agent("skills/a/SKILL.md"));
    assert_eq!(fs::read_to_string(&models).unwrap(), before);
}
