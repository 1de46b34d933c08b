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
use agentd_session::{Attached, Target};
use serde_json::Value;

use super::{reader::Reader, writer::Out};
use crate::{
    cli::{self, StdioOptions},
    hub::{self, Awake, Joined, Known},
};

impl Reader {
    pub(super) async fn open_session(&mut self, params: OpenSessionParams, id: Option<Value>) {
        const NAME: &str = "open_session";
        let follows = params.attach != Some(false);
        // Which session it will be is known only when it is open.
        let admitted = if follows { self.may_follow("") } else { Ok(()) };
        let opened = match admitted.and_then(|()| self.options_of(params)) {
            Ok(StdioOptions { session, on_eof, cumulative, .. }) => {
                let opened = self.registry.open(session).await;
                opened.map(|joined| (joined, on_eof, cumulative)).map_err(Failure::from)
            }
            Err(failure) => Err(failure),
        };
        // Until it is followed.
        let (session, warnings, _expected) = match opened {
            Ok((Joined { session, diagnostics, expected }, on_eof, cumulative)) => {
                self.on_eof = on_eof;
                if cumulative {
                    self.client.view.is_cumulative = true;
                    self.tell(Out::View(self.client.view)).await;
                }
                let to_tell = diagnostics.iter().filter(|it| it.level > DiagnosticLevel::Info);
                (session, to_tell.map(ToString::to_string).collect(), expected)
            }
            Err(failure) => return self.fail(id, Some(NAME), failure).await,
        };
        let joined = self.join(session, None).await;
        let (session, Attached { reader, seq, state, in_flight, .. }) = match joined {
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
        let (session, Attached { reader, seq, replayed, state, in_flight, pending_ui }) = match joined {
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
    pub(super) async fn open_by_id(&self, id: &str) -> Result<Arc<Known>, Failure> {
        if let Some(session) = self.registry.get(id) {
            return Ok(session);
        }
        let (agent_dir, wanted) = (self.agent_dir()?, id.to_owned());
        let elsewhere = self.registry.forgotten_file(id);
        let found = tokio::task::spawn_blocking(move || match elsewhere {
            Some(file) => hub::list::header_of(file, &wanted),
            None => hub::list::file_of(&agent_dir, &wanted),
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
            if session.is_alone() {
                self.registry.close(&session, EndMode::Abort).await;
            }
            return Err(hub::list::unknown(id));
        }
        Ok(session)
    }

    /// Sees to it that a session is in memory, and stays there while what this gives is held. One that has just made place for
    /// others is opened again.
    pub(super) async fn awaken(&self, session: Arc<Known>) -> Result<(Arc<Known>, Awake), Failure> {
        match self.registry.wake(&session).await {
            Ok(awake) => Ok((session, awake)),
            Err(failure)
                if failure.code == ErrorCode::NoSession && self.registry.was_forgotten(session.id()) =>
            {
                let session = self.open_by_id(session.id()).await?;
                let awake = self.registry.wake(&session).await?;
                Ok((session, awake))
            }
            Err(failure) => Err(failure),
        }
    }

    /// A place in what a session says, which is loaded if it left memory.
    async fn join(&self, session: Arc<Known>, since: Option<u64>) -> Result<(Arc<Known>, Attached), Failure> {
        let (session, awake) = self.awaken(session).await?;
        let gone = || {
            let text = format!("The session \"{}\" ended meanwhile.", session.id());
            Failure::new(ErrorCode::NoSession, text).hint("Attach or open it again.")
        };
        let attached = awake.handle.attach(since).await.ok_or_else(gone)?;
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
        session: Arc<Known>,
        feed: agentd_session::FeedReader,
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
