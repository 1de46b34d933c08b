//! Explains where a setting's value comes from.

use std::path::{Path, PathBuf};

use agentd_protocol::{
    explain::{SettingExplanation, SettingLayer, SettingSource},
    settings::Settings,
};
use serde_json::{Map, Value};

use super::{
    layer::Layer,
    load::load,
    merge::merge,
    reach::counts_from_project,
    schema::{KnownSetting, Schema},
};
use crate::{
    AgentDir, Environment, TrustBasis,
    json_edit::{JsonStep, line_of},
    json_file::{JsonDocument, JsonFileError, read_json, read_project_json},
    models::slips,
};

/// The settings that are proposed at most where a key is none.
const MOST_SIMILAR: usize = 3;

/// The inputs of an explanation.
#[derive(Debug, Clone, Copy)]
pub struct ExplainQuestion<'a> {
    /// The key, members of objects after a dot.
    pub key: &'a str,
    /// Holds the user's file.
    pub agent_dir: &'a AgentDir,
    /// The working directory.
    pub cwd: &'a Path,
    /// The session's environment.
    pub environment: &'a Environment,
    /// `--approve` (true) or `--no-approve` (false).
    pub approve: Option<bool>,
    /// The layers of flags, of variables and of a stricter project, the strongest first: those that count override all files.
    pub over: &'a [SettingLayer],
    /// The settings that the session works with.
    pub in_use: Option<&'a Settings>,
}

/// There is no such setting, and no file says anything of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("There is no setting \"{key}\".")]
pub struct UnknownSetting {
    /// The requested key.
    pub key: String,
    /// Settings with almost that name, the best first.
    pub similar: Vec<String>,
}

/// Says where a setting's value comes from, as the files are now. Reads files; blocks.
///
/// # Errors
/// [`UnknownSetting`].
pub fn explain(question: ExplainQuestion<'_>) -> Result<SettingExplanation, UnknownSetting> {
    let ExplainQuestion { key, agent_dir, cwd, environment, approve, over, in_use } = question;
    let schema = Schema::load();
    let known = schema.find(key);
    let keys = match &known {
        Some(known) => known.keys.clone(),
        None => key.split('.').map(str::to_owned).collect(),
    };
    let loaded = load(agent_dir, cwd, environment, approve);
    let user = File::read(agent_dir.settings_file(), &keys, read_json);
    let project = loaded.folders.find("settings.json").map(|path| File::read(path, &keys, read_project_json));
    let says_something = |file: &File| file.written.is_some() || file.usable.is_some();
    if known.is_none() && !says_something(&user) && !project.as_ref().is_some_and(says_something) {
        return Err(UnknownSetting { key: key.to_owned(), similar: similar(&schema, key) });
    }

    // The part of the project's file that counts.
    let not_from_project = if !counts_from_project(&keys) {
        Some("only the user's own settings count for this key".to_owned())
    } else if loaded.trust.trusted {
        None
    } else {
        Some(match loaded.trust.basis {
            TrustBasis::Flag => "the project is not trusted (--no-approve)".to_owned(),
            TrustBasis::Saved(folder) => format!("trust.json says not to trust {}", folder.display()),
            TrustBasis::Changed(_) => {
                "the project was trusted, and its files have changed since; --approve trusts it for a session"
                    .to_owned()
            }
            TrustBasis::Replaced(folder) => format!(
                "another folder was trusted in the place of {}; --approve trusts it for a session",
                folder.display()
            ),
            TrustBasis::Setting => "the project is not trusted (defaultProjectTrust)".to_owned(),
            TrustBasis::Unasked | TrustBasis::NothingToTrust => {
                "the project is not trusted; --approve trusts it for a session".to_owned()
            }
        })
    };
    let from_project = project.as_ref().filter(|_| not_from_project.is_none());
    let alone = from_project.and_then(|file| file.usable.clone());
    let merged = match from_project {
        Some(file) => merge(user.values.clone(), file.values.clone()),
        None => user.values.clone(),
    };
    let merged = at(&merged, &keys).cloned();

    let mut layers: Vec<SettingLayer> = over.to_vec();
    let is_overridden = over.iter().any(|layer| layer.counts);
    let mut open = !is_overridden;
    let below_flags = match over.iter().find(|layer| layer.counts) {
        Some(SettingLayer { source: SettingSource::Project, .. }) => "the project is stricter",
        _ => "a flag or a variable comes first",
    };
    if let Some(file) = &project {
        let counts = open && alone.is_some();
        let why_not =
            not_from_project.or_else(|| (!open && file.written.is_some()).then(|| below_flags.into()));
        layers.push(file.layer(SettingSource::Project, counts, why_not));
    }
    let adds = user.usable.is_some() && merged != alone;
    let note = match (&alone, adds) {
        _ if !open => user.written.is_some().then(|| below_flags.to_owned()),
        (Some(_), true) => Some("the project's file changes this value".to_owned()),
        (Some(_), false) if user.usable.is_some() => Some("the project's file comes first".to_owned()),
        _ => None,
    };
    layers.push(user.layer(SettingSource::User, open && adds, note));
    open &= merged.is_none();
    let (description, default) = match known {
        Some(KnownSetting { description, default, .. }) => (Some(description), default),
        None => (None, None),
    };
    if description.is_some() {
        layers.push(SettingLayer { counts: open, ..said(SettingSource::Default, default.clone()) });
    }

    let strongest = layers.iter().find(|layer| layer.counts);
    let of_files = || merged.clone().or_else(|| default.clone());
    let value = match strongest {
        Some(layer) if is_overridden => layer.value.clone(),
        _ => of_files(),
    };
    Ok(SettingExplanation {
        key: key.to_owned(),
        description,
        value,
        source: strongest.map_or(SettingSource::Default, |layer| layer.source),
        path: strongest.and_then(|layer| layer.path.clone()),
        line: strongest.and_then(|layer| layer.line),
        in_session: in_use.and_then(|in_use| differs(in_use, &loaded.settings, &keys, default.as_ref())),
        layers,
    })
}

/// The value that a session works with, when the files differ from it by now.
fn differs(in_use: &Settings, now: &Settings, keys: &[String], default: Option<&Value>) -> Option<Value> {
    let value = |settings: &Settings| {
        let all = serde_json::to_value(settings).unwrap_or_default();
        at(all.as_object()?, keys).or(default).cloned()
    };
    let (before, after) = (value(in_use), value(now));
    (before != after).then(|| before.unwrap_or_default())
}

/// A layer that says that.
fn said(source: SettingSource, value: Option<Value>) -> SettingLayer {
    SettingLayer { source, name: None, path: None, line: None, value, counts: false, note: None }
}

/// Reads a file of the user's, or one of a project.
type ReadJson = fn(&Path) -> Result<Option<JsonDocument>, JsonFileError>;

/// A file's value of one setting.
struct File {
    path: PathBuf,
    /// Everything usable in it.
    values: Map<String, Value>,
    /// The value as written, with its line.
    written: Option<(Value, u32)>,
    /// The usable part of it.
    usable: Option<Value>,
    /// Why not all of it.
    problem: Option<String>,
}

impl File {
    fn read(path: PathBuf, keys: &[String], read: ReadJson) -> Self {
        let layer = Layer::of(&path, read(&path));
        let steps: Vec<JsonStep<'_>> = keys.iter().map(|key| JsonStep::Key(key)).collect();
        let written = read(&path).ok().flatten().and_then(|document| {
            let value = at(document.value.as_object()?, keys)?.clone();
            Some((value, line_of(&document.text, &steps)))
        });
        let usable = at(&layer.values, keys).cloned();
        let problem = if written.as_ref().map(|(value, _)| value) == usable.as_ref() {
            // A file that is broken as a whole says nothing, of whatever key.
            layer.diagnostics.iter().find(|it| it.hint.is_some()).map(ToString::to_string)
        } else if written.is_none() {
            Some("it stands there under an older name".to_owned())
        } else {
            let name = format!("\"{}", keys.join("."));
            let found = layer.diagnostics.iter().find(|it| it.message.starts_with(&name));
            found.map(|it| it.message.clone())
        };
        Self { path, values: layer.values, written, usable, problem }
    }

    fn layer(&self, source: SettingSource, counts: bool, note: Option<String>) -> SettingLayer {
        let (value, line) = self.written.clone().unzip();
        SettingLayer {
            path: Some(self.path.display().to_string()),
            line,
            counts,
            note: self.problem.clone().or(note),
            ..said(source, value.or_else(|| self.usable.clone()))
        }
    }
}

/// The value below these keys.
fn at<'a>(values: &'a Map<String, Value>, keys: &[String]) -> Option<&'a Value> {
    let (first, below) = keys.split_first()?;
    below.iter().try_fold(values.get(first)?, |value, key| value.get(key))
}

fn similar(schema: &Schema, key: &str) -> Vec<String> {
    let wanted = key.to_lowercase();
    let close = |name: String| slips(&wanted, &name.to_lowercase()).map(|slips| (slips, name));
    let mut found: Vec<_> = schema.keys().into_iter().filter_map(close).collect();
    found.sort_by_key(|(slips, name)| (*slips, name.len().abs_diff(key.len())));
    found.into_iter().take(MOST_SIMILAR).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    struct TestFolder(tempfile::TempDir);

    impl TestFolder {
        fn new(user: &str, project: &str) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for (name, text) in [("agent/settings.json", user), ("cwd/.pi/settings.json", project)] {
                let path = place.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                if !text.is_empty() {
                    fs::write(path, text).unwrap();
                }
            }
            place
        }

        fn ask(
            &self,
            key: &str,
            approve: Option<bool>,
            over: &[SettingLayer],
        ) -> Result<SettingExplanation, UnknownSetting> {
            explain(ExplainQuestion {
                key,
                agent_dir: &AgentDir::at(self.0.path().join("agent")),
                cwd: &self.0.path().join("cwd"),
                environment: &Environment::default(),
                approve,
                over,
                in_use: None,
            })
        }

        /// The value, and each layer in short: source, line, value, whether it counts, note.
        #[track_caller]
        fn check(&self, key: &str, approve: bool, value: Value, layers: &[&str]) {
            let answer = self.ask(key, Some(approve), &[]).unwrap();
            assert_eq!(answer.value.clone().unwrap_or_default(), value, "{answer:?}");
            assert_eq!(shown(&answer), layers, "{key}");
            let strongest = answer.layers.iter().find(|layer| layer.counts);
            assert_eq!(answer.line, strongest.and_then(|layer| layer.line), "{answer:?}");
        }
    }

    fn shown(answer: &SettingExplanation) -> Vec<String> {
        let show = |layer: &SettingLayer| {
            let value = layer.value.as_ref().map_or("-".to_owned(), ToString::to_string);
            let line = layer.line.map_or("-".to_owned(), |line| line.to_string());
            let counts = if layer.counts { "counts" } else { "no" };
            let note = layer.note.as_deref().unwrap_or_default();
            format!("{:?} {line} {value} {counts} {note}", layer.source).trim_end().to_owned()
        };
        answer.layers.iter().map(show).collect()
    }

    #[test]
    fn the_default_counts_where_nobody_says_anything() {
        let place = TestFolder::new("", "");
        place.check("compaction.enabled", true, json!(true), &["User - - no", "Default - true counts"]);
        place.check("defaultModel", true, Value::Null, &["User - - no", "Default - - counts"]);
    }

    #[test]
    fn the_project_comes_first_where_it_is_trusted() {
        let place = TestFolder::new(
            "{\n\"defaultModel\":\"u\",\n\"compaction\":{\"enabled\":false},\"skills\":[\"a\"]}",
            "{\"defaultModel\":\"p\",\n\"compaction\":{\n\"reserveTokens\":1},\"skills\":[\"b\"],\"httpProxy\":\"x\",\"sessionDir\":\"s\",\"theme\":\"dark\"}",
        );
        let trusted =
            ["Project 1 \"p\" counts", "User 2 \"u\" no the project's file comes first", "Default - - no"];
        place.check("defaultModel", true, json!("p"), &trusted);
        let not = "no the project is not trusted (--no-approve)";
        let untrusted =
            [format!("Project 1 \"p\" {not}"), "User 2 \"u\" counts".into(), "Default - - no".into()];
        place.check("defaultModel", false, json!("u"), &untrusted.each_ref().map(String::as_str));
        // Members of objects are merged.
        place.check(
            "compaction.enabled",
            true,
            json!(false),
            &["Project - - no", "User 3 false counts", "Default - true no"],
        );
        place.check(
            "compaction",
            true,
            json!({"enabled": false, "reserveTokens": 1}),
            &[
                "Project 2 {\"reserveTokens\":1} counts",
                "User 3 {\"enabled\":false} counts the project's file changes this value",
                "Default - - no",
            ],
        );
        // A project that is not trusted cannot set the folder of sessions.
        place.check(
            "sessionDir",
            false,
            Value::Null,
            &[&format!("Project 3 \"s\" {not}"), "User - - no", "Default - - counts"],
        );
        // A key that only the user may set.
        let own = place.ask("httpProxy", Some(true), &[]).unwrap();
        assert!(own.description.is_some() && own.value.is_none(), "{own:?}");
        assert!(shown(&own)[0].ends_with("no only the user's own settings count for this key"), "{own:?}");
        // One of other programs.
        let foreign = place.ask("theme", Some(true), &[]).unwrap();
        assert_eq!((&foreign.description, &foreign.value), (&None, &Some(json!("dark"))), "{foreign:?}");
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let place = TestFolder::new("{\"compaction\":{\n\"enabled\":\"yes\",\"keepRecentTokens\":5}}", "{");
        place.check(
            "compaction.enabled",
            true,
            json!(true),
            &[
                &format!(
                    "Project - - no {}/cwd/.pi/settings.json:1: not JSON at column 1: EOF while parsing an object (the file is not used, and nothing is saved to it until it is repaired)",
                    place.0.path().display()
                ),
                "User 2 \"yes\" no \"compaction.enabled\" is ignored: expected a boolean, not a string",
                "Default - true counts",
            ],
        );
        let place = TestFolder::new("{\"queueMode\":\"all\"}", "");
        place.check(
            "steeringMode",
            true,
            json!("all"),
            &["User - \"all\" counts it stands there under an older name", "Default - \"one-at-a-time\" no"],
        );
    }

    #[test]
    fn flags_come_before_files() {
        let place = TestFolder::new("{\"defaultThinkingLevel\":\"low\"}", "");
        let flag = SettingLayer {
            name: Some("--thinking".into()),
            counts: true,
            ..said(SettingSource::Flag, Some(json!("high")))
        };
        let answer = place.ask("defaultThinkingLevel", None, &[flag]).unwrap();
        assert_eq!((answer.value.clone(), answer.source), (Some(json!("high")), SettingSource::Flag));
        assert_eq!(
            shown(&answer),
            [
                "Flag - \"high\" counts",
                "User 1 \"low\" no a flag or a variable comes first",
                "Default - \"medium\" no"
            ]
        );
    }

    #[test]
    fn a_session_that_read_the_files_before_is_told_apart() {
        let place = TestFolder::new("{\"compaction\":{\"enabled\":false}}", "");
        let ask = |in_use: &Settings| {
            let agent_dir = AgentDir::at(place.0.path().join("agent"));
            let (cwd, environment) = (place.0.path().join("cwd"), Environment::default());
            let (agent_dir, cwd, environment) = (&agent_dir, cwd.as_path(), &environment);
            let in_use = Some(in_use);
            let key = "compaction.enabled";
            explain(ExplainQuestion { key, agent_dir, cwd, environment, approve: None, over: &[], in_use })
                .unwrap()
                .in_session
        };
        assert_eq!(ask(&Settings::default()), Some(json!(true)));
        let same = serde_json::from_value(json!({"compaction": {"enabled": false}})).unwrap();
        assert_eq!(ask(&same), None);
    }

    #[test]
    fn an_unknown_key_is_refused_with_what_may_be_meant() {
        let place = TestFolder::new("{\"theme\":\"dark\"}", "");
        let similar = |key: &str| place.ask(key, None, &[]).unwrap_err().similar;
        assert_eq!(similar("defaultModle"), ["defaultModel"]);
        assert_eq!(similar("compaction.reserve")[0], "compaction.reserveTokens");
        assert!(similar("zzzzzzzz").is_empty());
        let foreign = place.ask("theme", None, &[]).unwrap();
        assert_eq!((foreign.description, foreign.value, foreign.line), (None, Some(json!("dark")), Some(1)));
    }
}
