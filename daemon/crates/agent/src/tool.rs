//! A tool as the loop sees it, and the set of a session's tools.

use std::{ffi::OsString, path::PathBuf, pin::Pin, sync::Arc};

use agentd_images::Images;
use agentd_protocol::tool::{ToolAnnotations, ToolResult, ToolSpec};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::arguments::ArgumentSchema;

/// The result of [`Tool::execute`], later.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send + 'a>>;

/// An action that a model can request.
///
/// A tool belongs to one session and is shared by its calls, which may run at the same time.
pub trait Tool: Send + Sync {
    /// The name, the description and the schema of the arguments.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// The name that people see; `None`: the tool's own.
    fn label(&self) -> Option<&str> {
        None
    }

    /// What the tool's provider says of it. Nobody has checked it.
    fn annotations(&self) -> Option<&ToolAnnotations> {
        None
    }

    /// Whether calls change nothing, as the tool's provider says and the user has said to believe. Permissions then judge them as reading.
    fn is_trusted_read(&self) -> bool {
        false
    }

    /// One line for the system prompt: what the tool does. `None` keeps the tool out of the list there.
    fn snippet(&self) -> Option<&str> {
        None
    }

    /// Advice for the system prompt, a sentence each.
    fn guidelines(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether calls of this tool may run beside others.
    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    /// Whether the tool itself prepares the images of its results by [`Invocation::images`]; the loop prepares those of other tools.
    fn prepares_images(&self) -> bool {
        false
    }

    /// The tool that this one belongs to: unless configured otherwise, this one is active when that one is.
    fn comes_with(&self) -> Option<&str> {
        None
    }

    /// Whether the tool belongs to a mode of the session, such as plan mode: whatever tools were chosen, the model can call it while
    /// [`Self::exposure`] says so.
    fn comes_with_mode(&self) -> bool {
        false
    }

    /// Whether calls change nothing, as the tool's provider says. Plan mode takes its word; permissions do not.
    fn declares_reading(&self) -> bool {
        self.is_trusted_read()
            || self.annotations().is_some_and(|annotations| annotations.read_only_hint == Some(true))
    }

    /// Repairs common errors of models before the arguments are checked against the schema.
    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
    }

    /// Prepares the arguments where that takes a while; `None`: [`Self::prepare`] does.
    fn prepare_remotely<'a>(&'a self, _arguments: &'a Map<String, Value>) -> Option<PrepareFuture<'a>> {
        None
    }

    /// Whether a result with `terminate` ends the run whatever the other calls of the answer say. Calls behind it are not run then: such a
    /// tool is sequential.
    fn ends_run(&self) -> bool {
        false
    }

    /// Who can call the tool.
    fn exposure(&self) -> Exposure {
        Exposure::Direct
    }

    /// What else the definition of an extension's tool says, as it says it.
    fn definition_facts(&self) -> Option<&Map<String, Value>> {
        None
    }

    /// Executes the call.
    ///
    /// The future must end soon after `invocation.cancel` fires, and end everything that it started; its output still becomes the call's
    /// result. A future that does not end within a fraction of a second is detached, and its output is lost. It is never dropped before it
    /// ends.
    ///
    /// # Errors
    /// The message becomes the call's result, for the model to act on.
    fn execute(&self, invocation: Invocation) -> ToolFuture<'_>;
}

/// Arguments that were prepared, later.
pub type PrepareFuture<'a> = Pin<Box<dyn Future<Output = Result<Map<String, Value>, String>> + Send + 'a>>;

/// Who can call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exposure {
    /// The model, and other tools.
    #[default]
    Direct,
    /// The model alone.
    ModelOnly,
    /// Other tools alone, such as those that run programs of the model.
    Codemode,
    /// Other tools, and the model once something has shown the tool to it.
    Deferred,
    /// Nobody.
    Hidden,
}

impl Exposure {
    /// The exposure of that name; direct for names that mean nothing.
    #[must_use]
    pub fn of(name: Option<&str>) -> Self {
        match name {
            Some("model-only") => Self::ModelOnly,
            Some("codemode") => Self::Codemode,
            Some("deferred") => Self::Deferred,
            Some("hidden") => Self::Hidden,
            _ => Self::Direct,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::ModelOnly => "model-only",
            Self::Codemode => "codemode",
            Self::Deferred => "deferred",
            Self::Hidden => "hidden",
        }
    }

    /// Whether the tool can be declared to the model.
    #[must_use]
    pub const fn is_for_models(self) -> bool {
        matches!(self, Self::Direct | Self::ModelOnly)
    }
}

/// Whether calls of a tool may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    /// They may.
    Parallel,
    /// One such call makes the whole batch run one after the other.
    Sequential,
}

/// A complete environment of child processes.
pub type ToolEnvironment = Arc<[(OsString, OsString)]>;

/// One call of a tool.
#[derive(Clone)]
pub struct Invocation {
    /// The call's id.
    pub call_id: String,
    /// The arguments, prepared and checked against the schema.
    pub arguments: Value,
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// Whether the current model can see images.
    pub sees_images: bool,
    /// Makes images fit for models.
    pub images: Images,
    /// Variables of the session for child processes (`PI_SESSION_ID`, `PI_MODEL`, …), on top of the session's environment.
    pub session_env: Vec<(String, String)>,
    /// The complete environment of child processes instead of the session's, if the client that began the run has its own.
    pub environment: Option<ToolEnvironment>,
    /// Fires when the run is aborted.
    pub cancel: CancellationToken,
    /// Receives partial results while the call runs.
    pub progress: ToolProgress,
}

/// Receives the partial results of a running call. Cheap to clone; never blocks.
#[derive(Clone)]
pub struct ToolProgress {
    report: Arc<dyn Fn(ToolResult) + Send + Sync>,
    published: Option<Published>,
}

/// Waits until all partial results are published.
type Published = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl ToolProgress {
    /// A sink that calls `report` for each partial result.
    pub fn new(report: impl Fn(ToolResult) + Send + Sync + 'static) -> Self {
        Self { report: Arc::new(report), published: None }
    }

    /// The same sink, with a way to wait until what was reported is published.
    #[must_use]
    pub fn with_published(
        self,
        published: impl Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static,
    ) -> Self {
        Self { published: Some(Arc::new(published)), ..self }
    }

    /// Waits until what was reported is published, where there is a way to know: what the tool asks the user then comes after it. Cancel
    /// safe.
    pub async fn published(&self) {
        if let Some(published) = &self.published {
            published().await;
        }
    }

    /// Reports `partial`, the result so far, which replaces earlier ones.
    pub fn report(&self, partial: ToolResult) {
        (self.report)(partial);
    }
}

/// A call that failed; the message goes to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

/// Tools in a fixed order, found by name.
#[derive(Default)]
pub struct ToolSet {
    tools: Vec<RegisteredTool>,
}

/// A tool and the check of its arguments.
pub struct RegisteredTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Checks arguments against the tool's schema.
    pub arguments: ArgumentSchema,
}

impl ToolSet {
    /// Takes the tools in the order in which models and system prompts see them.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools
            .into_iter()
            .map(|tool| RegisteredTool { arguments: ArgumentSchema::new(&tool.spec().parameters), tool })
            .collect();
        Self { tools }
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.iter().find(|registered| registered.tool.spec().name == name)
    }

    /// All tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|registered| &registered.tool)
    }

    /// The descriptions of the tools for models.
    #[must_use]
    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.iter().map(|tool| Arc::clone(tool.spec())).collect()
    }
}
