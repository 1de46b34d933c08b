//! The tool `ast_edit`: shows what a rewriting would change, and changes it once the call names that preview.

mod apply;
mod plan;

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::Duration,
};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    syntax::AST_EDIT_TOOL,
    tool::{ToolResult, ToolSpec},
};
use serde::Deserialize;
use serde_json::json;

use self::plan::EditPlan;
use super::{
    program::SyntaxProgram,
    request::{SyntaxContext, Target, properties},
    search::CodeSearch,
};
use crate::{
    arguments,
    file_changes::{ChangeApproval, ChangePlace},
    home::Home,
    limits::MAX_SIZE,
    operations::FileHost,
};

/// What `ast_edit` works with.
pub struct AstEditOptions {
    /// The program that parses.
    pub program: SyntaxProgram,
    /// The session's home directory, for `~`.
    pub home: PathBuf,
    /// The files that are searched.
    pub host: Arc<dyn FileHost>,
    /// How long the program may take for a request.
    pub timeout: Duration,
    /// Where files are changed: the same files, of which an editor may have texts of its own.
    pub place: ChangePlace,
    /// Decides about each file.
    pub approval: Arc<dyn ChangeApproval>,
}

/// Changes code by its structure.
pub struct AstEditTool {
    context: SyntaxContext,
    place: ChangePlace,
    approval: Arc<dyn ChangeApproval>,
}

impl AstEditTool {
    /// The tool of one session.
    #[must_use]
    pub fn new(options: AstEditOptions) -> Self {
        let AstEditOptions { program, home, host, timeout, place, approval } = options;
        let context = SyntaxContext { program, home: Home::new(home), host, timeout };
        Self { context, place, approval }
    }

    async fn run(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let Invocation { call_id, arguments, cwd, cancel, .. } = invocation;
        let AstEditArguments { target, rewrite, apply } = arguments::parse(arguments)?;
        let search = CodeSearch {
            context: &self.context,
            target: &target,
            rewrite: Some(&rewrite),
            cwd: &cwd,
            cancel: &cancel,
        };
        let mut plan = EditPlan::default();
        let facts = search.run(|file| file, |file| plan.add(file).map(|()| true)).await?;
        let id = plan.id();
        let notices = facts.notices();
        match apply.as_deref().map(str::trim).filter(|given| !given.is_empty()) {
            None => Ok(plan.preview(&id, &facts, notices)),
            Some(_) if plan.is_empty() => Err(ToolError(format!(
                "Nothing was changed: no code matches any more that the rewriting would change. {}",
                notices.join(". ")
            ))),
            Some(given) if given != id => Err(ToolError(format!(
                "Nothing was changed: the changes are not those of the preview {given:?}, since files or arguments differ. These are \
                 the changes now:\n\n{}",
                plan.preview_text(&id, notices)
            ))),
            Some(_) => {
                let made = apply::Application {
                    plan: &plan,
                    place: &self.place,
                    approval: &*self.approval,
                    call_id: &call_id,
                    cwd: &cwd,
                    cancel: &cancel,
                };
                made.run().await
            }
        }
    }
}

/// The tool's description for models; the same in all sessions.
static SPEC: LazyLock<Arc<ToolSpec>> = LazyLock::new(|| {
    let mut properties = properties();
    properties.insert(
        "rewrite".to_owned(),
        json!({"type": "string", "description": "What takes the place of each match; the names of the pattern stand for what they matched"}),
    );
    properties.insert(
        "apply".to_owned(),
        json!({"type": "string", "description": "The id of a preview: makes its changes. Without it, nothing is changed"}),
    );
    Arc::new(ToolSpec {
        name: AST_EDIT_TOOL.to_owned(),
        description: format!(
            "Rewrite code by its structure in many files: every match of pattern becomes rewrite. A call without apply changes nothing \
             and returns a preview: a diff of at most {MAX_SIZE}, and its id. Call again with the same arguments and that id as apply to \
             make the changes, in all files or in none. Narrow path and glob to what is meant."
        ),
        parameters: json!({"type": "object", "properties": properties, "required": ["pattern", "rewrite"]}),
        constrained_sampling: None,
    })
});

#[derive(Deserialize)]
struct AstEditArguments {
    #[serde(flatten)]
    target: Target,
    rewrite: String,
    apply: Option<String>,
}

impl Tool for AstEditTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Rewrite code by its structure, after a preview")
    }

    fn guidelines(&self) -> Vec<&str> {
        vec![
            "Use ast_edit for the same change in many places, such as renaming a call or changing its arguments; look at its preview before you apply it.",
        ]
    }

    fn execution(&self) -> ExecutionMode {
        // Other calls of the batch may change the files that are searched.
        ExecutionMode::Sequential
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.run(invocation))
    }
}
