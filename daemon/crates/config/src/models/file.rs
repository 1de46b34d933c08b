//! `models.json` read and checked.

use std::path::Path;

use agentd_protocol::{
    models_file::{InOrder, ModelsFile, ProviderEntry},
    oauth_setting::OAuthSetting,
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
};
use serde_json::Map;
use serde_path_to_error::Segment;

use super::{catalogue::Catalogue, file_provider::FileProvider};
use crate::{
    json_edit::{JsonStep, line_of},
    json_file::{JsonDocument, JsonFileError, read_json, without_value},
    unknown_keys::{MODELS, diagnostics},
};

const KIND: DiagnosticKind = DiagnosticKind::Models;

/// Why nothing of the file is used.
#[derive(Debug, Clone)]
pub(super) struct FileProblem {
    /// A text for the user, in pi's words: the fault, its position, and the file.
    pub(super) text: String,
    /// The fault as a diagnostic with file and line.
    pub(super) diagnostic: Diagnostic,
}

impl FileProblem {
    fn new(text: String, diagnostic: Diagnostic) -> Box<Self> {
        let hint = "none of the file is used until it is repaired";
        Box::new(Self { text, diagnostic: diagnostic.level(DiagnosticLevel::Error).hint(hint) })
    }

    fn of_file(what: &str, error: &JsonFileError) -> Box<Self> {
        let diagnostic = error.diagnostic(KIND);
        let message = format!("{what}: {}", diagnostic.message);
        Self::new(format!("{what}: {error}"), Diagnostic { message, ..diagnostic })
    }

    fn of_line(message: String, path: &Path, line: u32) -> Box<Self> {
        let diagnostic = Diagnostic::warning(KIND, message).at(path).line(line);
        Self::new(format!("{}\n\nFile: {}", diagnostic.message, path.display()), diagnostic)
    }
}

/// The content of the file.
#[derive(Debug, Default)]
pub(super) struct ReadModelsFile {
    /// Its providers.
    pub(super) providers: Vec<FileProvider>,
    /// The keys of the file that no code reads.
    pub(super) unread: Vec<Diagnostic>,
}

/// Reads the file.
pub(super) fn load(path: &Path, catalogue: &Catalogue) -> Result<ReadModelsFile, Box<FileProblem>> {
    of(path, read_json(path), catalogue)
}

/// The file at `path`, as it was read.
pub(super) fn of(
    path: &Path,
    read: Result<Option<JsonDocument>, JsonFileError>,
    catalogue: &Catalogue,
) -> Result<ReadModelsFile, Box<FileProblem>> {
    let document = match read {
        Ok(Some(document)) => document,
        Ok(None) => return Ok(ReadModelsFile::default()),
        Err(error @ JsonFileError::Syntax { .. }) => {
            return Err(FileProblem::of_file("Failed to parse models.json", &error));
        }
        Err(error) => {
            return Err(FileProblem::of_file("Failed to load models.json", &error));
        }
    };
    // A file that is there but says nothing yet.
    if document.value.as_object().is_some_and(Map::is_empty) {
        return Ok(ReadModelsFile::default());
    }
    let text = document.text;
    let invalid =
        |what: &str, line| FileProblem::of_line(format!("Invalid models.json schema: {what}"), path, line);
    if !document.value.is_object() {
        return Err(invalid("expected an object with \"providers\"", line_of(&text, &[])));
    }
    let unknown =
        document.value.as_object().map(|members| MODELS.unknown(members, &|_| false)).unwrap_or_default();
    // A key that resembles no known one may be of another version of pi.
    let unread = diagnostics(unknown, KIND, DiagnosticLevel::Info, (path, &text));
    let file: ModelsFile = serde_path_to_error::deserialize(document.value).map_err(|error| {
        let what = without_value(&error.inner().to_string());
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!("{place}: ") };
        let line = line_of(&text, &steps(error.path(), &what));
        invalid(&format!("{place}{what}"), line)
    })?;
    let provider = |(id, entry): (String, ProviderEntry)| {
        build(&id, entry, catalogue).map_err(|what| {
            let line = line_of(&text, &[JsonStep::Key("providers"), JsonStep::Key(&id)]);
            FileProblem::of_line(format!("Failed to load models.json: {what}"), path, line)
        })
    };
    let providers = file.providers.into_iter().map(provider).collect::<Result<_, _>>()?;
    Ok(ReadModelsFile { providers, unread })
}

/// The path to a fault. Inside of a model, the message itself begins with the rest of the path: `cost.input: expected …`.
fn steps<'a>(path: &'a serde_path_to_error::Path, what: &'a str) -> Vec<JsonStep<'a>> {
    let mut steps: Vec<JsonStep<'a>> = path
        .iter()
        .map_while(|segment| match segment {
            Segment::Map { key } => Some(JsonStep::Key(key)),
            Segment::Seq { index } => Some(JsonStep::Item(*index)),
            _ => None,
        })
        .collect();
    if matches!(steps.last(), Some(JsonStep::Item(_)))
        && let Some((keys, _)) = what.split_once(": ")
    {
        steps.extend(keys.split('.').map(JsonStep::Key));
    }
    steps
}

fn build(id: &str, entry: ProviderEntry, catalogue: &Catalogue) -> Result<FileProvider, String> {
    if id.is_empty() {
        return Err("a provider has an empty name.".into());
    }
    if says_nothing(&entry) {
        return Err(format!(
            "Provider {id}: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\"."
        ));
    }
    FileProvider::new(id.to_owned(), entry, catalogue)
}

fn says_nothing(entry: &ProviderEntry) -> bool {
    !matches!(entry.oauth, Some(OAuthSetting::Fields(_)))
        && entry.base_url.is_none()
        && entry.headers.as_ref().is_none_or(InOrder::is_empty)
        && entry.compat.is_none()
        && entry.model_overrides.as_ref().is_none_or(InOrder::is_empty)
        && entry.models.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_protocol::{model::Model, models_file::ConfigValue};
    use serde_json::{Value, json};

    use super::*;
    use crate::models::ProviderConfig;

    type Loaded = (Vec<Arc<Model>>, Vec<ProviderConfig>);

    fn load_text(text: &str) -> Result<Loaded, String> {
        let providers = load_file(text)?;
        let models = providers.iter().flat_map(|provider| provider.own.iter().cloned()).collect();
        Ok((models, providers.into_iter().map(|provider| provider.config).collect()))
    }

    fn load_file(text: &str) -> Result<Vec<FileProvider>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        std::fs::write(&path, text).unwrap();
        load(&path, &Catalogue::builtin())
            .map(|read| read.providers)
            .map_err(|error| error.text.replace(&format!("{}/", folder.path().display()), ""))
    }

    fn check_error(text: &str, expected: &str) {
        let error = load_text(text).unwrap_err();
        assert!(!error.contains("hush"), "{error}");
        assert_eq!(error, expected, "{text}");
    }

    #[test]
    fn defaults_are_filled_in() {
        let (models, _) = load_text(
            r#"{"providers": { // mine
                "p": {"baseUrl":"http://h/v1","api":"openai-completions","apiKey":"$K","models":[{"id":"m"},]},
            }}"#,
        )
        .unwrap();
        assert_eq!(
            serde_json::to_value(&*models[0]).unwrap(),
            json!({"id": "m", "name": "m", "api": "openai-completions", "provider": "p", "baseUrl": "http://h/v1",
                "reasoning": false, "input": ["text"], "contextWindow": 128_000, "maxTokens": 16_384,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}})
        );
    }

    #[test]
    fn the_model_wins_over_the_provider_and_the_last_of_an_id_over_the_first() {
        let (models, providers) = load_text(
            r#"{"providers":{"b":{"baseUrl":"u","api":"a","compat":{"x":1,"openRouterRouting":{"a":1,"b":1}},"headers":{"X-A":"1","X-B":"1"},
                "models":[{"id":"m","name":"first"},{"id":"n","api":"other","baseUrl":"v","headers":{"x-a":"2"},
                "compat":{"x":2,"openRouterRouting":{"b":2}}},{"id":"m","name":"second","cost":{"input":1.5}}]},
                "a":{"baseUrl":"u"}}}"#,
        )
        .unwrap();
        let names: Vec<_> = models.iter().map(|model| (model.id.as_str(), model.name.as_str())).collect();
        assert_eq!(names, [("m", "second"), ("n", "n")]);
        assert_eq!((models[1].api.as_str(), models[1].base_url.as_str()), ("other", "v"));
        assert_eq!(
            Value::from(models[1].compat.clone().unwrap()),
            json!({"x": 2, "openRouterRouting": {"a": 1, "b": 2}})
        );
        let ids: Vec<_> = providers.iter().map(|provider| provider.id.as_str()).collect();
        assert_eq!(ids, ["b", "a"]);
        let headers = |id| {
            let headers = providers[0].headers_of(id);
            let shown = |value: Option<&ConfigValue>| value.unwrap().expose().to_owned();
            headers.into_iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>()
        };
        assert_eq!(headers("m"), ["X-A=1", "X-B=1"]);
        assert_eq!(headers("n"), ["X-B=1", "x-a=2"]);
    }

    #[test]
    fn nothing_secret_is_in_debug_output() {
        let text = r#"{"providers":{"p":{"baseUrl":"u","api":"a","apiKey":"hush","headers":{"h":"hush"},
            "models":[{"id":"m","headers":{"h":"hush"}}]}}}"#;
        let shown = format!("{:?}", load_file(text).unwrap());
        assert!(shown.contains("[secret]") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn missing_and_empty_files_are_empty() {
        assert!(
            load(Path::new("/nonexistent/models.json"), &Catalogue::builtin()).unwrap().providers.is_empty()
        );
        for text in ["", "{}", "// later"] {
            assert!(load_text(text).unwrap().0.is_empty());
        }
    }

    #[test]
    fn errors_name_the_place() {
        check_error(
            "{\n\"providers\": hush\n}",
            "Failed to parse models.json: models.json, line 2, column 14: expected value",
        );
        let schema = |text: &str, what: &str| {
            check_error(text, &format!("Invalid models.json schema: {what}\n\nFile: models.json"));
        };
        schema("[]", "expected an object with \"providers\"");
        schema(r#"{"x":1}"#, "missing field `providers`");
        schema(r#"{"providers":"hush"}"#, "providers: expected an object, not a string");
        schema(r#"{"providers":{"p":"hush"}}"#, "providers.p: expected an object, not a string");
        schema(r#"{"providers":{"p":{"apiKey":["hush"]}}}"#, "providers.p.apiKey: expected a string");
        schema(
            r#"{"providers":{"p":{"headers":"hush"}}}"#,
            "providers.p.headers: expected an object, not a string",
        );
        schema(
            r#"{"providers":{"p":{"models":[{"id":"a"},{"name":"b"}]}}}"#,
            "providers.p.models[1]: missing field `id`",
        );
        schema(
            r#"{"providers":{"p":{"models":[{"id":"a","reasoning":"hush"}]}}}"#,
            "providers.p.models[0]: reasoning: expected a boolean, not a string",
        );
        let semantic = |text: &str, what: &str| {
            check_error(text, &format!("Failed to load models.json: {what}\n\nFile: models.json"));
        };
        let nothing = "Provider p: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\".";
        semantic(r#"{"providers":{"p":{"apiKey":"hush"}}}"#, nothing);
        semantic(r#"{"providers":{"p":{"models":[],"headers":{}}}}"#, nothing);
        semantic(
            r#"{"providers":{"p":{"baseUrl":"u","models":[{"id":"m"}]}}}"#,
            "Provider p, model m: no \"api\" specified: set it on the model or the provider, such as \"openai-completions\".",
        );
        semantic(
            r#"{"providers":{"p":{"api":"a","models":[{"id":"m"}]}}}"#,
            "Provider p, model m: no \"baseUrl\" specified: set it on the model or the provider, such as \"http://127.0.0.1:8080/v1\".",
        );
    }

    #[test]
    fn the_line_is_that_of_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        let check = |text: &str, expected: &str| {
            std::fs::write(&path, text).unwrap();
            let found = load(&path, &Catalogue::builtin()).unwrap_err().diagnostic;
            assert_eq!(found.path.as_deref(), path.to_str());
            assert_eq!(format!("{}: {}", found.line.unwrap(), found.message), expected, "{text}");
        };
        check(
            "{\n\"providers\": hush\n}",
            "2: Failed to parse models.json: not JSON at column 14: expected value",
        );
        check("// mine\n[]", "2: Invalid models.json schema: expected an object with \"providers\"");
        check(
            "{\"providers\": {\n\"p\": 5}}",
            "2: Invalid models.json schema: providers.p: expected an object, not an integer",
        );
        let model = "{\"providers\":{\"p\":{\"models\":[\n{\"id\":\"a\"},\n{\"id\":\"b\",\n\"cost\":{\n\"input\":\"5\"}}]}}}";
        check(
            model,
            "5: Invalid models.json schema: providers.p.models[1]: cost.input: expected f64, not a string",
        );
        check(
            "{\"providers\":{\n\"p\":{\"baseUrl\":\"u\"},\n\"q\":{}}}",
            "3: Failed to load models.json: Provider q: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\".",
        );
    }

    #[test]
    fn a_directory_in_its_place_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = load(folder.path(), &Catalogue::builtin()).unwrap_err().text;
        assert!(
            error.starts_with("Failed to load models.json: ") && error.contains("no regular file"),
            "{error}"
        );
    }
}
