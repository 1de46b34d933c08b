//! Opening, following and leaving sessions.

use std::sync::Arc;

use agentd_config::{AgentDir, Environment};
use agentd_protocol::{
    Json,
    daemon::{
        AttachSessionParams, AttachedSession, EndMode, OpenSessionParams, OpenedSession, SessionParams,
    },
    error::{ErrorCode, Failure},
    frame::Response,
    message::Message,
    resources::DiagnosticLevel,
};
use agentd_session::{Attached, ReopenError, SessionOptions, Target, locate};
use serde_json::Value;

use super::{reader::Reader, wishes::Wish, writer::Out};
use crate::{
    cli::{self, StdioOptions, field_of},
    hub::{self, AcquiredSession, LoadedGuard, SessionSlot},
};

impl Reader {
    pub(super) async fn open_session(&mut self, params: OpenSessionParams, id: Option<Value>) {
        const NAME: &str = "open_session";
        let follows = params.attach != Some(false);
        let fields = Fields::of(&params);
        // Which session it will be is known only when it is open.
        let admitted = if follows { self.may_follow("") } else { Ok(()) };
        let asked = match admitted.and_then(|()| self.options_of(params)) {
            Ok(asked) => self.may_open(&asked.session, fields.sends_environment).await.map(|()| asked),
            Err(failure) => Err(failure),
        };
        let opened = match asked {
            Ok(StdioOptions { session, on_eof, cumulative, warnings, .. }) => {
                let opened = self.open_as_asked(session, &fields).await;
                opened.map(|(joined, of_reopening)| {
                    let of_flags = warnings.iter().map(|it| it.trim_start_matches("Warning: ").to_owned());
                    (joined, of_flags.chain(of_reopening).collect::<Vec<_>>(), on_eof, cumulative)
                })
            }
            Err(failure) => Err(failure),
        };
        // Until it is followed.
        let (session, warnings, _expected) = match opened {
            Ok((
                AcquiredSession { session, diagnostics, expected, .. },
                mut warnings,
                on_eof,
                cumulative,
            )) => {
                self.on_eof = on_eof;
                if cumulative {
                    self.client.view.is_cumulative = true;
                    self.tell(Out::View(self.client.view)).await;
                }
                let to_tell = diagnostics.iter().filter(|it| it.level > DiagnosticLevel::Info);
                warnings.extend(to_tell.map(ToString::to_string));
                (session, warnings, expected)
            }
            Err(failure) => return self.fail(id, Some(NAME), failure).await,
        };
        let joined = self.join(session, None).await;
        let (session, Attached { subscriber: reader, seq, state, in_flight, .. }) = match joined {
            Ok(joined) => joined,
            Err(failure) => return self.fail(id, Some(NAME), failure).await,
        };
        let epoch = self.registry.epoch().to_owned();
        let data = OpenedSession { state, epoch, seq, warnings };
        // The answer first: what follows it is after `seq`.
        self.answer(&Response::done(id, NAME, Some(data))).await;
        if follows {
            self.move_to(session, reader, in_flight.and_then(|in_flight| in_flight.message)).await;
        }
    }

    /// Opens a session. One that is open already becomes what is asked for, or the difference is refused; gives what to tell of
    /// that, too.
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
        let wish = Wish::of(&asked, fields.has_environment);
        let mut warnings = Vec::new();
        if joined.was_open {
            let (session, awake) = self.awaken(Arc::clone(&joined.session)).await?;
            let id = Arc::clone(session.id());
            let asked_for = asked.cwd.display().to_string();
            warnings = match awake.handle.reopen(asked, fields.if_idle).await {
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
        self.keep_wish(joined.session.id(), wish)?;
        Ok((joined, warnings))
    }

    /// An id that a client chose names one session of the daemon: one that has its file elsewhere is not begun a second time here.
    async fn check_folder(&self, asked: &SessionOptions) -> Result<(), Failure> {
        let Target::Id(id) = &asked.target else { return Ok(()) };
        if self.registry.get(id).is_some() {
            // It is compared with what it was opened with.
            return Ok(());
        }
        let (agent_dir, asked, id) = (self.agent_dir()?, asked.clone(), id.clone());
        let looked = tokio::task::spawn_blocking(move || {
            // None, or none that could be read: then there is nothing to mistake it for.
            let (path, header) = hub::session_list::file_of(&agent_dir, &id).ok()?;
            let works_in = header.cwd().to_owned();
            let is_here = std::path::Path::new(&works_in) == asked.cwd
                || locate(&asked).is_ok_and(|found| found.is_some());
            (!is_here).then(|| elsewhere(&id, &works_in, &asked.cwd, &path))
        });
        let refused = looked.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
        refused.map_or(Ok(()), Err)
    }

    /// Keeps in mind what the client asked for in a session.
    pub(super) fn keep_wish(&mut self, session: &Arc<str>, wish: Wish) -> Result<(), Failure> {
        let (registry, limit) = (&self.registry, self.connection.limits.followed);
        self.wishes.keep(session, wish, limit, |session| registry.get(session).is_some())
    }

    pub(super) async fn attach_session(&mut self, params: AttachSessionParams, id: Option<Value>) {
        const NAME: &str = "attach_session";
        // Updates alone do not say what an answer was before them.
        let replays = !self.client.view.is_cumulative;
        let known = params.since.filter(|since| replays && since.epoch == self.registry.epoch());
        let since = known.map(|since| since.seq);
        let admitted = self.may_follow(&params.session_id);
        let opened = match admitted {
            Ok(()) => self.open_by_id(&params.session_id).await,
            Err(failure) => Err(failure),
        };
        let joined = match opened {
            Ok(session) => self.join(session, since).await,
            Err(failure) => Err(failure),
        };
        let (session, Attached { subscriber: reader, seq, replayed, state, in_flight, pending_ui }) =
            match joined {
                Ok(joined) => joined,
                Err(failure) => return self.fail(id, Some(NAME), failure).await,
            };
        let epoch = self.registry.epoch().to_owned();
        let so_far = in_flight.as_ref().and_then(|in_flight| in_flight.message.clone());
        let data = AttachedSession { state, epoch, seq, replayed, in_flight, pending_ui };
        self.answer(&Response::done(id, NAME, Some(data))).await;
        self.move_to(session, reader, so_far).await;
    }

    /// The session of that id: as it is open, else from its file.
    pub(super) async fn open_by_id(&self, id: &str) -> Result<Arc<SessionSlot>, Failure> {
        if let Some(session) = self.registry.get(id) {
            return Ok(session);
        }
        // It would get the environment of the daemon.
        if self.caller.is_some() {
            return Err(hub::session_list::unknown(id));
        }
        let (agent_dir, wanted) = (self.agent_dir()?, id.to_owned());
        let elsewhere = self.registry.evicted_file(id);
        let found = tokio::task::spawn_blocking(move || match elsewhere {
            Some(file) => hub::session_list::header_of(file, &wanted),
            None => hub::session_list::file_of(&agent_dir, &wanted),
        })
        .await;
        let (path, header) =
            found.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??;
        let mut options = self.connection.options.clone();
        options.target = Target::Existing(path.display().to_string());
        if !header.cwd().is_empty() {
            options.cwd = header.cwd().into();
        }
        let session = self.registry.open(options).await?.session;
        if **session.id() != *id {
            // The file was deleted meanwhile: this is a new session in its place, which nobody has asked for.
            if session.is_unattended() {
                self.registry.close(&session, EndMode::Abort).await;
            }
            return Err(hub::session_list::unknown(id));
        }
        Ok(session)
    }

    /// Sees to it that a session is in memory, and stays there while what this gives is held. One that has just made place for
    /// others is opened again.
    pub(super) async fn awaken(
        &self,
        session: Arc<SessionSlot>,
    ) -> Result<(Arc<SessionSlot>, LoadedGuard), Failure> {
        match self.registry.ensure_loaded(&session).await {
            Ok(awake) => Ok((session, awake)),
            Err(failure)
                if failure.code == ErrorCode::NoSession && self.registry.was_evicted(session.id()) =>
            {
                let session = self.open_by_id(session.id()).await?;
                let awake = self.registry.ensure_loaded(&session).await?;
                Ok((session, awake))
            }
            Err(failure) => Err(failure),
        }
    }

    /// A place in what a session says, which is loaded if it left memory.
    async fn join(
        &self,
        session: Arc<SessionSlot>,
        since: Option<u64>,
    ) -> Result<(Arc<SessionSlot>, Attached), Failure> {
        let (session, awake) = self.awaken(session).await?;
        let attached = awake.handle.attach(since).await.ok_or_else(|| gone(session.id()))?;
        drop(awake);
        Ok((session, attached))
    }

    pub(super) async fn detach_session(&mut self, params: SessionParams, id: Option<Value>) {
        const NAME: &str = "detach_session";
        if !self.sessions.leave(&params.session_id) {
            let text = format!("This connection does not follow a session \"{}\".", params.session_id);
            return self.fail(id, Some(NAME), Failure::new(ErrorCode::SessionNotFound, text)).await;
        }
        if self.sessions.current.as_ref().is_some_and(|current| **current.id() == *params.session_id) {
            self.sessions.current = None;
        }
        self.answer(&Response::<()>::done(id, NAME, None)).await;
    }

    /// Follows a session as the current one, from the middle of the answer `so_far` if there is one. A plain client follows no
    /// other beside it.
    pub(super) async fn move_to(
        &mut self,
        session: Arc<SessionSlot>,
        feed: agentd_session::Subscriber,
        so_far: Option<Json<Message>>,
    ) {
        if !self.client.names_sessions() {
            self.sessions.leave_others(session.id());
        }
        self.follow(session, feed, so_far).await;
    }

    /// What to open a session with: the connection's own options, the arguments over them, the fields over those.
    fn options_of(&self, params: OpenSessionParams) -> Result<StdioOptions, Failure> {
        let base = &self.connection.options;
        let cwd = std::path::PathBuf::from(&params.cwd);
        let bad = |text: String| Failure::new(ErrorCode::InvalidField, text);
        if !cwd.is_absolute() || !cwd.is_dir() {
            return Err(bad(format!(
                "Invalid field \"cwd\": expected the absolute path of a folder, got \"{}\"",
                params.cwd
            )));
        }
        let named = [("path", &params.path), ("sessionId", &params.session_id), ("model", &params.model)];
        if let Some((field, _)) = named.iter().find(|(_, value)| value.as_deref() == Some("")) {
            // Left out, it means a new session, or the user's own model: nobody is given that for an empty text.
            return Err(bad(format!(
                "Invalid field \"{field}\": it is empty; give it a value, or leave it out"
            )));
        }
        let mut environment = base.environment.clone();
        if let Some(env) = params.env {
            environment = env.into_iter().collect::<Environment>();
        }
        let agent_dir = AgentDir::find(&base.environment, base.compat, &base.cwd)
            .map_err(|error| Failure::new(ErrorCode::Io, error.to_string()))?;
        // One daemon, one agent directory, whatever the environment of its clients says.
        environment.set("AGENTD_DIR", agent_dir.path().as_os_str());
        let parsed = cli::parse_session(&params.args, &cwd, environment);
        let mut parsed = parsed.map_err(|text| bad(format!("Invalid field \"args\": {text}")))?;
        let options = &mut parsed.session;
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
        options.compat = base.compat;
        options.name = params.name.or(options.name.take());
        options.model = params.model.or(options.model.take());
        options.thinking = params.thinking_level.or(options.thinking);
        options.tools.allow = params.tools.or(options.tools.allow.take());
        options.system_prompt = params.system_prompt.or(options.system_prompt.take());
        options.append_system_prompt.extend(params.append_system_prompt);
        Ok(parsed)
    }
}

/// Which fields of `open_session` were given that mean the same as flags.
struct Fields {
    given: Vec<&'static str>,
    /// Whether the client has an environment of its own.
    has_environment: bool,
    /// Whether it sent that.
    sends_environment: bool,
    /// Whether a session that is at work is to be left alone.
    if_idle: bool,
}

impl Fields {
    fn of(params: &OpenSessionParams) -> Self {
        let given = [
            ("ephemeral", params.ephemeral == Some(true)),
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

    /// What to say to wishes that an open session cannot be given any more. `elsewhere`: the folder that it works in, and the one that
    /// was asked for.
    fn refusal(&self, flags: &[&str], session: &str, elsewhere: Option<(String, String)>) -> Failure {
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

fn gone(session: &str) -> Failure {
    let text = format!("The session \"{session}\" ended meanwhile.");
    Failure::new(ErrorCode::NoSession, text).hint("Attach or open it again.")
}
