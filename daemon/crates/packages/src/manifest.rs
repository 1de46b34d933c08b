//! What `package.json` and `extension.json` say of resources.

use std::path::{Path, PathBuf};

use agentd_config::MAX_TEXT_BYTES;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use serde_json::{Map, Value};

use crate::kinds::{PerKind, ResourceKind};

/// The version of the protocol between agentd and programs that are extensions.
pub const HOST_PROTOCOL: u64 = 1;

/// The most programs that one manifest may name.
const MAX_PROGRAMS: usize = 50;

/// A `package.json`, as far as it is about resources. A broken one is none.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// The lists of `pi`: those that are lists of texts.
    pub(crate) lists: PerKind<Option<Vec<String>>>,
    /// `agentd.extensions`.
    pub(crate) programs: Programs,
    /// `version`.
    pub(crate) version: Option<String>,
    /// The names in `dependencies`.
    pub(crate) dependencies: Vec<String>,
}

/// Extensions that are programs of their own.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Programs {
    pub(crate) found: Vec<Program>,
    /// What is wrong with others.
    pub(crate) problems: Vec<String>,
}

/// A program that speaks the host protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    pub(crate) protocol: u64,
}

impl Manifest {
    /// Reads the `package.json` of a folder; `None` where there is none that can be used. Blocks.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let Value::Object(package) = json(&folder.join("package.json"))? else { return None };
        let empty = Map::new();
        let section = |name: &str| package.get(name).and_then(Value::as_object).unwrap_or(&empty);
        let lists = PerKind::of(|kind| section("pi").get(kind.name()).and_then(texts));
        let programs = section("agentd").get("extensions").map(Programs::of).unwrap_or_default();
        let version = package.get("version").and_then(Value::as_str).map(str::to_owned);
        let dependencies = section("dependencies").keys().cloned().collect();
        Some(Self { lists, programs, version, dependencies })
    }

    /// Whether it says which resources there are. Else the usual folders count.
    pub(crate) fn names_resources(&self) -> bool {
        ResourceKind::ALL.into_iter().any(|kind| self.lists.get(kind).is_some()) || !self.programs.is_empty()
    }
}

impl Programs {
    /// Reads the `extension.json` of a folder: a program, or a list of them. `None` where there is none. Blocks.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let path = extension_file(folder);
        if !path.is_file() {
            return None;
        }
        Some(match json(&path) {
            Some(value) => Self::of(&value),
            None => Self { problems: vec!["it is not JSON".to_owned()], ..Self::default() },
        })
    }

    fn of(value: &Value) -> Self {
        let mut programs = Self::default();
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items.iter().take(MAX_PROGRAMS) {
            match Program::of(item) {
                Ok(program) => programs.found.push(program),
                Err(problem) => programs.problems.push(problem),
            }
        }
        if items.len() > MAX_PROGRAMS {
            programs.problems.push(format!("it names more than {MAX_PROGRAMS} programs"));
        }
        programs
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.problems.is_empty()
    }
}

impl Program {
    fn of(value: &Value) -> Result<Self, String> {
        let command = value.get("command").and_then(texts).filter(|command| {
            command.first().is_some_and(|program| !program.is_empty())
                && !command.iter().any(|part| part.contains('\0'))
        });
        let Some(command) = command else {
            return Err("\"command\" must be a list of texts: the program and its arguments".to_owned());
        };
        match value.get("protocol").map(Value::as_u64) {
            None => Ok(Self { command, protocol: HOST_PROTOCOL }),
            Some(Some(HOST_PROTOCOL)) => Ok(Self { command, protocol: HOST_PROTOCOL }),
            Some(_) => Err(format!("\"protocol\" must be {HOST_PROTOCOL}, the version that agentd speaks")),
        }
    }
}

/// The file that makes a folder an extension that is a program.
pub(crate) fn extension_file(folder: &Path) -> PathBuf {
    folder.join("extension.json")
}

/// A JSON file of at most 1 MiB, with or without a byte order mark.
fn json(path: &Path) -> Option<Value> {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody);
    let bytes = rules.max_bytes(MAX_TEXT_BYTES).read(path).ok()??;
    serde_json::from_slice(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes)).ok()
}

/// A list of texts; `None` for all else.
fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Option<Manifest> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("package.json"), text).unwrap();
        Manifest::read(folder.path())
    }

    #[test]
    fn lists_of_texts_count_and_all_else_is_passed_over() {
        let manifest = read(
            "\u{FEFF}{\"version\":\"1.0.0\",\"dependencies\":{\"b\":\"1\"},\"pi\":{\"extensions\":[\"./a.ts\"],\"skills\":[5],\
             \"prompts\":\"x\",\"image\":\"y\"}}",
        )
        .unwrap();
        assert_eq!(manifest.lists.get(ResourceKind::Extension).as_deref(), Some(&["./a.ts".to_owned()][..]));
        for kind in [ResourceKind::Skill, ResourceKind::Prompt, ResourceKind::Theme] {
            assert_eq!(*manifest.lists.get(kind), None);
        }
        assert_eq!((manifest.version.as_deref(), manifest.dependencies.len()), (Some("1.0.0"), 1));
        assert!(manifest.names_resources());
        assert!(!read(r#"{"pi":{"image":"x"}}"#).unwrap().names_resources());
        for broken in ["", "[]", "{", "5"] {
            assert_eq!(read(broken), None, "{broken}");
        }
        let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20));
        assert_eq!(read(&huge), None);
    }

    #[test]
    fn programs_say_how_they_are_started() {
        let programs = Programs::of(&json!([
            {"command": ["./bin/x", "-v"], "protocol": 1},
            {"command": ["y"]},
            {"command": []},
            {"command": ["z"], "protocol": 2},
            5,
        ]));
        let commands: Vec<_> = programs.found.iter().map(|it| it.command.join(" ")).collect();
        assert_eq!(commands, ["./bin/x -v", "y"]);
        assert_eq!(programs.problems.len(), 3);
        assert!(programs.problems[1].contains("\"protocol\" must be 1"), "{:?}", programs.problems);
        assert_eq!(Programs::of(&json!({"command": ["x"]})).found.len(), 1);
    }
}
