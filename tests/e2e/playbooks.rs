//! The pages `docs/adding-a-*.md` name the places that exist, and all of them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use agentd_e2e::binaries::workspace;

/// A step of a page: a file or a folder, and what has to stand in it.
#[derive(Debug)]
struct Step {
    path: String,
    words: Vec<String>,
    /// Whether it is one of the numbered ones, which every change of the kind goes through.
    always: bool,
}

/// The items of a page's lists that begin with a link to a file.
fn steps(page: &str) -> Vec<Step> {
    let mut items: Vec<(bool, String)> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        let numbered = line.split_once(". ").filter(|(number, _)| number.parse::<u32>().is_ok());
        let begun =
            numbered.map(|(_, rest)| (true, rest)).or_else(|| Some((false, line.strip_prefix("* ")?)));
        match begun {
            Some((always, rest)) => {
                items.push((always, rest.to_owned()));
                open = true;
            }
            None if open && line.starts_with("  ") => {
                let item = &mut items.last_mut().expect("an item is open").1;
                item.extend([" ", line.trim()]);
            }
            None => open = false,
        }
    }
    let step = |(always, item): (bool, String)| {
        let item = item.strip_prefix("[`").unwrap_or_else(|| panic!("no link to a file begins: {item}"));
        let (path, rest) = item.split_once("`](").expect("a link");
        let (_, rest) = rest.split_once(')').expect("the end of a link");
        let words = rest.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Step { path: path.to_owned(), words, always }
    };
    items.into_iter().map(step).collect()
}

/// All files below a folder, or the file itself.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
        return;
    }
    for entry in fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
        files(&entry.unwrap().path(), found);
    }
}

/// What of a file is no test.
fn text(path: &Path) -> String {
    // Pictures and the like name nothing.
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    match text.split_once("#[cfg(test)]\nmod tests {") {
        Some((before, _)) => before.to_owned(),
        None => text,
    }
}

/// Whether the name stands in the text, and not as the end of another one: `AstGrepTool` is no `GrepTool`.
fn is_named(text: &str, name: &str) -> bool {
    let is_of_word = |before: char| before.is_alphanumeric() || before == '_';
    text.match_indices(name).any(|(at, _)| !name.starts_with(is_of_word) || !text[..at].ends_with(is_of_word))
}

fn is_test(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    parts[..parts.len() - 1].iter().any(|part| matches!(*part, "tests" | "examples"))
        || path.ends_with("/tests.rs")
}

/// Checks a page whose example stands in the sources under these names.
fn check(page: &str, names: &[&str]) {
    let root = workspace();
    let page_text = fs::read_to_string(root.join("docs").join(page)).unwrap();
    let steps = steps(&page_text);
    assert!(steps.iter().filter(|step| step.always).count() > 5, "{page}: {steps:?}");
    for step in &steps {
        let link = format!("[`{}`](", step.path);
        let (_, target) = page_text.split_once(&link).unwrap();
        let target = root.join("docs").join(target.split_once(')').unwrap().0);
        assert_eq!(
            target.canonicalize().ok(),
            root.join(&step.path).canonicalize().ok(),
            "{page}: the link of {} leads elsewhere",
            step.path
        );
        let mut below = Vec::new();
        files(&root.join(&step.path), &mut below);
        let said: String =
            below.iter().map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned()).collect();
        for word in &step.words {
            assert!(said.contains(word.as_str()), "{page}: nothing in {} says {word}", step.path);
        }
    }
    let mut sources = Vec::new();
    for folder in ["client", "daemon", "docs", "protocol", "schemas", "README.md"] {
        files(&root.join(folder), &mut sources);
    }
    let mut naming = BTreeSet::new();
    for source in sources {
        let path = source.strip_prefix(&root).unwrap().display().to_string();
        // The host of extensions has pi's own names for them.
        let is_of_node_host = path.starts_with("daemon/crates/extensions/node_host/");
        if !is_test(&path) && !path.starts_with("docs/adding-") && !is_of_node_host {
            let text = text(&source);
            if names.iter().any(|name| is_named(&text, name)) {
                naming.insert(path);
            }
        }
    }
    let always: Vec<&Step> = steps.iter().filter(|step| step.always).collect();
    let holds = |step: &Step, path: &str| path == step.path || path.starts_with(&format!("{}/", step.path));
    let missing: Vec<&String> =
        naming.iter().filter(|path| !always.iter().any(|step| holds(step, path))).collect();
    assert!(missing.is_empty(), "{page} does not name {missing:?}");
    let idle: Vec<&str> = always
        .iter()
        .filter(|step| !step.path.starts_with("tests/") && !naming.iter().any(|path| holds(step, path)))
        .map(|step| step.path.as_str())
        .collect();
    assert!(idle.is_empty(), "{page}: the example is not in {idle:?}");
}

#[test]
fn adding_a_tool() {
    check("adding-a-tool.md", &["GrepTool", "\"grep\"", "grep::", "mod grep;"]);
}

#[test]
fn adding_a_command() {
    check("adding-a-command.md", &["explain_setting", "ExplainSetting"]);
}

#[test]
fn adding_an_event() {
    check("adding-an-event.md", &["model_fallback", "ModelFallback"]);
}

#[test]
fn adding_a_provider() {
    check("adding-a-provider.md", &["\"nvidia\"", "NVIDIA_API_KEY"]);
}

#[test]
fn adding_a_setting() {
    check("adding-a-setting.md", &["agentDirWritable", "agent_dir_writable"]);
}
