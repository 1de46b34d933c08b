//! Replays exchanges from recordings.

use std::{
    collections::{HashMap, VecDeque},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_http::{Credentials, Secret};
use agentd_protocol::model::Model;
use bytes::Bytes;
use reqwest::Url;

use super::{
    compare::{diff, shape},
    format::{ExchangeEnd, ExchangeInfo, RecordingLine, bytes},
    read::{ExchangeLocation, ReplayError, exchanges, read_exchange},
};
use crate::failure::{Failure, FailureKind};

/// The key of replayed requests, which never leave the process.
const PLACEHOLDER_KEY: &str = "replayed";

/// Options of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlayerOptions {
    /// The parts of a request that have to match.
    pub matching: ReplayMatching,
    /// Whether answers take the recorded time; otherwise they come at once.
    pub timing: bool,
}

/// The parts of a request that have to match the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayMatching {
    /// The path and the body, except for what differs from run to run.
    #[default]
    Body,
    /// The position in the order of the session's requests, and the path.
    Order,
}

/// Replays exchanges, those of a session in their order.
#[derive(Debug)]
pub struct Player {
    options: PlayerOptions,
    source: PathBuf,
    /// The first exchange of each provider, with its base URL and account.
    providers: HashMap<String, (ExchangeLocation, String, agentd_http::Account)>,
    /// The recorded models, in order.
    models: Vec<Arc<Model>>,
    state: Mutex<PlayerState>,
}

#[derive(Debug, Default)]
struct PlayerState {
    /// The exchanges of each recorded session that were not replayed yet, in order.
    recorded: VecDeque<VecDeque<ExchangeLocation>>,
    /// The recorded session that is replayed for each live session.
    playing: HashMap<String, VecDeque<ExchangeLocation>>,
}

/// A recorded answer.
#[derive(Debug)]
pub(crate) struct ReplayedAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    chunks: VecDeque<(u64, Bytes)>,
    /// The failure that ended the answer, if any.
    failure: Option<Failure>,
    timing: bool,
    now: u64,
}

impl Player {
    /// Plays what is in `source`: a folder of recordings, one of them, or a bug report. Blocks on the file system.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn open(source: &Path, options: PlayerOptions) -> Result<Self, ReplayError> {
        let unreadable =
            |source_error| ReplayError::Unreadable { path: source.to_owned(), source: source_error };
        let mut files = Vec::new();
        if fs::metadata(source).map_err(unreadable)?.is_dir() {
            for entry in fs::read_dir(source).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.extension().is_some_and(|extension| extension == "jsonl") {
                    files.push(path);
                }
            }
            files.sort();
        } else {
            files.push(source.to_owned());
        }
        let mut sessions: Vec<(String, VecDeque<ExchangeLocation>)> = Vec::new();
        let mut providers = HashMap::new();
        let mut models: Vec<Arc<Model>> = Vec::new();
        for path in files {
            for (place, sent) in exchanges(&path)? {
                if !models.iter().any(|model| model.provider == sent.provider && model.id == sent.model) {
                    models.push(Arc::new(sent.model()));
                }
                let account = sent.account.into();
                providers.entry(sent.provider).or_insert_with(|| (place.clone(), sent.base_url, account));
                match sessions.iter_mut().find(|(session, _)| *session == sent.session) {
                    Some((_, places)) => places.push_back(place),
                    None => sessions.push((sent.session, VecDeque::from([place]))),
                }
            }
        }
        if sessions.is_empty() {
            return Err(ReplayError::Empty { path: source.to_owned() });
        }
        let recorded = sessions.into_iter().map(|(_, places)| places).collect();
        let state = Mutex::new(PlayerState { recorded, playing: HashMap::new() });
        Ok(Self { options, source: source.to_owned(), providers, models, state })
    }

    /// Whether requests to a provider were recorded.
    #[must_use]
    pub fn has(&self, provider: &str) -> bool {
        self.providers.contains_key(provider)
    }

    /// The recorded models with their configuration at that time, each once, in the order of their first request.
    #[must_use]
    pub fn models(&self) -> &[Arc<Model>] {
        &self.models
    }

    /// The source of the recordings.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Placeholder credentials for a replayed request, so that none of the user's are looked up. Account and address are those of the
    /// recording.
    #[must_use]
    pub fn credentials(&self, model: &Model) -> (Credentials, Option<String>) {
        let found = self.providers.get(&model.provider);
        let key = Secret::new(PLACEHOLDER_KEY);
        let aws = agentd_http::AwsKeys {
            access_key_id: PLACEHOLDER_KEY.to_owned(),
            secret_access_key: key.clone(),
            session_token: None,
        };
        let credentials = Credentials {
            api_key: Some(key),
            aws: Some(aws),
            account: agentd_http::Account {
                account_id: Some(PLACEHOLDER_KEY.to_owned()),
                ..found.map(|(_, _, account)| account.clone()).unwrap_or_default()
            },
            ..Credentials::default()
        };
        let base_url = found.map(|(_, base_url, _)| base_url.clone()).filter(|url| !url.is_empty());
        (credentials, base_url)
    }

    /// The answer to a request: that of the next exchange of its session. A session that asks for the first time takes over the
    /// first recorded one whose first request fits.
    ///
    /// # Errors
    /// Fails with the difference where the request is another one than was recorded, and with the recorded failure. Blocks on
    /// the file system.
    pub(crate) fn answer(
        &self,
        about: &ExchangeInfo,
        url: &Url,
        body: &[u8],
    ) -> Result<ReplayedAnswer, Failure> {
        let asked =
            AskedRequest { path: url.path(), shape: shape(&String::from_utf8_lossy(body), &about.session) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let PlayerState { recorded, playing } = &mut *state;
        if !playing.contains_key(&about.session) {
            let mut nearest = None;
            let mut fitting = None;
            for (nth, places) in recorded.iter().enumerate() {
                let Some(place) = places.front() else { continue };
                match self.fit(place, &asked) {
                    Ok(()) => {
                        fitting = Some(nth);
                        break;
                    }
                    Err(failure) => drop(nearest.get_or_insert(failure)),
                }
            }
            let found = fitting.and_then(|nth| recorded.remove(nth));
            let found = found.ok_or_else(|| nearest.unwrap_or_else(|| self.over()))?;
            playing.insert(about.session.clone(), found);
        }
        let places = playing.get_mut(&about.session);
        let place = places.as_ref().and_then(|places| places.front()).cloned().ok_or_else(|| self.over())?;
        self.fit(&place, &asked)?;
        let played = self.load(&place)?;
        if let Some(places) = places {
            places.pop_front();
        }
        Ok(played)
    }

    fn over(&self) -> Failure {
        let message = format!(
            "The recording {} has no more requests for this session: what was recorded ended here.",
            self.source.display()
        );
        Failure::new(FailureKind::Fatal, message)
    }

    /// Checks that a request matches the recorded one.
    fn fit(&self, place: &ExchangeLocation, asked: &AskedRequest<'_>) -> Result<(), Failure> {
        let (sent, _) = read_exchange(place)?;
        let path = Url::parse(&sent.url).map(|url| url.path().to_owned()).unwrap_or_default();
        let other = |what: String| {
            let name = &place.name;
            let message = format!("The request is not the one that was recorded in {name}: {what}");
            Err(Failure::new(FailureKind::Fatal, message))
        };
        if path != asked.path {
            return other(format!("it goes to {}, and the recorded one went to {path}.", asked.path));
        }
        if self.options.matching == ReplayMatching::Order {
            return Ok(());
        }
        let body = sent.body.as_deref().map(serde_json::value::RawValue::get).or(sent.body_text.as_deref());
        let recorded = shape(body.unwrap_or_default(), &sent.session);
        if recorded == asked.shape {
            return Ok(());
        }
        let differs = format!("its body differs (- recorded, + now):\n{}", diff(&recorded, &asked.shape));
        if sent.definition.is_some() {
            return other(differs);
        }
        let (provider, model) = (&sent.provider, &sent.model);
        other(format!(
            "{differs}\nThe recording does not say how the model {provider}/{model} was configured (it is of agentd {}), so \
             that the request may differ for that alone: --replay-match order compares no bodies.",
            sent.agentd
        ))
    }

    fn load(&self, place: &ExchangeLocation) -> Result<ReplayedAnswer, Failure> {
        let (_, lines) = read_exchange(place)?;
        let broken = |what: &str| {
            let message = format!("The recording {} cannot be played: {what}.", place.name);
            Failure::new(FailureKind::Fatal, message)
        };
        let mut head = None;
        let mut chunks = VecDeque::new();
        let mut end = Err(broken("it breaks off"));
        for line in lines {
            match line {
                RecordingLine::Request(_) => return Err(broken("a request is in its middle")),
                RecordingLine::Response { status, headers, .. } => head = Some((status, headers)),
                RecordingLine::Chunk { ms, text, base64 } => {
                    let bytes = bytes(text, base64).map_err(|error| broken(&error))?;
                    chunks.push_back((ms, Bytes::from(bytes)));
                }
                RecordingLine::Failure(failed) => end = Ok(Some(failed.failure())),
                RecordingLine::End { reason: ExchangeEnd::Complete, .. } => end = Ok(None),
                RecordingLine::End { reason: ExchangeEnd::Aborted, .. } => {
                    end = Err(broken("the answer was aborted when it was recorded, and ends here"));
                }
            }
        }
        // An incomplete recording is replayed as far as it goes.
        let failure = end.unwrap_or_else(Some);
        match (head, failure) {
            (Some((status, headers)), failure) => {
                Ok(ReplayedAnswer { status, headers, chunks, failure, timing: self.options.timing, now: 0 })
            }
            (None, Some(failure)) => Err(failure),
            (None, None) => Err(broken("it has no answer")),
        }
    }
}

impl ReplayedAnswer {
    /// The next bytes of the body; `None` at its end. Cancel safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some((ms, _)) = self.chunks.front() else {
            return self.failure.clone().map_or(Ok(None), Err);
        };
        if self.timing {
            tokio::time::sleep(Duration::from_millis(ms.saturating_sub(self.now))).await;
            self.now = *ms;
        }
        Ok(self.chunks.pop_front().map(|(_, bytes)| bytes))
    }
}

/// The comparable form of a request.
struct AskedRequest<'a> {
    path: &'a str,
    shape: serde_json::Value,
}
