//! A session in a temporary home, a model that says one delta at a time, a tool that ends when it is told.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture, hooks::HookGate};
use agentd_ai::{Delta, DeltaStream, Provider, ProviderRegistry, Request};
use agentd_config::{Environment, resources::ResourceFlags};
use agentd_process::{GuardCommand, Launcher, LocalShell};
use agentd_protocol::{
    command::Command,
    settings::BudgetLimits,
    tool::{ToolResult, ToolSpec},
};
use agentd_session::{
    Attached, Audience, FeedItem, Interner, Limits, Reply, Services, SessionHandle, SessionOptions,
    SessionWatch, Subscriber, Target, ToolSelection, Toolbox, open,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits, but not for ever.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    timeout(DEADLINE, work).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// A model whose answers come from the test.
struct Stepped(Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Delta>>>);

impl Provider for Stepped {
    fn stream(&self, _request: Request, cancel: CancellationToken) -> DeltaStream {
        let deltas = Arc::clone(&self.0);
        Box::pin(futures::stream::unfold((deltas, cancel), |(deltas, cancel)| async move {
            let next = async { deltas.lock().await.recv().await };
            let delta = tokio::select! {
                delta = next => delta?,
                () = cancel.cancelled() => return None,
            };
            Some((delta, (deltas, cancel)))
        }))
    }
}

/// What a call of the tool is told to do.
enum ToolStep {
    Report(String),
    End(String),
}

/// The orders of each call, by its id.
#[derive(Default)]
struct Orders(Mutex<HashMap<String, Order>>);

/// Both ends; the call takes the second.
type Order = (mpsc::UnboundedSender<ToolStep>, Option<mpsc::UnboundedReceiver<ToolStep>>);

impl Orders {
    fn give(&self, call: &str, step: ToolStep) {
        let mut calls = self.0.lock().unwrap();
        calls.entry(call.to_owned()).or_insert_with(orders).0.send(step).unwrap();
    }

    fn take(&self, call: &str) -> mpsc::UnboundedReceiver<ToolStep> {
        let mut calls = self.0.lock().unwrap();
        calls.entry(call.to_owned()).or_insert_with(orders).1.take().expect("a call is made once")
    }
}

fn orders() -> Order {
    let (give, take) = mpsc::unbounded_channel();
    (give, Some(take))
}

/// A tool whose calls do what the test says, and fail when they are stopped. Those whose ids begin with `deaf` do not hear that.
struct SteppedTool {
    spec: Arc<ToolSpec>,
    orders: Arc<Orders>,
}

impl Tool for SteppedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn execution(&self) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        let mut orders = self.orders.take(&invocation.call_id);
        Box::pin(async move {
            let is_deaf = invocation.call_id.starts_with("deaf");
            loop {
                let step = tokio::select! {
                    step = orders.recv() => step,
                    () = invocation.cancel.cancelled(), if !is_deaf => return Err(ToolError("stopped by hand".into())),
                };
                match step.expect("orders") {
                    ToolStep::Report(text) => invocation.progress.report(ToolResult::text(text)),
                    ToolStep::End(text) => return Ok(ToolResult::text(text)),
                }
            }
        })
    }
}

/// A session at work.
pub(crate) struct Fixture {
    pub(crate) session: SessionHandle,
    /// Takes everything from the start.
    pub(crate) first: Subscription,
    model: mpsc::UnboundedSender<Delta>,
    orders: Arc<Orders>,
    home: TempDir,
    /// What was told of sessions.
    pub(crate) news: Arc<News>,
    pub(crate) services: Arc<Services>,
    pub(crate) options: SessionOptions,
}

/// Counts what it is told.
#[derive(Default)]
pub(crate) struct News {
    changes: AtomicUsize,
}

impl News {
    /// How many changes were told since the last call.
    pub(crate) fn changes(&self) -> usize {
        self.changes.swap(0, Ordering::AcqRel)
    }
}

impl SessionWatch for News {
    fn changed(&self, _id: &str) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn idle(&self, _id: &str) {}
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with("test-key", json!({})).await
    }

    /// A session whose model has that key, with these settings.
    pub(crate) async fn with(key: &str, settings: Value) -> Self {
        Self::build(key, settings, HookGate::default(), Limits::default()).await
    }

    /// A session that asks before anything starts.
    pub(crate) async fn gated(gate: HookGate) -> Self {
        Self::build("test-key", json!({}), gate, Limits::default()).await
    }

    /// A session with these limits.
    pub(crate) async fn limited(limits: Limits) -> Self {
        Self::build("test-key", json!({}), HookGate::default(), limits).await
    }

    async fn build(key: &str, settings: Value, gate: HookGate, limits: Limits) -> Self {
        let home = tempfile::Builder::new().prefix("agentd-session-").tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let models = json!({"providers": {"fake": {
            "baseUrl": "http://127.0.0.1:1", "api": "stepped", "apiKey": key, "models": [{"id": "fake"}],
        }}});
        fs::write(root.join("models.json"), models.to_string()).unwrap();
        fs::write(root.join("settings.json"), settings.to_string()).unwrap();
        let (model, deltas) = mpsc::unbounded_channel();
        let orders = Arc::new(Orders::default());
        let stepped = Stepped(Arc::new(tokio::sync::Mutex::new(deltas)));
        let news = Arc::new(News::default());
        let services = services(stepped, Arc::clone(&orders), Arc::clone(&news), gate, limits);
        let opened = open(Arc::clone(&services), options(&root)).await.unwrap();
        let session = opened.handle;
        let first = Subscription::new(session.feed().attach());
        Self { session, first, model, orders, home, news, services, options: options(&root) }
    }

    /// A path in the session's folder.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    /// Sends a command as the first subscriber.
    pub(crate) async fn send(&self, id: &str, command: Value) {
        let command = Command::parse(command["type"].as_str().unwrap(), &command.to_string());
        let Some(Ok(Command::Session(command))) = command else { panic!("{command:?}") };
        let (subscriber, id, name) = (self.first.subscriber.id(), Some(id.into()), command.name());
        let reply = Reply {
            subscriber,
            id,
            command: name,
            environment: None,
            is_of_user: true,
            hears_results: false,
            memory: None,
        };
        assert!(self.session.send(command, reply).await, "a session that lives");
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn call(&mut self, id: &str, command: Value) -> Value {
        self.send(id, command).await;
        self.first.until(|line| line["type"] == "response" && line["id"] == id).await
    }

    pub(crate) async fn prompt(&mut self, text: &str) {
        let answer = self.call("prompt", json!({"type": "prompt", "message": text})).await;
        assert_eq!(answer["success"], true, "{answer}");
    }

    /// The model says something.
    pub(crate) fn say(&self, delta: Delta) {
        self.model.send(delta).unwrap();
    }

    /// A running call shows something.
    pub(crate) fn report(&self, call: &str, text: &str) {
        self.orders.give(call, ToolStep::Report(text.into()));
    }

    /// A running call ends.
    pub(crate) fn end_call(&self, call: &str, text: &str) {
        self.orders.give(call, ToolStep::End(text.into()));
    }

    /// The number of the session's tools that are in memory.
    pub(crate) fn tools_in_memory(&self) -> usize {
        // One reference is the fixture's, one that of what makes the tools.
        Arc::strong_count(&self.orders) - 2
    }

    pub(crate) async fn attach(&self) -> Attached {
        soon("a snapshot", self.session.attach(None)).await.expect("a session that lives")
    }
}

fn services(
    model: Stepped,
    orders: Arc<Orders>,
    watch: Arc<News>,
    gate: HookGate,
    limits: Limits,
) -> Arc<Services> {
    let guard = env!("CARGO_BIN_EXE_agentd-session-test-guard");
    Arc::new(Services {
        providers: ProviderRegistry::default().with("stepped", Arc::new(model)),
        launcher: Launcher::new(GuardCommand { program: guard.into(), args: Vec::new() }),
        prompt_recorder: agentd_prompt_history::PromptRecorder::new(TaskTracker::new()),
        tasks: TaskTracker::new(),
        models: agentd_config::models::SharedModels::default(),
        child_environments: Interner::default(),
        auth_services: agentd_auth::AuthServices::default(),
        images: agentd_images::Images::default(),
        outputs: agentd_process::OutputMeter::default(),
        memory: agentd_memory::MemoryAccount::default(),
        sandbox_support: agentd_session::SupportCache::default(),
        mcp_servers: agentd_mcp::SharedServers::default(),
        language_servers: Default::default(),
        discovery: agentd_discovery::DiscoveryCache::default(),
        program_logs: Default::default(),
        kernels: agentd_kernels::KernelPool::default(),
        undo: agentd_checkpoints::UndoServices::default(),
        epoch: "epoch".into(),
        limits,
        observers: None,
        subagent_hosting: Default::default(),
        subagent_slots: Default::default(),
        watch,
        tools: Box::new(move |context| {
            let spec = ToolSpec {
                name: "bash".into(),
                description: String::new(),
                parameters: json!({"type": "object"}),
                constrained_sampling: None,
            };
            let (group, path, env) = (context.processes, context.shell_path, context.environment);
            Toolbox {
                tools: vec![Arc::new(SteppedTool { spec: Arc::new(spec), orders: Arc::clone(&orders) })],
                changes: agentd_tools::FileQueue::new(),
                shell: Arc::new(LocalShell { group, path, env, sandbox: None, snapshot: None }),
                gate: gate.clone(),
            }
        }),
    })
}

fn options(root: &Path) -> SessionOptions {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut environment = Environment::default();
    environment.set("AGENTD_DIR", root);
    environment.set("HOME", root);
    environment.set("TMPDIR", root);
    environment.set("PATH", path);
    SessionOptions {
        sandbox: agentd_session::SandboxOptions::default(),
        cwd: root.to_owned(),
        environment,
        compat: false,
        target: Target::New,
        preferred: None,
        session_dir: None,
        name: None,
        provider: None,
        model: None,
        models: None,
        fallback_models: None,
        api_key: None,
        thinking: None,
        system_prompt: None,
        append_system_prompt: Vec::new(),
        ssh: None,
        tools: ToolSelection::default(),
        no_context_files: true,
        no_mcp: false,
        mcp_on_demand: false,
        todo: false,
        task: false,
        syntax: false,
        async_jobs: false,
        lsp: false,
        web: false,
        subagent: None,
        additional_directories: Vec::new(),
        mcp_servers: Vec::new(),
        undo: None,
        extension_flags: Vec::new(),
        resources: ResourceFlags { no_skills: true, no_prompts: true, ..ResourceFlags::default() },
        approve: None,
        permissions: agentd_session::PermissionOptions::default(),
        budget: BudgetLimits::default(),
        mode: agentd_session::SessionMode::Rpc,
        initial_mode: agentd_session::InitialMode::Default,
    }
}

/// A subscriber of a session, and what it has read.
pub(crate) struct Subscription {
    pub(crate) subscriber: Subscriber,
    /// The events so far.
    pub(crate) events: Vec<Value>,
    /// Lines that were taken and not looked at yet.
    ahead: std::collections::VecDeque<Value>,
}

impl Subscription {
    pub(crate) fn new(subscriber: Subscriber) -> Self {
        Self { subscriber, events: Vec::new(), ahead: std::collections::VecDeque::new() }
    }

    /// The next line; `None` at the end of the session.
    async fn line(&mut self) -> Option<Value> {
        while self.ahead.is_empty() {
            let mut items = Vec::new();
            if !soon("a line", self.subscriber.next_items(&mut items)).await {
                return None;
            }
            self.ahead.extend(items.iter().map(|item| match item {
                // In the form for all.
                FeedItem::Event { line, audience: Audience::Settled { split }, .. } => {
                    serde_json::from_slice::<Value>(&line[..*split as usize]).unwrap()
                }
                FeedItem::Event { line, .. } | FeedItem::Reply { line } | FeedItem::Addressed { line } => {
                    serde_json::from_slice::<Value>(line).unwrap()
                }
                FeedItem::LongReply { reply } => serde_json::from_slice::<Value>(&reply.line()).unwrap(),
                FeedItem::Lagged { from_seq } => panic!("cut off at {from_seq}"),
            }));
        }
        let line = self.ahead.pop_front()?;
        if line["type"] != "response" {
            self.events.push(line.clone());
        }
        Some(line)
    }

    /// Reads until a line is as wished, and gives it.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.line().await.expect("a session that has not ended");
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Reads until an event of that type.
    pub(crate) async fn until_event(&mut self, kind: &str) -> Value {
        self.until(|line| line["type"] == kind).await
    }

    /// Reads to the end of the session: the answers.
    pub(crate) async fn answers(mut self) -> Vec<Value> {
        let mut answers = Vec::new();
        while let Some(line) = self.line().await {
            answers.extend((line["type"] == "response").then_some(line));
        }
        answers
    }

    /// Reads to the end of the session.
    pub(crate) async fn read_out(mut self) -> Vec<Value> {
        while self.line().await.is_some() {}
        self.events
    }
}
