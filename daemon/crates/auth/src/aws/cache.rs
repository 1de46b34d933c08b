//! Keys that are good for a while, kept until shortly before their end.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use agentd_config::Environment;
use agentd_http::AwsKeys;
use tokio::sync::Mutex as TurnMutex;

use super::{AwsProblem, keys::Found};

/// Keys are renewed when they have less than this left.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// Keys of AWS that expire, for the life of the daemon; cheap to clone. Sessions whose environments say the same about AWS share them.
#[derive(Clone, Default)]
pub struct AwsCache(Arc<Mutex<Cells>>);

type Cells = HashMap<Vec<(String, String)>, Cell>;

/// The task that holds the lock may ask for new keys; all others wait for its result.
type Cell = Arc<TurnMutex<Option<Found>>>;

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
        get: impl Future<Output = Result<Found, AwsProblem>>,
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
fn left(found: &Found) -> Duration {
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
