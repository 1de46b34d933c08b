//! One settings file: read, checked key by key, and brought to today's names.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
    settings::Settings,
};
use agentd_safe_open::OpenProblem;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::{intercept::take_out_bad_rules, schema::is_pi_setting};
use crate::{
    json_edit::{JsonStep, line_of},
    json_file::{JsonDocument, JsonFileError, read_json, read_project_json, without_value},
    unknown_keys::{SETTINGS, diagnostics},
};

const KIND: DiagnosticKind = DiagnosticKind::Settings;

/// Problems of one file that are told one by one. Each line is looked for in the whole text.
const MOST_TOLD: usize = 40;

/// Keys that are no slips, though no settings: an older name, and one whose value says whether there is something to tell.
const READ_HERE: [&str; 2] = ["queueMode", "transport"];

/// The keys of guard rails, without which a session would be allowed everything, spend without limits, or be confined to nothing.
const GUARD_RAILS: [&str; 3] = ["permissions", "budgets", "sandbox"];

/// Whether a file that cannot be used seems to have guard rails, or may have. Blocks.
fn may_hold_guard_rails(error: &JsonFileError) -> bool {
    match error {
        JsonFileError::Syntax { path, .. } | JsonFileError::NotUtf8 { path, .. } => {
            std::fs::read(path).is_ok_and(|bytes| names_guard_rails(&String::from_utf8_lossy(&bytes)))
        }
        JsonFileError::Unreadable(error) => match error.problem() {
            // Nothing of these is a file of settings that someone has written.
            OpenProblem::NotAFile(_) | OpenProblem::OfProcesses | OpenProblem::TooLong { .. } => false,
            // It is not used, and what it wants to keep from happening must not happen all the same.
            OpenProblem::Foreign { .. } => std::fs::read(error.path())
                .map_or(true, |bytes| names_guard_rails(&String::from_utf8_lossy(&bytes))),
            _ => true,
        },
    }
}

fn names_guard_rails(text: &str) -> bool {
    GUARD_RAILS.into_iter().any(|key| text.contains(&format!("\"{key}\"")))
}

/// The usable keys of a file, and what to tell the user about the others.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    pub(super) values: Map<String, Value>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Why the guard rails of the file, which are there, cannot be read.
    pub(super) guard_rails_fault: Option<String>,
}

/// The user's file as it was read last, by its path and its text: a start needs it several times, and so does each session that is opened.
static LAST_READ: Mutex<Option<((PathBuf, String), Layer)>> = Mutex::new(None);

impl Layer {
    /// Reads the user's file. One that is missing is empty; one that is broken is empty with a warning.
    pub(super) fn read(path: &Path) -> Self {
        let read = read_json(path);
        let Ok(Some(document)) = &read else { return Self::of(path, read) };
        let last = || LAST_READ.lock().unwrap_or_else(PoisonError::into_inner);
        let text = &document.text;
        if let Some((_, layer)) = last().as_ref().filter(|((at, known), _)| at == path && known == text) {
            return layer.clone();
        }
        let key = (path.to_path_buf(), text.clone());
        let layer = Self::of(path, read);
        *last() = Some((key, layer.clone()));
        layer
    }

    /// [`Self::read`] for the settings file of a project.
    pub(super) fn read_of_project(path: &Path) -> Self {
        Self::of(path, read_project_json(path))
    }

    /// The file at `path`, as it was read.
    pub(super) fn of(path: &Path, read: Result<Option<JsonDocument>, JsonFileError>) -> Self {
        let mut layer = Self::default();
        let mut text = String::new();
        match read {
            Ok(None) => {}
            Ok(Some(document)) => match document.value {
                Value::Object(values) => (layer.values, text) = (values, document.text),
                _ => {
                    if names_guard_rails(&document.text) {
                        layer.guard_rails_fault = Some(format!("{}: expected an object", path.display()));
                    }
                    let problem = Diagnostic::warning(KIND, "expected an object").at(path);
                    layer.unused(problem.line(line_of(&document.text, &[])));
                }
            },
            Err(error) => {
                if may_hold_guard_rails(&error) {
                    layer.guard_rails_fault = Some(error.to_string());
                }
                layer.unused(error.diagnostic(KIND));
            }
        }
        layer.rename_legacy();
        layer.check(path, &text);
        layer.name_unknown(path, &text);
        layer.name_transport(path, &text);
        layer
    }

    fn unused(&mut self, problem: Diagnostic) {
        let hint = "the file is not used, and nothing is saved to it until it is repaired";
        self.diagnostics.push(problem.level(DiagnosticLevel::Error).hint(hint));
    }

    /// Names that older versions wrote count where the new name is missing.
    fn rename_legacy(&mut self) {
        if !self.values.contains_key("steeringMode")
            && let Some(mode) = self.values.remove("queueMode")
        {
            self.values.insert("steeringMode".into(), mode);
        }
        if let Some(Value::Object(retry)) = self.values.get_mut("retry")
            && let Some(delay) = retry.shift_remove("maxDelayMs")
            && let Some(provider) =
                retry.entry("provider").or_insert_with(|| Map::new().into()).as_object_mut()
        {
            provider.entry("maxRetryDelayMs").or_insert(delay);
        }
        // Skills once were an object.
        if let Some(Value::Object(skills)) = self.values.get_mut("skills") {
            let enabled = skills.shift_remove("enableSkillCommands");
            let folders = skills.shift_remove("customDirectories");
            self.values.remove("skills");
            for (key, value) in [("skills", folders), ("enableSkillCommands", enabled)] {
                if let Some(value) = value {
                    self.values.entry(key).or_insert(value);
                }
            }
        }
    }

    /// Answers come as event streams whatever `transport` says; a user who chose another value gets a diagnostic.
    fn name_transport(&mut self, path: &Path, text: &str) {
        if let Some(Value::String(transport)) = self.values.get("transport")
            && matches!(transport.as_str(), "websocket" | "websocket-cached")
        {
            let message = format!(
                "\"transport\": \"{transport}\" has no effect: answers of every provider come as event streams (SSE)"
            );
            let problem = Diagnostic::warning(KIND, message).level(DiagnosticLevel::Info);
            self.diagnostics.push(problem.at(path).line(line_of(text, &[JsonStep::Key("transport")])));
        }
    }

    /// An unread key is most likely a slip of the pen.
    fn name_unknown(&mut self, path: &Path, text: &str) {
        let is_no_slip = |key: &str| READ_HERE.contains(&key) || is_pi_setting(key);
        let mut unknown = SETTINGS.unknown(&self.values, &is_no_slip);
        unknown.retain(|key| !(key.is_top() && READ_HERE.contains(&key.name().as_str())));
        let (pi_settings, unknown): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|key| key.is_top() && is_pi_setting(&key.name()));
        self.diagnostics.extend(diagnostics(unknown, KIND, DiagnosticLevel::Warning, (path, text)));
        let names: Vec<String> = pi_settings.iter().map(|key| format!("\"{}\"", key.name())).collect();
        if !names.is_empty() {
            let message =
                format!("pi knows these settings, and agentd does not use them: {}", names.join(", "));
            let note = Diagnostic::warning(KIND, message).level(DiagnosticLevel::Info);
            self.diagnostics.push(note.at(path));
        }
    }

    /// Takes out every value that is of the wrong kind.
    fn check(&mut self, path: &Path, text: &str) {
        let mut problems = Vec::new();
        self.values.retain(|key, value| {
            let mut found = wrong_values(key, value);
            if let Some(problem) = found.first().filter(|_| GUARD_RAILS.contains(&key.as_str())) {
                let item = problem.wrong_item.map(|item| format!("[{item}]")).unwrap_or_default();
                let at = problem.at.join(".");
                self.guard_rails_fault =
                    Some(format!("{}: \"{at}{item}\": {}", path.display(), problem.what));
            }
            let usable = !found.last().is_some_and(|problem| problem.whole_key);
            problems.append(&mut found);
            usable
        });
        let more = problems.len().saturating_sub(MOST_TOLD);
        for Problem { at, item, what, .. } in problems.into_iter().take(MOST_TOLD) {
            let steps: Vec<JsonStep<'_>> =
                at.iter().map(|key| JsonStep::Key(key)).chain(item.map(JsonStep::Item)).collect();
            let item = item.map(|item| format!("[{item}]")).unwrap_or_default();
            let message = format!("\"{}{item}\" is ignored: {what}", at.join("."));
            self.diagnostics.push(Diagnostic::warning(KIND, message).at(path).line(line_of(text, &steps)));
        }
        if more > 0 {
            let message = format!("{more} more values are ignored");
            self.diagnostics.push(Diagnostic::warning(KIND, message).at(path));
        }
    }
}

struct Problem {
    /// The keys on the way to the value.
    at: Vec<String>,
    /// The index in the list.
    item: Option<usize>,
    /// The index of what is wrong, where that makes the whole list wrong.
    wrong_item: Option<usize>,
    what: String,
    /// True if the whole top-level key is of no use.
    whole_key: bool,
}

/// Removes what is wrong inside `value` and reports it; the last report tells when nothing of the key is left to use.
fn wrong_values(key: &str, value: &mut Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    if key == "bash" {
        let at = || vec![key.to_owned(), "intercept".to_owned()];
        for (item, what) in take_out_bad_rules(value) {
            problems.push(Problem { at: at(), item: Some(item), wrong_item: None, what, whole_key: false });
        }
        if value.get("intercept").is_some_and(|it| !it.is_boolean() && !it.is_array() && !it.is_null()) {
            let what = "expected true, false or a list of rules".to_owned();
            let whole_key = !remove(value, &at()[1..]);
            problems.push(Problem { at: at(), item: None, wrong_item: None, what, whole_key });
        }
    }
    let mut report = |at: Vec<String>, wrong_item, what: String, whole_key| {
        problems.push(Problem { at, item: None, wrong_item, what, whole_key });
    };
    if key == "httpIdleTimeoutMs" && !is_timeout(value) {
        let what = "expected a number of milliseconds, 0 or more, or \"disabled\"".to_owned();
        report(vec![key.to_owned()], None, what, true);
        return problems;
    }
    // A list of the fields in their order would be read as the object.
    if GUARD_RAILS.contains(&key) && value.is_array() {
        report(vec![key.to_owned()], None, "expected an object, not a list".to_owned(), true);
        return problems;
    }
    // Each round takes out at least one member, so this ends. It reads all the others again, so that it must not be many.
    let mut rounds = 0;
    while let Err(error) = typed(key, value) {
        rounds += 1;
        let keys = member_keys(error.path());
        let what = without_value(&error.inner().to_string());
        let whole_key = keys.len() < 2 || rounds > MOST_TOLD || !remove(value, &keys[1..]);
        let item = first_index(error.path());
        report(if keys.is_empty() { vec![key.to_owned()] } else { keys }, item, what, whole_key);
        if whole_key {
            break;
        }
    }
    problems
}

/// Reads one top-level key as the type that it should have. Keys that we do not know have every type.
fn typed(key: &str, value: &Value) -> Result<Settings, serde_path_to_error::Error<serde_json::Error>> {
    let object = Map::from_iter([(key.to_owned(), value.clone())]);
    serde_path_to_error::deserialize(Value::Object(object))
}

/// The object keys on the way to what was wrong. A wrong item makes its whole list wrong.
fn member_keys(path: &serde_path_to_error::Path) -> Vec<String> {
    path.iter()
        .map_while(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            _ => None,
        })
        .collect()
}

/// The index of the wrong item in the list that [`member_keys`] leads to.
fn first_index(path: &serde_path_to_error::Path) -> Option<usize> {
    path.iter().find_map(|segment| match segment {
        Segment::Seq { index } => Some(*index),
        _ => None,
    })
}

/// Removes the member at `keys`; false when it is not there.
fn remove(value: &mut Value, keys: &[String]) -> bool {
    let Some((last, outer)) = keys.split_last() else { return false };
    let object = outer.iter().try_fold(value, |value, key| value.get_mut(key));
    object.and_then(Value::as_object_mut).is_some_and(|object| object.shift_remove(last).is_some())
}

fn is_timeout(value: &Value) -> bool {
    value.is_null() || value.as_f64().is_some_and(|millis| millis >= 0.0) || value == "disabled"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, values: Value, warnings: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        std::fs::write(&path, text).unwrap();
        let layer = Layer::read(&path);
        assert_eq!(Value::Object(layer.values), values, "{text}");
        let place = format!("{}/", folder.path().display());
        let got: Vec<String> =
            layer.diagnostics.iter().map(|it| it.to_string().replace(&place, "")).collect();
        assert_eq!(got, warnings, "{text}");
    }

    #[test]
    fn of_many_problems_the_first_are_told() {
        let rules = vec!["1"; 5000].join(",");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        std::fs::write(&path, format!("{{\"bash\":{{\"intercept\":[{rules}]}}}}")).unwrap();
        let layer = Layer::read(&path);
        assert_eq!(layer.diagnostics.len(), MOST_TOLD + 1);
        assert_eq!(layer.diagnostics[MOST_TOLD].message, "4960 more values are ignored");
        assert_eq!(Value::Object(layer.values), json!({"bash": {"intercept": []}}));
    }

    #[test]
    fn good_files() {
        check("", json!({}), &[]);
        check("{\"defaultModel\": \"m\",}", json!({"defaultModel": "m"}), &[]);
        check("{\"$schema\": \"x\"}", json!({"$schema": "x"}), &[]);
        check(r#"{"queueMode":"all"}"#, json!({"steeringMode": "all"}), &[]);
        check(
            r#"{"skills":{"enableSkillCommands":false,"customDirectories":["a"],"enableCodexUser":true}}"#,
            json!({"skills": ["a"], "enableSkillCommands": false}),
            &[],
        );
        check(r#"{"skills":{}}"#, json!({}), &[]);
        check(
            r#"{"queueMode":"all","steeringMode":"one-at-a-time"}"#,
            json!({"queueMode": "all", "steeringMode": "one-at-a-time"}),
            &[],
        );
        for timeout in ["0", "1.5", "\"disabled\"", "null"] {
            let text = format!("{{\"httpIdleTimeoutMs\":{timeout}}}");
            check(&text, serde_json::from_str(&text).unwrap(), &[]);
        }
    }

    #[test]
    fn a_wrong_value_costs_only_its_own_key() {
        check(
            "{\"defaultModel\":5,\n// how\n\"steeringMode\":\"sometimes\",\"defaultProvider\":\"p\"}",
            json!({"defaultProvider": "p"}),
            &[
                "settings.json:1: \"defaultModel\" is ignored: expected a string, not an integer",
                "settings.json:3: \"steeringMode\" is ignored: unknown variant `sometimes`, expected `all` or `one-at-a-time`",
            ],
        );
        check(
            r#"{"compaction":{"enabled":"yes","keepRecentTokens":1},"images":[]}"#,
            json!({"compaction": {"keepRecentTokens": 1}, "images": []}),
            &["settings.json:1: \"compaction.enabled\" is ignored: expected a boolean, not a string"],
        );
        check(
            r#"{"modelThinkingLevels":{"a/b":"high","a/c":"hard"},"enabledModels":["x",1]}"#,
            json!({"modelThinkingLevels": {"a/b": "high"}}),
            &[
                "settings.json:1: \"modelThinkingLevels.a/c\" is ignored: unknown variant `hard`, expected one of `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`",
                "settings.json:1: \"enabledModels\" is ignored: expected a string, not an integer",
            ],
        );
        check(
            r#"{"httpIdleTimeoutMs":-1}"#,
            json!({}),
            &[
                "settings.json:1: \"httpIdleTimeoutMs\" is ignored: expected a number of milliseconds, 0 or more, or \"disabled\"",
            ],
        );
    }

    #[test]
    fn an_unread_key_is_reported_and_one_of_pi_is_not_taken_for_a_slip() {
        check(
            "{\"defaultModel\": \"m\",\n\"theme\": 7, \"terminal\": {\"showImages\": true},\n\"steeringMod\": \"all\",\n\
             \"nobody\": 1}",
            json!({"defaultModel": "m", "theme": 7, "terminal": {"showImages": true}, "steeringMod": "all", "nobody": 1}),
            &[
                "settings.json:3: there is no key \"steeringMod\": it has no effect (did you mean \"steeringMode\"?)",
                "settings.json:4: there is no key \"nobody\": it has no effect",
                "settings.json: pi knows these settings, and agentd does not use them: \"theme\", \"terminal\"",
            ],
        );
    }

    #[test]
    fn a_transport_that_is_not_used_is_told() {
        for transport in ["websocket", "websocket-cached"] {
            let told = format!(
                "settings.json:2: \"transport\": \"{transport}\" has no effect: answers of every provider come as event \
                 streams (SSE)"
            );
            check(
                &format!("{{\n\"transport\":\"{transport}\"}}"),
                json!({ "transport": transport }),
                &[&told],
            );
        }
        for transport in ["auto", "sse"] {
            check(&format!("{{\"transport\":\"{transport}\"}}"), json!({ "transport": transport }), &[]);
        }
    }

    #[test]
    fn a_bad_rule_costs_only_itself() {
        check(
            "{\"bash\":{\"pty\":true,\n\"intercept\":[\n{\"pattern\":\"a\"},\n{\"pattern\":\"(\"}]}}",
            json!({"bash": {"pty": true, "intercept": [{"pattern": "a"}]}}),
            &[
                "settings.json:4: \"bash.intercept[1]\" is ignored: the pattern is no regular expression: unclosed group",
            ],
        );
        check(
            "{\"bash\":{\"intercept\":\n5,\"rows\":0,\"env\":1}}",
            json!({"bash": {}}),
            &[
                "settings.json:1: \"bash.intercept\" is ignored: expected true, false or a list of rules",
                "settings.json:2: \"bash.rows\" is ignored: expected a nonzero u16, not an integer",
                "settings.json:2: \"bash.env\" is ignored: expected a boolean, not an integer",
            ],
        );
        check(
            "{\"bash\":true}",
            json!({}),
            &["settings.json:1: \"bash\" is ignored: expected an object, not a boolean"],
        );
    }

    #[test]
    fn a_broken_file_is_empty() {
        let end = " (the file is not used, and nothing is saved to it until it is repaired)";
        check(
            "{",
            json!({}),
            &[&format!("settings.json:1: not JSON at column 1: EOF while parsing an object{end}")],
        );
        check("// mine\n[]", json!({}), &[&format!("settings.json:2: expected an object{end}")]);
        let folder = tempfile::tempdir().unwrap();
        let layer = Layer::read(folder.path());
        assert!(
            layer.values.is_empty()
                && layer.diagnostics[0].message.starts_with("is a folder, no regular file"),
            "{:?}",
            layer.diagnostics
        );
    }
}
