//! `agentd --list-models [search]`: prints the models that can be used.

use std::path::Path;

use agentd_auth::AuthServices;
use agentd_config::{Environment, NoAgentDir, models::UsableModels};
use agentd_protocol::model::Model;

use crate::admin::Context;

/// The table of models whose `provider/id` or name contains `search`, and notes for the user.
///
/// # Errors
/// When the agent directory is unknown.
pub fn table(
    search: Option<&str>,
    environment: &Environment,
    compat: bool,
    cwd: &Path,
) -> Result<(String, Vec<String>), NoAgentDir> {
    let context = Context {
        environment: environment.clone(),
        cwd: cwd.to_owned(),
        compat,
        auth_services: AuthServices::default(),
    };
    let (registry, auth) = context.load()?;
    let providers = agentd_ai::ProviderRegistry::builtin();
    let apis: Vec<&str> = providers.apis().collect();
    let has_auth = |provider: &str| auth.is_configured(provider);
    let plan = |provider: &str| auth.available_models(provider);
    let offered =
        UsableModels { registry: &registry, apis: &apis, has_auth: &has_auth, plan: &plan }.available();
    let mut notes: Vec<String> = registry.catalogue_problem().map(ToString::to_string).into_iter().collect();
    notes.extend(registry.load_error().map(str::to_owned));
    notes.extend(auth.load_error());
    let found: Vec<&Model> =
        offered.iter().map(AsRef::as_ref).filter(|model| matches(model, search)).collect();
    if found.is_empty() {
        notes.push(match search.filter(|_| !offered.is_empty()) {
            Some(search) => format!("No model with a key matches \"{search}\"."),
            None => "No model has a key. Set a variable such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or store a key with \
                     `agentctl login PROVIDER`; `agentctl models --all` lists all models."
                .to_owned(),
        });
        return Ok((String::new(), notes));
    }
    Ok((rows(&found), notes))
}

fn matches(model: &Model, search: Option<&str>) -> bool {
    let search = search.unwrap_or_default().to_lowercase();
    format!("{}/{}\n{}", model.provider, model.id, model.name).to_lowercase().contains(&search)
}

fn rows(models: &[&Model]) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let mut cells =
        vec![["provider", "model", "context", "max-out", "thinking", "images"].map(str::to_owned)];
    cells.extend(models.iter().map(|model| {
        [
            model.provider.clone(),
            model.id.clone(),
            model.context_window.to_string(),
            model.max_tokens.to_string(),
            yes(model.reasoning),
            yes(model.sees_images()),
        ]
    }));
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_models_are_listed() {
        let home = tempfile::tempdir().unwrap();
        let models = r#"{"providers":{"a":{"baseUrl":"http://x","api":"openai-completions","apiKey":"k","models":[{"id":"one"},{"id":"second","reasoning":true}]}}}"#;
        std::fs::write(home.path().join("models.json"), models).unwrap();
        let mut environment = Environment::default();
        environment.set("AGENTD_DIR", home.path());
        let list = |search| table(search, &environment, false, Path::new("/")).unwrap();
        let (text, notes) = list(Some("SEC"));
        assert_eq!(
            text,
            "provider  model   context  max-out  thinking  images\na         second  128000   16384    yes       no\n"
        );
        assert!(notes.is_empty());
        assert_eq!(list(None).0.lines().count(), 3);
        assert_eq!(list(Some("none such")).1, ["No model with a key matches \"none such\"."]);
    }
}
