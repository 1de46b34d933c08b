//! `update_models`: another catalogue of models in the place of the built-in one.

use std::{io, path::Path};

use agentd_config::models::{CatalogueError, MAX_CATALOGUE_BYTES, reset_catalogue, update_catalogue};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    model_catalogue::{CatalogueUpdate, UpdateModelsParams},
};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules};

use super::Context;

/// Takes the catalogue, or removes the one that is stored. Reads and writes files; blocks.
///
/// # Errors
/// When the fields do not say exactly one thing, the file cannot be read, the catalogue is faulty, or it cannot be stored.
pub(super) fn update(context: &Context, params: UpdateModelsParams) -> Result<CatalogueUpdate, Failure> {
    let agent_dir =
        context.agent_dir().map_err(|error| Failure::new(ErrorCode::NotFound, error.to_string()))?;
    let (name, text) = match params {
        UpdateModelsParams { path: None, text: None, reset: Some(true) } => {
            return reset_catalogue(&agent_dir).map_err(|error| failure("", &error));
        }
        UpdateModelsParams { path: Some(path), text: None, reset: None | Some(false) } => {
            let text = read(Path::new(&path))?;
            (path, text)
        }
        UpdateModelsParams { path: None, text: Some(text), reset: None | Some(false) } => {
            ("The catalogue".to_owned(), text)
        }
        _ => {
            let text = "update_models takes exactly one of path, text and \"reset\": true";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
    };
    let adapters = agentd_ai::ProviderRegistry::builtin();
    let speaks = |api: &str| adapters.apis().any(|spoken| spoken == api);
    update_catalogue(&agent_dir, &text, &speaks).map_err(|error| failure(&name, &error))
}

fn read(path: &Path) -> Result<String, Failure> {
    let fault = |what: &str| Failure::new(ErrorCode::Io, format!("{}: {what}", path.display()));
    let unreadable = |error: io::Error| fault(&format!("cannot be read: {error}"));
    if !path.is_absolute() {
        let text = format!("{}: path has to be an absolute one", path.display());
        return Err(Failure::new(ErrorCode::InvalidField, text));
    }
    let rules =
        OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_CATALOGUE_BYTES);
    let bytes = rules.read_present(path).map_err(|error| match error.into_problem() {
        OpenProblem::System(error) => unreadable(error),
        OpenProblem::TooLong { .. } => fault("is larger than 64 MiB"),
        problem => fault(&problem.to_string()),
    })?;
    String::from_utf8(bytes)
        .map_err(|error| fault(&format!("is not UTF-8 text (byte {})", error.utf8_error().valid_up_to())))
}

fn failure(name: &str, error: &CatalogueError) -> Failure {
    match error {
        CatalogueError::Invalid { .. } => {
            let text = format!("{name} is no model catalogue; nothing was changed.\n{error}");
            Failure::new(ErrorCode::InvalidField, text)
                .hint("docs/models.md describes the format (\"Another catalogue\").")
        }
        CatalogueError::Io { .. } => Failure::new(ErrorCode::Io, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_auth::AuthServices;

    use super::*;

    const SMALL: &str = r#"{"source":"s","defaults":{"p":"m"},"models":[{"id":"m","name":"M","api":"morse","provider":"p",
        "baseUrl":"http://h","input":["text"],"contextWindow":10,"maxTokens":5}]}"#;

    #[test]
    fn exactly_one_source() {
        let folder = tempfile::tempdir().unwrap();
        let context = Context {
            environment: [("AGENTD_DIR", folder.path())].into_iter().collect(),
            cwd: folder.path().to_owned(),
            compat: false,
            auth_services: AuthServices::default(),
        };
        let run = |path: Option<&str>, text: Option<&str>, reset: Option<bool>| {
            let params =
                UpdateModelsParams { path: path.map(str::to_owned), text: text.map(str::to_owned), reset };
            update(&context, params).map_err(|failure| failure.to_string())
        };
        for (path, text, reset) in [
            (None, None, None),
            (None, None, Some(false)),
            (Some("/x"), Some("{}"), None),
            (None, Some("{}"), Some(true)),
        ] {
            assert!(run(path, text, reset).unwrap_err().contains("exactly one of"));
        }
        assert!(run(Some("x"), None, None).unwrap_err().contains("an absolute one"));
        assert!(run(Some("/"), None, None).unwrap_err().contains("no regular file"));
        assert!(run(Some("/nonexistent"), None, None).unwrap_err().contains("/nonexistent: cannot be read"));
        let path = folder.path().join("c.json");
        fs::write(&path, b"{\xff").unwrap();
        assert!(run(path.to_str(), None, None).unwrap_err().contains("UTF-8 text (byte 1)"));
        fs::write(&path, "{\n}").unwrap();
        let error = run(path.to_str(), None, None).unwrap_err();
        assert!(error.contains("c.json is no model catalogue; nothing was changed.\nline 2: "), "{error}");
        fs::write(&path, SMALL).unwrap();
        let update = run(path.to_str(), None, None).unwrap();
        assert_eq!((update.models, update.not_spoken[0].models, update.removed_models), (1, 1, 1643));
        let update = run(None, Some(SMALL), None).unwrap();
        assert_eq!((update.added_models, update.changed_models, update.removed_models), (0, 0, 0));
        assert_eq!(run(None, None, Some(true)).unwrap().added_models, 1643);
    }
}
