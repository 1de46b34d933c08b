//! What docs/agentctl.md shows works as it stands there.

use agentd_e2e::{Home, binaries, ctl};

fn page() -> String {
    std::fs::read_to_string(binaries::workspace().join("docs/agentctl.md")).unwrap()
}

#[test]
fn every_verb_stands_in_the_table() {
    let help = ctl::run(&Home::new(), &["--help"]).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    let page = page();
    let table: String = page.lines().take_while(|line| !line.starts_with("## ")).collect();
    for verb in verbs.into_iter().filter(|verb| *verb != "help") {
        let shown = [format!("`{verb}`"), format!("`{verb} ")];
        assert!(shown.iter().any(|shown| table.contains(shown)), "{verb} is missing in docs/agentctl.md");
    }
}

#[test]
fn its_examples_run() {
    let home = Home::new();
    home.write("a.txt", "x\n");
    let page = page();
    let blocks: Vec<&str> = page
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```"))
        .map(|(block, _)| block)
        .collect();
    assert_eq!(blocks.len(), 2);
    let folder = binaries::agentctl().parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let run = |block: &str, clean_up: &str| {
        let script = format!("set -e\n{clean_up}\n{block}");
        let mut command = home.command("/bin/bash");
        let output = command.env("PATH", &path).args(["-c", &script]).output().expect("bash runs");
        assert!(output.status.success(), "{block}\n{output:?}");
    };
    // Nothing is left of the daemon, whichever line fails.
    run(blocks[0], "trap 'agentctl down --abort' EXIT");
    assert!(home.session_files().is_empty());
    assert!(home.read("talk.md").contains("What is in this folder?"));
    assert!(home.read("copy.jsonl").starts_with("{\"type\":\"session\""));
    // A conversation that there is to list.
    run("agentctl prompt --model demo/demo \"Again?\"", "");
    run(blocks[1], "");
}
