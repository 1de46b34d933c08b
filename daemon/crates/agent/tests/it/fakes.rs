//! A host that records, a model that answers from a list, tools that do as told.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use agentd_agent::{
    ExecutionMode, Host, HostError, Invocation, RunStart, StoppedCall, Tool, ToolFuture, ToolSet, TurnSetup,
    TurnSetupError,
    hooks::HookGate,
    queue::{QueueKind, QueuedMessage, Queues, Ticket},
    user_message,
};
use agentd_ai::{BlockKind, BlockSeal, Delta, DeltaStream, Provider, Request, failure::Failure};
use agentd_images::Images;
use agentd_protocol::{
    Json,
    event::Event,
    message::{AssistantMessage, Message, StopReason, ToolCall},
    model::Model,
    tool::ToolSpec,
};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What the model does when it is asked once.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Says something.
    Text(&'static str),
    /// Calls tools: name and arguments.
    Calls(Vec<(&'static str, Value)>),
    /// Calls tools and is cut off by the output limit.
    CutOff(Vec<(&'static str, Value)>),
    /// Says something, then waits until it is aborted.
    Hang(&'static str),
}

pub(crate) struct Model1 {
    answers: Mutex<VecDeque<Answer>>,
    pub(crate) requests: Mutex<Vec<Request>>,
}

impl Provider for Model1 {
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream {
        self.requests.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front().expect("the model is asked too often");
        let done = |stop_reason| Delta::Done { stop_reason, raw_stop_reason: None };
        let mut deltas = vec![Delta::Started];
        match answer {
            Answer::Text(text) => {
                deltas.extend(text_block(text));
                deltas.push(done(StopReason::Stop));
            }
            Answer::Calls(calls) => {
                deltas.extend(call_blocks(&calls));
                deltas.push(done(StopReason::ToolUse));
            }
            Answer::CutOff(calls) => {
                deltas.extend(call_blocks(&calls));
                deltas.push(done(StopReason::Length));
            }
            Answer::Hang(text) => {
                deltas.extend(text_block(text).into_iter().take(2));
                // A stream that ends without a last delta once it is cancelled.
                let wait = async_stream_end(cancel);
                return Box::pin(futures::stream::iter(deltas).chain(wait));
            }
        }
        Box::pin(futures::stream::iter(deltas))
    }
}

fn async_stream_end(cancel: CancellationToken) -> impl futures::Stream<Item = Delta> + Send {
    futures::stream::once(async move { cancel.cancelled().await }).filter_map(|()| async { None })
}

fn text_block(text: &str) -> Vec<Delta> {
    vec![
        Delta::Open { index: 0, kind: BlockKind::Text },
        Delta::Extend { index: 0, delta: text.into() },
        Delta::Seal { index: 0, seal: BlockSeal::default() },
    ]
}

fn call_blocks(calls: &[(&str, Value)]) -> Vec<Delta> {
    let block = |(index, (name, arguments)): (usize, &(&str, Value))| {
        let kind = BlockKind::ToolCall { id: format!("call_{index}"), name: (*name).to_owned() };
        [
            Delta::Open { index, kind },
            Delta::Extend { index, delta: arguments.to_string() },
            Delta::Seal { index, seal: BlockSeal::default() },
        ]
    };
    calls.iter().enumerate().flat_map(block).collect()
}

/// What happens in the middle of a run.
pub(crate) type Interruption = Box<dyn FnMut(&mut Queues) + Send>;

/// Records what the loop says, in short words.
pub(crate) struct Recorder {
    pub(crate) log: Vec<String>,
    pub(crate) events: Vec<Event>,
    pub(crate) messages: Vec<Json<Message>>,
    pub(crate) queues: Queues,
    pub(crate) model: Arc<Model1>,
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) gate: HookGate,
    pub(crate) sequential: bool,
    pub(crate) refuse: Option<&'static str>,
    /// Runs at the event whose word is given.
    pub(crate) at: Option<(&'static str, Interruption)>,
    /// Storing fails for the message with this role.
    pub(crate) broken_role: Option<&'static str>,
    /// What failed answers are answered with.
    pub(crate) retries: bool,
    /// Stops the calls of the current answer.
    pub(crate) stop: Arc<Mutex<CancellationToken>>,
    /// Calls that were given up, and what fires when each is over.
    pub(crate) survivors: Vec<(String, CancellationToken)>,
    images: Images,
}

impl Recorder {
    pub(crate) fn new(answers: Vec<Answer>, tools: Vec<Arc<dyn Tool>>) -> Self {
        let model = Arc::new(Model1 { answers: Mutex::new(answers.into()), requests: Mutex::default() });
        Self {
            log: Vec::new(),
            events: Vec::new(),
            messages: Vec::new(),
            queues: Queues::default(),
            model,
            tools: Arc::new(ToolSet::new(tools)),
            gate: HookGate::default(),
            survivors: Vec::new(),
            sequential: false,
            refuse: None,
            at: None,
            broken_role: None,
            retries: false,
            stop: Arc::default(),
            images: Images::default(),
        }
    }

    /// Runs a prompt to the end of the run.
    pub(crate) async fn prompt(
        &mut self,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<agentd_agent::RunOutcome, HostError> {
        let messages = vec![user_message(text.into(), Vec::new(), 0, &self.images).await.unwrap()];
        agentd_agent::run(self, RunStart { messages, queued: Vec::new() }, cancel).await
    }

    /// The words of the log, without the small steps of streaming.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.log.iter().map(String::as_str).filter(|word| *word != "update").collect()
    }
}

fn word(event: &Event) -> String {
    let role = |message: &Json<Message>| match message.get().unwrap() {
        Message::ToolResult(result) => {
            format!("result:{}:{}", result.tool_call_id.trim_start_matches("call_"), result.text())
        }
        Message::User(user) => format!("user:{}", user.content.text()),
        Message::Assistant(answer) => format!("assistant:{:?}", answer.stop_reason),
        other => other.role().to_owned(),
    };
    let id = |id: &str| id.trim_start_matches("call_").to_owned();
    match event {
        Event::MessageStart(start) => match start.message.get().unwrap() {
            Message::Assistant(_) => "start assistant".into(),
            _ => format!("start {}", role(&start.message)),
        },
        Event::MessageEnd(end) => format!("end {}", role(&end.message)),
        Event::MessageUpdate(_) => "update".into(),
        Event::ToolExecutionStart(start) => format!("tool start {}", id(&start.tool_call_id)),
        Event::ToolExecutionUpdate(update) => format!("tool update {}", id(&update.tool_call_id)),
        Event::ToolExecutionEnd(end) => format!("tool end {}", id(&end.tool_call_id)),
        Event::AgentEnd(end) => format!("agent_end {}", end.messages.len()),
        other => other.name().to_owned(),
    }
}

impl Host for Recorder {
    async fn emit(&mut self, event: Event) -> Result<(), HostError> {
        if let Event::MessageEnd(end) = &event {
            if Some(end.message.get().unwrap().role()) == self.broken_role {
                return Err(HostError::NotStored("disk full".into()));
            }
            self.messages.push(end.message.clone());
        }
        let word = word(&event);
        if let Some((at, action)) = &mut self.at
            && *at == word
        {
            action(&mut self.queues);
        }
        self.log.push(word);
        self.events.push(event);
        Ok(())
    }

    async fn next_queued(&mut self, kind: QueueKind) -> Result<Vec<QueuedMessage>, HostError> {
        Ok(self.queues.next(kind))
    }

    async fn deliver(&mut self, ticket: Ticket) -> Result<bool, HostError> {
        let waited = self.queues.deliver(ticket).is_some();
        self.log.push(format!("delivered {waited}"));
        Ok(waited)
    }

    async fn setup(&mut self) -> Result<TurnSetup, TurnSetupError> {
        if let Some(message) = self.refuse {
            let text = String::from;
            return Err(TurnSetupError::Refused {
                message: text(message),
                api: text("a"),
                provider: text("p"),
                model: text("m"),
            });
        }
        Ok(TurnSetup {
            provider: Arc::clone(&self.model) as Arc<dyn Provider>,
            request: Request::new(Arc::new(Model::placeholder()), self.messages.clone()),
            tools: Arc::clone(&self.tools),
            gate: self.gate.clone(),
            sequential_tools: self.sequential,
            cwd: "/".into(),
            session_env: Vec::new(),
            environment: None,
        })
    }

    async fn will_retry(&mut self, answer: &AssistantMessage, failure: Option<&Failure>) -> bool {
        let failure = failure.map(|failure| failure.kind);
        self.log.push(format!("retry? {:?} {failure:?}", answer.stop_reason));
        self.retries
    }

    fn tools_begin(&mut self, stop: CancellationToken) {
        *self.stop.lock().unwrap() = stop;
    }

    async fn tools_end(&mut self, stopped: Vec<StoppedCall>) -> Result<(), HostError> {
        if !stopped.is_empty() {
            let ids: Vec<&str> = stopped.iter().map(|call| call.id.trim_start_matches("call_")).collect();
            self.log.push(format!("stopped {}", ids.join(",")));
        }
        Ok(())
    }

    fn call_survives(&mut self, call: &ToolCall, over: CancellationToken) {
        self.survivors.push((call.id.clone(), over));
    }

    fn images(&self) -> Images {
        self.images.clone()
    }

    fn now_ms(&self) -> i64 {
        0
    }
}

type Action = dyn Fn(Invocation) -> ToolFuture<'static> + Send + Sync;

/// A tool that does what a function says.
pub(crate) struct FakeTool {
    spec: Arc<ToolSpec>,
    execution: ExecutionMode,
    action: Box<Action>,
}

impl FakeTool {
    pub(crate) fn parallel(
        name: &str,
        action: impl Fn(Invocation) -> ToolFuture<'static> + Send + Sync + 'static,
    ) -> Arc<dyn Tool> {
        Self::with(name, ExecutionMode::Parallel, action)
    }

    pub(crate) fn with(
        name: &str,
        execution: ExecutionMode,
        action: impl Fn(Invocation) -> ToolFuture<'static> + Send + Sync + 'static,
    ) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}),
            constrained_sampling: None,
        };
        Arc::new(Self { spec: Arc::new(spec), execution, action: Box::new(action) })
    }
}

impl Tool for FakeTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn execution(&self) -> ExecutionMode {
        self.execution
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        (self.action)(invocation)
    }
}
