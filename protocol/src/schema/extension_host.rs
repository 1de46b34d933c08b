//! The records of the extension protocol (`docs/extension-protocol.md`), for its schema. The daemon writes and reads them with types of its
//! own, which borrow; the end-to-end tests hold every record that passes against this schema.

// Only the schema reads the fields.
#![allow(dead_code)]

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::resources::SourceInfo;

/// A record that agentd writes to a host.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub(super) enum FromDaemon {
    /// The first request: what the host serves. It answers with [`HelloAnswer`].
    #[serde(rename = "hello")]
    Hello {
        /// The number of the request.
        id: u64,
        /// The version of this protocol: 1.
        protocol: u32,
        /// Who speaks.
        daemon: DaemonName,
        /// The first epoch.
        epoch: u64,
        /// The session.
        session_id: String,
        /// Its working directory.
        cwd: String,
        /// The agent directory.
        agent_dir: String,
        /// The name of a project's folder: `.pi`.
        config_dir_name: String,
        /// `rpc`, `json` or `print`.
        mode: String,
        /// Whether dialogs are shown to anybody.
        #[serde(rename = "hasUI")]
        has_ui: bool,
        /// Whether the project is trusted.
        trusted: bool,
        /// A folder for what the host may keep.
        cache_dir: String,
        /// Whether texts for the user may have colours.
        ansi: bool,
        /// Variables of the environment to set.
        env: Map<String, Value>,
        /// Limits of this protocol.
        limits: Map<String, Value>,
        /// What agentd offers besides.
        features: Vec<String>,
    },
    /// Imports extensions; their registrations come before the answer, which is [`LoadAnswer`].
    #[serde(rename = "load")]
    Load {
        /// The number of the request.
        id: u64,
        /// From here on.
        epoch: u64,
        /// `startup`, `new`, `resume`, `fork` or `reload`.
        reason: String,
        /// Whether modules are to be read anew.
        clear_cache: bool,
        /// The session, where it is another one than before.
        session: LoadedSession,
        /// In load order.
        extensions: Vec<ExtensionToLoad>,
        /// Values of flags.
        flags: Map<String, Value>,
    },
    /// From here on calls are answered. The answer is `null`.
    #[serde(rename = "bind")]
    Bind {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// Values of flags.
        flags: Map<String, Value>,
        /// The mirror `core`.
        core: Map<String, Value>,
    },
    /// Runs handlers. The answer is [`HookAnswer`].
    #[serde(rename = "hook")]
    Hook {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The numbers of the handlers.
        handlers: Vec<u64>,
        /// The event: `type` and its fields.
        event: Map<String, Value>,
    },
    /// Runs a tool. The answer is [`ToolAnswer`].
    #[serde(rename = "tool.execute")]
    ToolExecute {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The extension.
        ext: String,
        /// Its tool.
        tool: String,
        /// The model's call.
        tool_call_id: String,
        /// The arguments.
        params: Value,
    },
    /// Runs a slash command. The answer is `null`.
    #[serde(rename = "command.run")]
    CommandRun {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The extension.
        ext: String,
        /// The command, as it was registered.
        name: String,
        /// What was written after it.
        args: String,
        /// Who calls: `rpc`.
        source: String,
    },
    /// Asks for completions of a command's argument. The answer is a list of [`Completion`], or `null`.
    #[serde(rename = "command.complete")]
    CommandComplete {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The extension.
        ext: String,
        /// The command.
        name: String,
        /// What is written so far.
        prefix: String,
    },
    /// Answers for a model of an extension's provider. The value is `{message}`, after its events.
    #[serde(rename = "provider.stream")]
    ProviderStream {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The function.
        cb: u64,
        /// The model.
        model: Map<String, Value>,
        /// `{messages}`.
        context: Map<String, Value>,
        /// What is asked for besides.
        options: Map<String, Value>,
    },
    /// Asks a provider object for the credentials of requests.
    #[serde(rename = "provider.auth")]
    ProviderAuth {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The function.
        cb: u64,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// Has a provider make images. The value is what its function returns.
    #[serde(rename = "provider.images")]
    ProviderImages {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The function.
        cb: u64,
        /// The model, what it is asked, and the options: with credentials, and `"signal": true`.
        args: [Map<String, Value>; 3],
    },
    /// Has a provider classify. The value is what its function returns.
    #[serde(rename = "provider.classify")]
    ProviderClassify {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The function.
        cb: u64,
        /// The model, what it is asked, and the options: with credentials, and `"signal": true`.
        args: [Map<String, Value>; 3],
    },
    /// Asks a provider for its models. The value is `{models}`.
    #[serde(rename = "provider.refresh")]
    ProviderRefresh {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The function.
        cb: u64,
        /// What is known.
        context: Map<String, Value>,
    },
    /// Asks a router for the model of a request.
    #[serde(rename = "vmodel.route")]
    VmodelRoute {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The function.
        cb: u64,
        /// What the model is for.
        request: Map<String, Value>,
    },
    /// Prepares the arguments of a tool before they are checked. The value is the arguments.
    #[serde(rename = "tool.prepare")]
    ToolPrepare {
        /// The number of the request.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The extension.
        ext: String,
        /// Its tool.
        tool: String,
        /// The arguments as they are.
        args: Value,
    },
    /// Calls a function that the host handed over. The value is what it returned.
    #[serde(rename = "ops.call")]
    OpsCall {
        /// The number of the request.
        id: u64,
        /// The epoch.
        #[serde(skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
        /// The function.
        cb: u64,
        /// Which part of it, where it has several.
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<String>,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// The extensions are over; the host goes on with others, or ends. The answer is `null`.
    #[serde(rename = "unload")]
    Unload {
        /// The number of the request.
        id: u64,
        /// The epoch that ends.
        epoch: u64,
        /// Why.
        reason: String,
    },
    /// The result so far of a call of the host.
    #[serde(rename = "call.update")]
    CallUpdate {
        /// The number of the call.
        id: u64,
        /// As the result.
        partial: Value,
    },
    /// An event of the answer that a call of the host waits for.
    #[serde(rename = "call.event")]
    CallEvent {
        /// The number of the call.
        id: u64,
        /// The event, without the message so far.
        event: Map<String, Value>,
    },
    /// Keys of messages that are not named again.
    #[serde(rename = "forget")]
    Forget {
        /// The keys.
        m: Vec<Value>,
    },
    /// Whether the host still answers. The answer is `null`.
    #[serde(rename = "ping")]
    Ping {
        /// The number of the request.
        id: u64,
    },
    /// The host ends after its answer, which is `null`.
    #[serde(rename = "shutdown")]
    Shutdown {
        /// The number of the request.
        id: u64,
        /// The milliseconds until it is ended.
        deadline_ms: u64,
    },
    /// What is different in a mirror.
    #[serde(rename = "state")]
    State {
        /// The number of the patch.
        seq: u64,
        /// `core`, `entries` or another topic of `read`.
        topic: String,
        /// The fields that are different.
        patch: Map<String, Value>,
    },
    /// A record of a channel: of a session that an extension of the host has opened.
    #[serde(rename = "channel")]
    Channel {
        /// The number of the channel, counted by the host.
        channel: u64,
        /// The record.
        record: Map<String, Value>,
    },
    /// Nothing comes through a channel any more.
    #[serde(rename = "channel.close")]
    ChannelClose {
        /// The number of the channel.
        channel: u64,
    },
    /// An event of a session that an extension of the host has opened.
    #[serde(rename = "agents.event")]
    AgentsEvent {
        /// The agent.
        agent: String,
        /// The event, as clients get it.
        event: Map<String, Value>,
    },
    /// The host did not keep up: some events of the session were not told.
    #[serde(rename = "agents.lagged")]
    AgentsLagged {
        /// The agent.
        agent: String,
    },
    /// The session of an agent has ended.
    #[serde(rename = "agents.ended")]
    AgentsEnded {
        /// The agent.
        agent: String,
        /// Why.
        reason: String,
    },
    /// The answer to a call.
    #[serde(rename = "result")]
    Result(Answer),
    /// Gives up a request of agentd.
    #[serde(rename = "cancel")]
    Cancel {
        /// The number of the request.
        id: u64,
    },
}

/// A record that a host writes.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub(super) enum FromHost {
    /// The answer to a request.
    #[serde(rename = "result")]
    Result(Answer),
    /// Gives up a call of the host.
    #[serde(rename = "cancel")]
    Cancel {
        /// The number of the call.
        id: u64,
    },
    /// Asks something of the session.
    #[serde(rename = "call")]
    Call {
        /// The number of the call, counted by the host.
        id: u64,
        /// The epoch.
        epoch: u64,
        /// The extension.
        #[serde(skip_serializing_if = "Option::is_none")]
        ext: Option<String>,
        /// What is asked for.
        method: String,
        /// Its parameters.
        params: Map<String, Value>,
        /// The request of agentd during which it is made.
        #[serde(skip_serializing_if = "Option::is_none")]
        within: Option<u64>,
    },
    /// A record of a channel.
    #[serde(rename = "channel")]
    Channel {
        /// The number of the channel.
        channel: u64,
        /// The record.
        record: Map<String, Value>,
    },
    /// An extension registers something.
    #[serde(rename = "register")]
    Register(Registered),
    /// An extension takes something back.
    #[serde(rename = "unregister")]
    Unregister(Registered),
    /// The result of a tool so far.
    #[serde(rename = "tool.update")]
    ToolUpdate {
        /// The number of the `tool.execute`.
        call: u64,
        /// As the answer.
        partial: ToolAnswer,
    },
    /// An event of an answer, without the message so far.
    #[serde(rename = "provider.event")]
    ProviderEvent {
        /// The number of the `provider.stream`.
        call: u64,
        /// The event.
        event: Map<String, Value>,
    },
    /// Output of a function of the host.
    #[serde(rename = "ops.data")]
    OpsData {
        /// The number of the `ops.call`.
        call: u64,
        /// The output.
        data: Value,
    },
    /// Something for the user that needs no answer: the fields of an `extension_ui_request`.
    #[serde(rename = "ui")]
    Ui {
        /// The epoch.
        epoch: u64,
        /// The extension.
        ext: String,
        /// `notify`, `setStatus`, `setWidget`, `setTitle` or `setEditorText`.
        method: String,
    },
    /// An extension failed outside of a request.
    #[serde(rename = "error")]
    Error {
        /// The extension.
        ext: String,
        /// What it was about.
        event: String,
        /// What was the matter.
        message: String,
    },
    /// A line for the log.
    #[serde(rename = "log")]
    Log {
        /// `info`, `warning` or `error`.
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<String>,
        /// The line.
        text: String,
    },
}

/// The session of extensions.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadedSession {
    /// Its id.
    session_id: String,
    /// Its working directory.
    cwd: String,
    /// Whether the project is trusted.
    trusted: bool,
}

/// Who speaks.
#[derive(Serialize, JsonSchema)]
pub(super) struct DaemonName {
    /// `agentd`.
    name: String,
    /// Its version.
    version: String,
}

/// The answer to a request.
#[derive(Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The number of the request.
    id: u64,
    /// Whether it was done.
    ok: bool,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<HostFailure>,
}

/// Why something was not done.
#[derive(Serialize, JsonSchema)]
pub(super) struct HostFailure {
    /// For people.
    message: String,
    /// For programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Where in the extension's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<String>,
}

/// An extension to load.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtensionToLoad {
    /// The name of the extension in all records.
    ext: String,
    /// What errors name.
    path: String,
    /// What is loaded.
    entry: String,
    /// The folder that its own paths count from.
    base_dir: String,
    /// Where it comes from.
    source_info: SourceInfo,
}

/// The answer to `hello`. A host may say more of itself.
#[derive(Serialize, JsonSchema)]
pub(super) struct HelloAnswer {
    /// The version that the host speaks: 1.
    protocol: u32,
}

/// The answer to `load`.
#[derive(Serialize, JsonSchema)]
pub(super) struct LoadAnswer {
    /// In the order of the request, up to the first that failed.
    extensions: Vec<LoadedExtension>,
}

/// What came of an extension.
#[derive(Serialize, JsonSchema)]
pub(super) struct LoadedExtension {
    /// The extension.
    ext: String,
    /// Whether it is loaded.
    ok: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The milliseconds that it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
}

/// The answer to `hook`.
#[derive(Serialize, JsonSchema)]
pub(super) struct HookAnswer {
    /// In the order of the handlers.
    returns: Vec<HandlerAnswer>,
}

/// What a handler returned.
#[derive(Serialize, JsonSchema)]
pub(super) struct HandlerAnswer {
    /// The handler.
    h: u64,
    /// What it returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The parts of the event that it changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Map<String, Value>>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<HostFailure>,
}

/// The result of a tool.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolAnswer {
    /// Blocks of text and images, for the model.
    content: Vec<Value>,
    /// For the extension: kept with the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
    /// The result as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    /// What the tool asked of models.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
    /// Whether it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    /// Whether the run ends after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminate: Option<bool>,
}

/// A completion of a command's argument.
#[derive(Serialize, JsonSchema)]
pub(super) struct Completion {
    /// What is inserted.
    value: String,
    /// What is shown.
    label: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Something that an extension registers. Kinds that agentd does not know are passed over.
#[derive(Serialize, JsonSchema)]
pub(super) struct Registered {
    /// The epoch.
    epoch: u64,
    /// The extension.
    ext: String,
    /// What it is.
    #[serde(flatten)]
    what: Registration,
}

/// What an extension registers.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Registration {
    /// A handler.
    Handler {
        /// Its number, which the host gives.
        h: u64,
        /// The event.
        #[serde(skip_serializing_if = "Option::is_none")]
        event: Option<String>,
    },
    /// A tool. The same name again takes its place.
    Tool {
        /// Its definition.
        def: ToolDefinition,
        /// The functions of it that the host has besides `execute`.
        #[serde(skip_serializing_if = "Option::is_none")]
        has: Option<Vec<String>>,
    },
    /// A slash command.
    Command {
        /// Its name, without the slash.
        name: String,
        /// What it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Whether it completes its argument.
        #[serde(skip_serializing_if = "Option::is_none")]
        completes: Option<bool>,
    },
    /// A flag of the command line.
    Flag {
        /// Its name, without dashes.
        name: String,
        /// `boolean` or `string`.
        value_type: String,
        /// Its value where it is not given.
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<Value>,
        /// What it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A provider of models: `config`, or `native` and `provider`. Functions in them are `{"cb": number}`.
    Provider {
        /// Its name.
        name: String,
    },
    /// A model whose requests a function leads to others.
    #[serde(rename = "virtualModel")]
    VirtualModel {
        /// The model.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<Map<String, Value>>,
        /// The function.
        #[serde(skip_serializing_if = "Option::is_none")]
        cb: Option<u64>,
    },
}

/// A tool as an extension defines it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolDefinition {
    /// The name for the model.
    name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// What it does, for the model.
    description: String,
    /// JSON Schema of the arguments.
    parameters: Map<String, Value>,
    /// A line in the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_snippet: Option<String>,
    /// Rules in the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_guidelines: Option<Vec<String>>,
    /// `sequential`: a batch with a call of it runs one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_mode: Option<String>,
    /// `direct`, `model-only`, `codemode`, `deferred` or `hidden`.
    #[serde(skip_serializing_if = "Option::is_none")]
    exposure: Option<String>,
    /// False: not active before somebody chooses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_active: Option<bool>,
}
