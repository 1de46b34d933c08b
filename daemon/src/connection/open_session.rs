//! `open_session`: which session is meant, with which options, and whether the client may have it.

use std::{path::PathBuf, sync::Arc};

use agentd_config::{AgentDir, Environment, resolve_path};
use agentd_mcp::given_servers;
use agentd_protocol::{
    daemon::{OpenSessionParams, OpenedSession},
    error::{ErrorCode, Failure},
    frame::Response,
    resources::DiagnosticLevel,
    settings::BudgetLimits,
};
use agentd_session::{Attached, ReopenError, SessionOptions, Target, locate};
use serde_json::Value;

use super::{
    dispatcher::Dispatcher,
    follow::{AfterJoining, gone},
    open_requests::OpenRequest,
    options::ConnectionFlags,
    writer::WriterCommand,
};
use crate::{
    cli::{self, StdioOptions, field_of},
    hub::{self, AcquiredSession},
};

impl Dispatcher {
    pub(super) async fn open_session(&mut self, params: OpenSessionParams, id: Option<Value>) {
        const NAME: &str = "open_session";
        let follows = params.attach != Some(false);
        let fields = Fields::of(&params);
        let by_folder = params.session_dir.is_some();
        // As after `new_session`, the session that is left ends, if it is left for one of a folder.
        let left = self.sessions.current.clone().filter(|_| by_folder && follows && params.cwd.is_empty());
        // The session is known only once it is open.
        let admitted = if follows { self.may_follow("") } else { Ok(()) };
        let asked = match admitted.and_then(|()| self.options_of(params)) {
            Ok(asked) => self.may_open(&asked.session, fields.sends_environment).await.map(|()| asked),
            Err(failure) => Err(failure),
        };
        let opened = match asked {
            Ok(StdioOptions { session, on_eof, ready, cumulative, warnings }) => {
                let flags = ConnectionFlags { cumulative, ready };
                let opened = self.open_as_asked(session, &fields).await;
                opened.map(|(joined, of_reopening)| {
                    let of_flags = warnings.iter().map(|it| it.trim_start_matches("Warning: ").to_owned());
                    (joined, of_flags.chain(of_reopening).collect::<Vec<_>>(), on_eof, flags)
                })
            }
            Err(failure) => Err(failure),
        };
        // `_expected` keeps the session from being closed until the client follows it.
        let (session, warnings, was_open, _expected) = match opened {
            Ok((
                AcquiredSession { session, diagnostics, expected, was_open, .. },
                mut warnings,
                on_eof,
                flags,
            )) => {
                self.on_eof = on_eof;
                if self.client.take_flags(flags) {
                    self.tell_writer(WriterCommand::View(self.client.view)).await;
                }
                let to_tell = diagnostics.iter().filter(|it| it.level > DiagnosticLevel::Info);
                warnings.extend(to_tell.map(ToString::to_string));
                (session, warnings, was_open, expected)
            }
            Err(failure) => return self.fail(id, Some(NAME), failure).await,
        };
        if let Some(left) = left.filter(|left| !Arc::ptr_eq(left, &session)) {
            self.end_if_alone(&left, None).await;
        }
        let then = if follows { AfterJoining::Follow } else { AfterJoining::Leave };
        let joined = self.join(session, None, then).await;
        let (session, Attached { subscriber, seq, state, in_flight, pending_ui, .. }) = match joined {
            Ok(joined) => joined,
            Err(failure) => return self.fail(id, Some(NAME), failure).await,
        };
        let epoch = self.registry.epoch().to_owned();
        let pending_ui = self.shown_to_client(pending_ui);
        let (cancelled, resumed) = (false, was_open || state.message_count > 0);
        let data = OpenedSession {
            state,
            epoch,
            seq,
            warnings,
            pending_ui,
            cancelled: by_folder.then_some(cancelled),
            resumed: by_folder.then_some(resumed),
        };
        // The answer goes out before the events after `seq`.
        self.answer(&Response::done(id, NAME, Some(data))).await;
        if follows {
            self.move_to(session, subscriber, in_flight.and_then(|in_flight| in_flight.message)).await;
        }
    }

    /// Opens a session. A session that is open already takes on the requested options, or is refused for those that it cannot take
    /// on. Gives warnings about that, too.
    async fn open_as_asked(
        &mut self,
        mut asked: SessionOptions,
        fields: &Fields,
    ) -> Result<(AcquiredSession, Vec<String>), Failure> {
        self.check_folder(&asked).await?;
        let mut joined = self.registry.open(asked.clone()).await?;
        if joined.was_open {
            self.may_join(&joined.session)?;
        } else {
            self.has_opened(&joined.session);
        }
        asked.environment = self.registry.share_environment(asked.environment);
        let request = OpenRequest::of(&asked, fields.has_environment);
        let mut warnings = Vec::new();
        if joined.was_open {
            let (session, guard) = self.load(Arc::clone(&joined.session)).await?;
            let id = Arc::clone(session.id());
            let asked_for = asked.cwd.display().to_string();
            warnings = match guard.handle.reopen(asked, fields.if_idle).await {
                Some(Ok(warnings)) => warnings,
                Some(Err(ReopenError::Differs(flags))) => {
                    let elsewhere = flags.contains(&"cwd").then(|| (session.info().cwd, asked_for));
                    return Err(fields.refusal(&flags, &id, elsewhere));
                }
                Some(Err(ReopenError::Failed(failure))) => return Err(failure),
                None => return Err(gone(&id)),
            };
            joined.session = session;
        }
        self.keep_request(joined.session.id(), request)?;
        Ok((joined, warnings))
    }

    /// Refuses an id that the client chose if a session of that id has its file in another folder: an id names one session.
    async fn check_folder(&self, asked: &SessionOptions) -> Result<(), Failure> {
        let Target::Id(id) = &asked.target else { return Ok(()) };
        if self.registry.get(id).is_some() {
            // An open session is compared with the options that it was opened with.
            return Ok(());
        }
        let (agent_dir, asked, id) = (self.agent_dir()?, asked.clone(), id.clone());
        let looked = tokio::task::spawn_blocking(move || {
            // Without a readable file there is no other session of that id.
            let (path, header) = hub::session_list::file_of(&agent_dir, &id).ok()?;
            let works_in = header.cwd().to_owned();
            let is_here = std::path::Path::new(&works_in) == asked.cwd
                || locate(&asked).is_ok_and(|found| found.is_some());
            (!is_here).then(|| elsewhere(&id, &works_in, &asked.cwd, &path))
        });
        let refused = looked.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
        refused.map_or(Ok(()), Err)
    }

    /// Keeps the options that the client gave for a session.
    pub(super) fn keep_request(&mut self, session: &Arc<str>, request: OpenRequest) -> Result<(), Failure> {
        let (registry, limit) = (&self.registry, self.connection.limits.followed);
        self.open_requests.keep(session, request, limit, |session| registry.get(session).is_some())
    }

    /// The options for a session: the connection's own, overridden by the arguments, and those by the fields. With a `sessionDir` alone:
    /// those of the session that goes on from the current one.
    fn options_of(&self, mut params: OpenSessionParams) -> Result<StdioOptions, Failure> {
        let base = &self.connection.options;
        let bad = |text: String| Failure::new(ErrorCode::InvalidField, text);
        if params.session_dir.as_deref() == Some("") {
            return Err(bad("Invalid field \"sessionDir\": expected the path of a folder, got \"\"".into()));
        }
        if params.cwd.is_empty() {
            return self.options_in_folder(params);
        }
        let cwd = PathBuf::from(&params.cwd);
        if !cwd.is_absolute() || !cwd.is_dir() {
            return Err(bad(format!(
                "Invalid field \"cwd\": expected the absolute path of a folder, got \"{}\"",
                params.cwd
            )));
        }
        let named = [("path", &params.path), ("sessionId", &params.session_id), ("model", &params.model)];
        if let Some((field, _)) = named.iter().find(|(_, value)| value.as_deref() == Some("")) {
            // Without the field it would be a new session, or the user's own model; an empty text does not ask for that.
            return Err(bad(format!(
                "Invalid field \"{field}\": it is empty; give it a value, or leave it out"
            )));
        }
        let mut environment = base.environment.clone();
        if let Some(env) = params.env.take() {
            environment = env.into_iter().collect::<Environment>();
        }
        let agent_dir = AgentDir::find(&base.environment, base.compat, &base.cwd)
            .map_err(|error| Failure::new(ErrorCode::Io, error.to_string()))?;
        // All sessions of a daemon use its agent directory, whatever the environment of their clients says.
        environment.set("AGENTD_DIR", agent_dir.path().as_os_str());
        let parsed = cli::parse_session(&params.args, &cwd, environment);
        let mut parsed = parsed.map_err(|text| bad(format!("Invalid field \"args\": {text}")))?;
        parsed.session.compat = base.compat;
        apply_fields(&mut parsed.session, params)?;
        Ok(parsed)
    }

    /// The options without a `cwd`: those that the session after the current one is opened with.
    fn options_in_folder(&self, mut params: OpenSessionParams) -> Result<StdioOptions, Failure> {
        let current = self.sessions.current.as_ref().filter(|_| params.session_dir.is_some());
        let current =
            current.ok_or_else(|| Failure::new(ErrorCode::InvalidField, "Missing field \"cwd\""))?;
        if !params.args.is_empty() {
            let text = "Invalid field \"args\": expected none without \"cwd\": the flags of the current session count";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
        if current.is_ephemeral() {
            let text = "open_session requires session persistence (omit --no-session)";
            return Err(Failure::new(ErrorCode::Unsupported, text));
        }
        let mut session = SessionOptions { session_dir: None, ..self.successor(current) };
        if let Some(env) = params.env.take() {
            session.environment = env.into_iter().collect::<Environment>();
        }
        apply_fields(&mut session, params)?;
        let (on_eof, warnings) = (self.on_eof, Vec::new());
        Ok(StdioOptions { session, on_eof, ready: false, cumulative: false, warnings })
    }
}

/// Applies the fields of `open_session` that say what flags say, and take precedence over them.
///
/// # Errors
/// `invalid_field`.
fn apply_fields(options: &mut SessionOptions, params: OpenSessionParams) -> Result<(), Failure> {
    let bad = |text: String| Failure::new(ErrorCode::InvalidField, text);
    let targets = [
        params.path.map(Target::Existing),
        params.session_id.map(Target::Id),
        params.continue_last.filter(|wanted| *wanted).map(|_| Target::Continue),
        params.ephemeral.filter(|wanted| *wanted).map(|_| Target::Ephemeral(None)),
    ];
    let mut targets = targets.into_iter().flatten();
    if let Some(target) = targets.next() {
        options.target = target;
    }
    if targets.next().is_some() {
        let text = "At most one of \"path\", \"sessionId\", \"continue\" and \"ephemeral\" can be given";
        return Err(bad(text.into()));
    }
    if let Some(dir) = &params.session_dir {
        options.session_dir = Some(resolve_path(dir, &options.cwd, &options.environment));
        if options.target == Target::New {
            options.target = Target::Continue;
        }
    }
    options.name = params.name.or(options.name.take());
    options.model = params.model.or(options.model.take());
    options.thinking = params.thinking_level.or(options.thinking);
    options.tools.allow = params.tools.or(options.tools.allow.take());
    options.system_prompt = params.system_prompt.or(options.system_prompt.take());
    options.append_system_prompt.extend(params.append_system_prompt);
    if params.additional_directories.is_some() {
        options.additional_directories = folders(params.additional_directories).map_err(bad)?;
    }
    if let Some(servers) = &params.mcp_servers {
        let given = given_servers(servers);
        options.mcp_servers = given.map_err(|text| bad(format!("Invalid field \"mcpServers\": {text}")))?;
    }
    Ok(())
}

/// The most `additionalDirectories`: each is looked up for every path that is judged.
const MOST_FOLDERS: usize = 64;

/// Checks `additionalDirectories`. Looks at the folders.
fn folders(given: Option<Vec<String>>) -> Result<Vec<PathBuf>, String> {
    let given = given.unwrap_or_default();
    if given.len() > MOST_FOLDERS {
        return Err(format!("Invalid field \"additionalDirectories\": at most {MOST_FOLDERS} folders"));
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for text in given {
        let folder = PathBuf::from(&text);
        if !folder.is_absolute() || !folder.is_dir() {
            return Err(format!(
                "Invalid field \"additionalDirectories\": expected absolute paths of folders, got \"{text}\""
            ));
        }
        if folder.parent().is_none() {
            return Err(
                "Invalid field \"additionalDirectories\": / is the whole file system: name folders in it"
                    .to_owned(),
            );
        }
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    Ok(folders)
}

/// The fields of `open_session` that were given and mean the same as flags.
struct Fields {
    given: Vec<&'static str>,
    /// Whether the session differs from others by its environment: one was sent, or `--offline` was given.
    has_environment: bool,
    /// Whether the client sent an environment.
    sends_environment: bool,
    /// Whether a session that is running is to be left as it is.
    if_idle: bool,
}

impl Fields {
    fn of(params: &OpenSessionParams) -> Self {
        let given = [
            ("ephemeral", params.ephemeral == Some(true)),
            ("sessionDir", params.session_dir.is_some()),
            ("systemPrompt", params.system_prompt.is_some()),
            ("appendSystemPrompt", params.append_system_prompt.is_some()),
        ];
        Self {
            given: given.into_iter().filter(|(_, given)| *given).map(|(field, _)| field).collect(),
            if_idle: params.if_idle == Some(true),
            sends_environment: params.env.is_some(),
            has_environment: params.env.is_some() || params.args.iter().any(|arg| arg == "--offline"),
        }
    }

    /// The refusal of options that an open session cannot take on any more. `elsewhere`: the folder that it works in, and the
    /// requested one.
    pub(super) fn refusal(
        &self,
        flags: &[&str],
        session: &str,
        elsewhere: Option<(String, String)>,
    ) -> Failure {
        let of = |flag: &&&str| field_of(flag).filter(|field| self.given.contains(field));
        let mut said: Vec<String> = Vec::new();
        let mut fields: Vec<&str> = Vec::new();
        for flag in flags {
            let field = if *flag == "cwd" { Some("cwd") } else { of(&flag) };
            if field.is_none() {
                said.push((*flag).to_owned());
            }
            let field = field.unwrap_or("args");
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        let which = if fields.len() == 1 { "field" } else { "fields" };
        let fields = fields.iter().map(|field| format!("\"{field}\"")).collect::<Vec<_>>().join(", ");
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
        let folders = elsewhere
            .map(|(works_in, asked_for)| format!(" It works in {works_in}, not in {asked_for}."))
            .unwrap_or_default();
        let text = format!(
            "Invalid {which} {fields}{said}: the session {session} is open with another value.{folders}"
        );
        let hint = "It counts when a session is opened: close it first (close_session), or leave that out.";
        let hint = match flags {
            ["cwd"] => "Name the folder that the session works in (list_sessions), or its file (path).",
            [flag, ..] if BudgetLimits::FLAGS.contains(flag) => {
                "A prompt can have stricter limits of its own (budget); other limits count when a session is opened: close it first (close_session)."
            }
            ["--permissions" | "--permission-rules", ..] => "set_permissions changes them while it is open.",
            ["--fallback-models"] => "set_fallback_models changes them while it is open.",
            _ => hint,
        };
        Failure::new(ErrorCode::InvalidField, text).hint(hint)
    }
}

fn elsewhere(id: &str, works_in: &str, cwd: &std::path::Path, file: &std::path::Path) -> Failure {
    let text = format!(
        "Invalid field \"cwd\": the session {id} works in {works_in}, not in {}. Its file is {}.",
        cwd.display(),
        file.display()
    );
    Failure::new(ErrorCode::InvalidField, text)
        .hint("Name the folder that the session works in, its file (path), or another id.")
}
