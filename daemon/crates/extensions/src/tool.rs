//! A tool of an extension, as the loop calls it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use agentd_agent::{ExecutionMode, Exposure, Invocation, PrepareFuture, Tool, ToolError, ToolFuture};
use agentd_protocol::tool::{ToolAnnotations, ToolResult, ToolSpec};
use serde_json::{Map, Value, json};

use crate::{
    connection::{RequestError, RequestTerms},
    registrations::RegisteredTool,
    runtime::Runtime,
};

/// Time for a tool to stop after an abort.
const ABORT_GRACE: Duration = Duration::from_secs(10);

/// Time to prepare arguments.
const PREPARE_WAIT: Duration = Duration::from_secs(60);

/// A tool of an extension.
pub(crate) struct ExtensionTool {
    /// Weak: the registry may keep a tool longer than the session its extensions.
    extensions: Weak<Runtime>,
    extension: usize,
    spec: Arc<ToolSpec>,
    tool: RegisteredTool,
}

impl ExtensionTool {
    pub(crate) fn new(extensions: Weak<Runtime>, extension: usize, tool: RegisteredTool) -> Self {
        let definition = &tool.definition;
        let spec = Arc::new(ToolSpec {
            name: definition.name.clone(),
            description: definition.description.clone(),
            parameters: definition.parameters.clone(),
            constrained_sampling: definition.constrained_sampling.clone(),
        });
        Self { extensions, extension, spec, tool }
    }
}

impl Tool for ExtensionTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn label(&self) -> Option<&str> {
        self.tool.definition.label.as_deref()
    }

    fn snippet(&self) -> Option<&str> {
        self.tool.definition.prompt_snippet.as_deref()
    }

    fn guidelines(&self) -> Vec<&str> {
        self.tool.definition.prompt_guidelines.iter().map(String::as_str).collect()
    }

    fn annotations(&self) -> Option<&ToolAnnotations> {
        self.tool.definition.annotations.as_ref()
    }

    fn exposure(&self) -> Exposure {
        Exposure::of(self.tool.definition.exposure.as_deref())
    }

    fn definition_facts(&self) -> Option<&Map<String, Value>> {
        Some(&self.tool.definition.others)
    }

    fn prepare_remotely<'a>(&'a self, arguments: &'a Map<String, Value>) -> Option<PrepareFuture<'a>> {
        if !self.tool.prepares {
            return None;
        }
        Some(Box::pin(async move {
            let name = &self.spec.name;
            let Some(extensions) = self.extensions.upgrade() else {
                return Err(format!("The extension of the tool {name} is closed."));
            };
            let fields = json!({
                "epoch": extensions.epoch_of(self.extension), "ext": extensions.ext(self.extension), "tool": name, "args": arguments,
            });
            let terms = RequestTerms { limit: Some(PREPARE_WAIT), ..RequestTerms::default() };
            let answer = extensions.host_of(self.extension).request("tool.prepare", &fields, terms).await;
            let answer = answer.map_err(|error| extensions.explain(&error, name))?;
            serde_json::from_str(answer.get()).map_err(|error| {
                format!("The arguments that the tool {name} prepared cannot be used: {error}")
            })
        }))
    }

    fn execution(&self) -> ExecutionMode {
        match self.tool.definition.execution_mode.as_deref() {
            Some("sequential") => ExecutionMode::Sequential,
            _ => ExecutionMode::Parallel,
        }
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(async move {
            let name = &self.spec.name;
            let Some(extensions) = self.extensions.upgrade() else {
                return Err(ToolError(format!("The extension of the tool {name} is closed.")));
            };
            let Invocation { call_id, arguments, cancel, progress, .. } = invocation;
            let fields = json!({
                "epoch": extensions.epoch_of(self.extension), "ext": extensions.ext(self.extension), "tool": name, "toolCallId": call_id,
                "params": arguments,
            });
            let partials = move |partial: Value| {
                if let Ok(partial) = serde_json::from_value(partial) {
                    progress.report(partial);
                }
            };
            let terms = RequestTerms {
                limit: None,
                cancel: Some(&cancel),
                grace: ABORT_GRACE,
                partials: Some(Box::new(partials)),
                ..RequestTerms::default()
            };
            let answer = extensions.host_of(self.extension).request("tool.execute", &fields, terms).await;
            let answer = answer.map_err(|error| {
                ToolError(match error {
                    RequestError::Failed(failure) => failure.message,
                    RequestError::Late => format!("Tool \"{name}\" did not stop after abort"),
                    RequestError::Restarting => {
                        format!("Tool \"{name}\" is unavailable: its extension host is restarting")
                    }
                    gone @ RequestError::Gone(_) => extensions.explain(&gone, name),
                })
            })?;
            serde_json::from_str::<ToolResult>(answer.get())
                .map_err(|error| ToolError(format!("The result of the tool {name} cannot be used: {error}")))
        })
    }
}
