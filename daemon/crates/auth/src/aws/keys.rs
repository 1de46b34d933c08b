//! Keys as the sources hand them out.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agentd_config::Environment;
use agentd_http::AwsKeys;
use serde_json::Value;
use tokio::sync::Mutex as TurnMutex;

use super::AwsProblem;
use crate::Secret;

/// Keys, and how long they are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundKeys {
    pub(super) keys: AwsKeys,
    /// `None` for keys that do not expire by themselves.
    pub(super) expires: Option<SystemTime>,
    /// True if getting them again costs nothing and may give others: they were read off the environment or a file.
    pub(super) is_at_hand: bool,
}

impl FoundKeys {
    /// Keys that stand somewhere.
    pub(super) fn at_hand(id: &str, secret: Secret, token: Option<Secret>) -> Self {
        let keys = AwsKeys { access_key_id: id.to_owned(), secret_access_key: secret, session_token: token };
        Self { keys, expires: None, is_at_hand: true }
    }

    /// Keys in a JSON object, whose members for the token and the end have many names.
    ///
    /// # Errors
    /// Says what `source` left out, without quoting anything.
    pub(super) fn in_json(value: &Value, source: &str) -> Result<Self, AwsProblem> {
        let text = |names: &[&str]| {
            let member = names.iter().find_map(|name| value.get(*name)?.as_str());
            member.filter(|text| !text.is_empty())
        };
        let missing = |what: &str| AwsProblem::new(format!("The answer of {source} has no {what}."));
        let id = text(&["AccessKeyId", "accessKeyId"]).ok_or_else(|| missing("AccessKeyId"))?;
        let secret =
            text(&["SecretAccessKey", "secretAccessKey"]).ok_or_else(|| missing("SecretAccessKey"))?;
        let token = text(&["SessionToken", "sessionToken", "Token"]);
        let end = ["Expiration", "expiration"].into_iter().find_map(|name| value.get(name));
        let expires = match end {
            None | Some(Value::Null) => None,
            Some(end) => {
                let wrong =
                    || AwsProblem::new(format!("The answer of {source} has an Expiration that is no time."));
                Some(time_of(end).ok_or_else(wrong)?)
            }
        };
        let keys = AwsKeys {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::new(secret),
            session_token: token.map(Secret::new),
        };
        Ok(Self { keys, expires, is_at_hand: false })
    }
}

/// A time: text in the form of RFC 3339, or milliseconds since 1970.
fn time_of(value: &Value) -> Option<SystemTime> {
    match value {
        Value::String(text) => time_in(text),
        value => UNIX_EPOCH.checked_add(Duration::from_millis(value.as_u64()?)),
    }
}

/// A time as text. `UTC` for `Z` is what some versions of AWS's own program wrote.
pub(super) fn time_in(text: &str) -> Option<SystemTime> {
    let text = text.trim().replace("UTC", "Z");
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(SystemTime::from(time))
}

/// A time as text.
pub(super) fn text_of(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Keys are renewed when they have less than this left.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// Keys of AWS that expire, for the life of the daemon; cheap to clone. Sessions whose environments say the same about AWS share them.
#[derive(Clone, Default)]
pub struct AwsCache(Arc<Mutex<Cells>>);

type Cells = HashMap<Vec<(String, String)>, Cell>;

/// The task that holds the lock may ask for new keys; all others wait for its result.
type Cell = Arc<TurnMutex<Option<FoundKeys>>>;

impl fmt::Debug for AwsCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsCache")
    }
}

impl AwsCache {
    /// The keys that are kept, or those that `get` gives: where there are none, where those end soon, and where they are `refused`.
    ///
    /// # Errors
    /// Those of `get`. Keys that are still good for a moment go before an error.
    pub(super) async fn get(
        &self,
        environment: &Environment,
        refused: Option<&AwsKeys>,
        get: impl Future<Output = Result<FoundKeys, AwsProblem>>,
    ) -> Result<AwsKeys, AwsProblem> {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(place(environment)).or_default())
        };
        let mut kept = cell.lock().await;
        let living = kept
            .take()
            .filter(|found| refused != Some(&found.keys))
            .filter(|found| left(found) > Duration::ZERO);
        if let Some(found) = living.as_ref().filter(|found| left(found) > MARGIN) {
            let keys = found.keys.clone();
            *kept = living;
            return Ok(keys);
        }
        // Given back first: the question may be dropped on the way.
        kept.clone_from(&living);
        match (get.await, living) {
            (Ok(found), _) => {
                let keys = found.keys.clone();
                *kept = Some(found).filter(|found| !found.is_at_hand);
                Ok(keys)
            }
            (Err(problem), Some(living)) => {
                tracing::warn!(%problem, "keys of AWS could not be renewed in time");
                Ok(living.keys)
            }
            (Err(problem), None) => Err(problem),
        }
    }
}

/// The time for which keys are still good.
fn left(found: &FoundKeys) -> Duration {
    let end = found.expires.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
    end.unwrap_or(Duration::MAX)
}

/// The settings of AWS in an environment.
fn place(environment: &Environment) -> Vec<(String, String)> {
    let counts = |name: &str| name.starts_with("AWS_") || name == "HOME" || name == "PATH";
    let pairs = environment.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
    pairs
        .filter(|(name, _)| counts(name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}
