//! Diagnostics of the files and settings of a session, and where each setting comes from.

use std::sync::Arc;

use agentd_auth::scrub;
use agentd_config::{
    models::{UsableModels, without_effect},
    settings::{ExplainQuestion, UnknownSetting, explain},
};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    explain::{ExplainSettingParams, SettingExplanation, SettingLayer, SettingSource},
    resources::{Diagnostic, DiagnosticKind, Diagnostics},
    shown_url::shown,
};
use serde_json::Value;
use tokio::task::{JoinError, spawn_blocking};

use super::session_actor::Actor;
use crate::{context::SessionContext, options::SessionOptions, reply::Reply};

/// The variable that comes before the setting `sessionDir`.
const SESSION_DIR: &str = "PI_CODING_AGENT_SESSION_DIR";

impl Actor {
    /// Answers when the files were read; the session goes on meanwhile.
    pub(super) fn get_diagnostics(&mut self, reply: Reply) {
        let (feed, context) = (self.feed.clone(), Arc::clone(&self.context));
        let of_models = self.models_file.problem().cloned();
        self.tasks.spawn(async move {
            let read = spawn_blocking(move || {
                let of_files = context.resource_diagnostics();
                let without_effect = context.models_without_effect();
                let found = context.diagnostics.iter().cloned().chain(of_models);
                let of_shell = context.shell_session.snapshot_problem();
                let of_shell = of_shell.map(|why| Diagnostic::warning(DiagnosticKind::Tools, why));
                let diagnostics = found.chain(of_files).chain(without_effect).chain(of_shell).collect();
                Diagnostics { diagnostics, unconfigured: context.is_unconfigured() }
            });
            let failed = |error: JoinError| Failure::new(ErrorCode::Internal, error.to_string());
            reply.result(&feed, read.await.map_err(failed));
        });
    }

    /// Answers when the files were read; the session goes on meanwhile.
    pub(super) fn explain_setting(&mut self, params: ExplainSettingParams, reply: Reply) {
        let (feed, context, options) =
            (self.feed.clone(), Arc::clone(&self.context), Arc::clone(self.trust.options()));
        self.tasks.spawn(async move {
            let explained = spawn_blocking(move || explained(&params.key, &context, &options)).await;
            let failed = |error: &dyn std::fmt::Display| Failure::new(ErrorCode::Internal, error.to_string());
            reply.result(&feed, explained.unwrap_or_else(|error| Err(failed(&error))));
        });
    }
}

impl SessionContext {
    /// Parts of `models.json` without effect. Listed on request, not at every start.
    fn models_without_effect(&self) -> Vec<Diagnostic> {
        let apis = self.apis();
        let apis: Vec<&str> = apis.iter().map(String::as_str).collect();
        let usable_models =
            UsableModels { registry: &self.models, apis: &apis, has_auth: &|_| false, plan: &|_| None };
        without_effect(&usable_models, &self.agent_dir.models_file())
    }
}

fn explained(
    key: &str,
    context: &SessionContext,
    options: &SessionOptions,
) -> Result<SettingExplanation, Failure> {
    let question = ExplainQuestion {
        key,
        agent_dir: &context.agent_dir,
        cwd: &options.cwd,
        environment: &context.environment,
        approve: options.approve.or(context.prompt.is_trusted().then_some(true)),
        over: &over(key, context, options),
        in_use: Some(&context.settings),
    };
    explain(question).map(|explanation| without_secrets(key, explanation)).map_err(|error| {
        let UnknownSetting { similar, .. } = &error;
        let failure = Failure::new(ErrorCode::NotFound, error.to_string());
        match similar.as_slice() {
            [] => failure.hint("schemas/settings.json lists them all."),
            similar => failure.hint(format!("Did you mean {}?", similar.join(" or "))),
        }
    })
}

/// The same without the passwords of addresses, without headers of telemetry, and without secrets that are known.
fn without_secrets(key: &str, mut explanation: SettingExplanation) -> SettingExplanation {
    let values = explanation.layers.iter_mut().map(|layer| &mut layer.value);
    for value in values.chain([&mut explanation.value, &mut explanation.in_session]).flatten() {
        hide_headers(key, value);
        clean(value);
    }
    explanation
}

/// The headers of telemetry hold keys, which this process may not have registered: it has not read the file since it changed.
fn hide_headers(key: &str, value: &mut Value) {
    match (key, value) {
        ("telemetry", Value::Object(fields)) => {
            fields
                .get_mut("headers")
                .into_iter()
                .for_each(|headers| hide_headers("telemetry.headers", headers));
        }
        ("telemetry.headers", Value::Object(headers)) => {
            headers.values_mut().for_each(|value| *value = "[redacted]".into());
        }
        (key, value) if key.starts_with("telemetry.headers") => *value = "[redacted]".into(),
        _ => {}
    }
}

fn clean(value: &mut Value) {
    match value {
        // An address that lacks its scheme is none, and may hold a password all the same.
        Value::String(text) => {
            match text.rsplit_once('@').filter(|(user, _)| !user.contains("://") && user.contains(':')) {
                Some((_, host)) => *text = format!("[redacted]@{host}"),
                None => *text = scrub(&shown(text)).into_owned(),
            }
        }
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The preset of the project's policy, which counts where it is stricter than the one that is given otherwise.
fn project_preset(context: &SessionContext, options: &SessionOptions) -> Option<SettingLayer> {
    let preset = context.permissions.project_preset()?;
    let of_user = context.settings.permissions.as_ref().and_then(|permissions| permissions.preset);
    let given = options.permissions.preset.or(of_user).unwrap_or_default();
    let counts = preset.stricter(given) != given;
    Some(SettingLayer {
        source: SettingSource::Project,
        name: Some(".agentd/policy.json".to_owned()),
        path: None,
        line: None,
        value: Some(preset.as_str().into()),
        counts,
        note: (!counts).then(|| "a project's preset counts where it is stricter".to_owned()),
    })
}

/// What overrides a setting, the strongest first: flags, variables, the preset of a stricter project.
fn over(key: &str, context: &SessionContext, options: &SessionOptions) -> Vec<SettingLayer> {
    let layer = |source, name: &str, value: Value| SettingLayer {
        source,
        name: Some(name.to_owned()),
        path: None,
        line: None,
        value: Some(value),
        counts: true,
        note: None,
    };
    let flag = |name: &str, value: Option<Value>| value.map(|value| layer(SettingSource::Flag, name, value));
    let text = |text: &Option<String>| text.clone().map(Value::from);
    let found = match key {
        "defaultModel" => vec![flag("--model", text(&options.model))],
        "defaultProvider" => vec![flag("--provider", text(&options.provider))],
        "defaultThinkingLevel" => {
            vec![flag("--thinking", options.thinking.map(|level| level.as_str().into()))]
        }
        "fallbackModels" => {
            vec![flag("--fallback-models", options.fallback_models.clone().map(Value::from))]
        }
        "enabledModels" => vec![flag("--models", options.models.clone().map(Value::from))],
        "defaultProjectTrust" => vec![match options.approve {
            Some(true) => flag("--approve", Some(true.into())),
            Some(false) => flag("--no-approve", Some(true.into())),
            None => None,
        }],
        "defaultTools" => {
            let exclude = &options.tools.exclude;
            vec![
                flag("--no-tools", options.tools.none.then_some(true.into())),
                flag("--tools", options.tools.allow.clone().map(Value::from)),
                flag("--exclude-tools", (!exclude.is_empty()).then(|| exclude.clone().into())),
            ]
        }
        "permissions.preset" => {
            let of_project = project_preset(context, options);
            let is_stricter = of_project.as_ref().is_some_and(|layer| layer.counts);
            let preset = options.permissions.preset.map(|preset| preset.as_str().into());
            let by_flag = flag("--permissions", preset).map(|layer| SettingLayer {
                counts: !is_stricter,
                note: is_stricter.then(|| "the project is stricter".to_owned()),
                ..layer
            });
            vec![of_project, by_flag]
        }
        "sessionDir" => {
            let given = flag(
                "--session-dir",
                options.session_dir.as_ref().map(|path| path.display().to_string().into()),
            );
            let variable = options.environment.non_empty(SESSION_DIR).map(|value| SettingLayer {
                counts: given.is_none(),
                ..layer(SettingSource::Environment, SESSION_DIR, value.into())
            });
            vec![given, variable]
        }
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}
