//! Documents that run: the examples of README.md and docs/agentctl.md work unchanged, and each promise of
//! docs/reliability.md has its test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_e2e::{Daemon, Home, MockServer, Reply, binaries, ctl, sse};
use agentd_protocol::prompt_records::PromptRecord;
use serde_json::{Value, json};

fn readme() -> String {
    std::fs::read_to_string(binaries::workspace().join("README.md")).unwrap()
}

fn blocks(language: &str) -> Vec<String> {
    let text = readme();
    let fence = format!("```{language}\n");
    text.split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```"))
        .map(|(block, _)| block.to_owned())
        .collect()
}

#[test]
fn the_example_of_a_models_file_configures_a_model() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::new();
    let example = &blocks("json")[0];
    home.write_agent("models.json", &example.replace("http://127.0.0.1:11434/v1", &server.base_url()));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(
        (&state["model"]["provider"], &state["model"]["id"]),
        (&json!("local"), &json!("qwen2.5-coder"))
    );
    daemon.prompt("Hi");
}

#[test]
fn the_example_of_a_program_runs() {
    let home = Home::new();
    home.write("a.txt", "x\n");
    let blocks = blocks("sh");
    let example = blocks.iter().find(|block| block.contains("--stdio")).expect("an example with agentd");
    let script = example.replace("./target/release/agentd", &binaries::agentd().display().to_string());
    let output = home.command("/bin/sh").args(["-e", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.last().unwrap()["type"], "agent_settled");
}

/// A reader who follows the page from the top has no configuration and may have no terminal.
#[test]
fn the_first_command_of_the_readme_answers() {
    let home = Home::new();
    home.write("a.txt", "x\n");
    let blocks = blocks("sh");
    let (build, command) = blocks[0].split_once(" && ").expect("a build and a command");
    assert_eq!(build, "cargo build --release");
    let script = command.replace("./target/release/agentctl", &binaries::agentctl().display().to_string());
    assert_ne!(script, command);
    let output = home.command("/bin/sh").args(["-e", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("What is in this folder?"), "{output:?}");
}

#[test]
fn every_flag_of_the_readme_exists() {
    let help = ctl::run(&Home::new(), &["prompt", "--help"]).stdout;
    for block in blocks("sh") {
        for line in block.lines().filter(|line| line.contains("agentctl prompt")) {
            let words = line.split_whitespace().skip_while(|word| *word != "prompt");
            for flag in words.filter(|word| word.starts_with("--")) {
                assert!(help.contains(flag), "{flag} is not in --help");
            }
        }
    }
}

#[test]
fn the_exit_codes_of_the_page_are_those_of_the_help() {
    let help = ctl::run(&Home::new(), &["prompt", "--help"]).stdout;
    let text = page("prompt.md");
    let table = text.lines().skip_while(|line| !line.starts_with("| code")).skip(2);
    let rows: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 10);
    for row in rows {
        let codes = row.split('|').nth(1).unwrap().trim();
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(&format!("{codes} "))),
            "{codes} in\n{help}"
        );
    }
}

#[test]
fn every_file_that_the_readme_links_to_is_there() {
    let text = readme();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let links: Vec<&str> = links.filter(|link| !link.contains("://")).collect();
    assert!(links.len() > 5);
    for link in links {
        assert!(binaries::workspace().join(link).exists(), "{link}");
    }
}

/// The commands of pi's protocol.
const COMMANDS_OF_PI: &str = "abort abort_bash abort_retry bash clear_queue clone compact cycle_model cycle_thinking_level export_html follow_up \
    fork get_available_models get_available_thinking_levels get_commands get_entries get_fork_messages get_last_assistant_text \
    get_messages get_session_stats get_state get_tree new_session prompt set_auto_compaction set_auto_retry set_follow_up_mode \
    set_model set_session_name set_steering_mode set_thinking_level steer switch_session";

/// README.md says that every command of pi is implemented.
#[test]
fn every_command_of_pi_is_there() {
    assert!(readme().contains("All commands of pi are implemented"));
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    for name in COMMANDS_OF_PI.split_whitespace() {
        // Most lack arguments; the test only checks that each command is known.
        let answer = daemon.call(json!({"type": name}));
        assert_ne!(answer["code"], "unknown_command", "{answer}");
    }
    assert_eq!(daemon.refused(json!({"type": "export_pdf"}))["code"], "unknown_command");
}

fn page(name: &str) -> String {
    std::fs::read_to_string(binaries::workspace().join("docs").join(name)).unwrap()
}

#[test]
fn every_verb_stands_in_the_table_of_the_agentctl_page() {
    let help = ctl::run(&Home::new(), &["--help"]).stdout;
    let groups = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let groups = groups.take_while(|line| *line != "Options:");
    // A verb stands after two blanks, with its other names; the end of a long text stands further to the right.
    let names = groups.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> =
        names.flat_map(|line| line[2..].split("  ").next().unwrap_or_default().split(", ")).collect();
    assert!(verbs.len() > 30 && verbs.contains(&"prompt") && verbs.contains(&"ls"), "{verbs:?}");
    let page = page("agentctl.md");
    let table: String = page.lines().take_while(|line| !line.starts_with("## ")).collect();
    for verb in verbs {
        let shown = [format!("`{verb}`"), format!("`{verb} ")];
        assert!(shown.iter().any(|shown| table.contains(shown)), "{verb} is missing in docs/agentctl.md");
    }
}

/// The commands of a page, block by block.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    blocks.map(|(block, _)| block).collect()
}

/// Runs commands of a page in a shell that finds our programs.
fn run_examples(home: &Home, block: &str, clean_up: &str) -> String {
    let folder = binaries::agentctl().parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let script = format!("set -e\n{clean_up}\n{block}");
    let mut command = home.command("/bin/bash");
    let output = command.env("PATH", &path).args(["-c", &script]).output().expect("bash runs");
    assert!(output.status.success(), "{block}\n{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_examples_of_the_agentctl_page_run() {
    let home = Home::new();
    home.write("a.txt", "x\n");
    let page = page("agentctl.md");
    let blocks = examples(&page);
    assert_eq!(blocks.len(), 2);
    // The trap stops the daemon whichever line fails.
    run_examples(&home, blocks[0], "trap 'agentctl down --abort' EXIT");
    assert!(home.session_files().is_empty());
    assert!(home.read("talk.md").contains("What is in this folder?"));
    assert!(home.read("copy.jsonl").starts_with("{\"type\":\"session\""));
    // `sessions` needs a conversation to list.
    run_examples(&home, "agentctl prompt --model demo/demo \"Again?\"", "");
    run_examples(&home, blocks[1], "");
}

#[test]
fn the_examples_of_the_prompt_page_run() {
    let home = Home::new();
    home.write("a.txt", "x\n");
    let page = page("prompt.md");
    let [block] = examples(&page)[..] else { panic!("one block") };
    let stdout = run_examples(&home, block, "");
    assert!(home.read("answer.md").contains("What is in this folder?"));
    let last: PromptRecord = serde_json::from_str(stdout.lines().last().unwrap()).expect("a record");
    assert!(matches!(last, PromptRecord::Result(_)), "{stdout}");
}

fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            found.push((path, text));
        }
    }
}

#[test]
fn every_promise_has_its_test() {
    let root = binaries::workspace();
    let page = fs::read_to_string(root.join("docs/reliability.md")).expect("the page");
    let mut found = Vec::new();
    for folder in ["client", "daemon", "protocol", "tests"] {
        sources(&root.join(folder), &mut found);
    }
    let words: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let named: Vec<(&str, &str)> = words.iter().filter_map(|word| word.split_once(".rs::")).collect();
    assert!(named.len() > 10, "the page names its tests as `file.rs::test`: {named:?}");
    for (file, test) in named {
        let end = format!("/{file}.rs");
        let is_there = found.iter().any(|(path, text)| {
            path.to_string_lossy().ends_with(&end) && text.contains(&format!("fn {test}("))
        });
        assert!(is_there, "docs/reliability.md names {file}.rs::{test}, which is not there");
    }
    // Each row of a table of promises ends with its test.
    let mut in_promises = false;
    for line in page.lines() {
        if let Some(row) = line.strip_prefix("| ") {
            let last = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
            in_promises |= last == "test";
            assert!(
                !in_promises || last == "test" || last.starts_with("---") || last.contains('`'),
                "a promise without its test: {line}"
            );
        } else {
            in_promises = false;
        }
    }
}
