//! Tokens of clouds: short, made of something longer, and kept in memory alone.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ring::digest::{SHA256, digest};

use crate::{
    Secret,
    oauth::{EARLY, now_ms},
};

/// The number of sources that are cached. A daemon has few.
const MOST: usize = 64;

/// A token, and when it ends in milliseconds since 1970.
pub(crate) struct ShortToken {
    pub(crate) token: Secret,
    pub(crate) ends_ms: i64,
}

/// Tokens by what they were made of; one cache for a daemon, cheap to clone.
#[derive(Clone, Default)]
pub struct TokenCache(Arc<Mutex<HashMap<[u8; 32], TokenCell>>>);

type TokenCell = Arc<tokio::sync::Mutex<Option<ShortToken>>>;

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenCache")
    }
}

impl TokenCache {
    /// The cached token of `source`, or a new one when there is none, it is about to end, or it was refused. Concurrent callers
    /// wait for the same one.
    ///
    /// # Errors
    /// Those of `make`. Cancel safety: the next caller makes it.
    pub(crate) async fn get<E>(
        &self,
        source: &str,
        is_refused: impl Fn(&Secret) -> bool,
        make: impl Future<Output = Result<ShortToken, E>>,
    ) -> Result<Secret, E> {
        let digest = digest(&SHA256, source.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(digest.as_ref());
        let place = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if places.len() >= MOST && !places.contains_key(&key) {
                places.clear();
            }
            Arc::clone(places.entry(key).or_default())
        };
        let mut kept = place.lock().await;
        let early = i64::try_from(EARLY.as_millis()).unwrap_or(0);
        let fresh =
            |kept: &&ShortToken| kept.ends_ms > now_ms().saturating_add(early) && !is_refused(&kept.token);
        if let Some(kept) = kept.as_ref().filter(fresh) {
            return Ok(kept.token.clone());
        }
        let made = make.await?;
        let token = made.token.clone();
        *kept = Some(made);
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tokens_are_made_when_there_is_none_of_use() {
        let cache = TokenCache::default();
        let get = async |source: &str, new: &str, ends_in: i64, refused: &str| {
            let made =
                async { Ok::<_, ()>(ShortToken { token: Secret::new(new), ends_ms: now_ms() + ends_in }) };
            cache.get(source, |token| token.expose() == refused, made).await.unwrap().expose().to_owned()
        };
        assert_eq!(get("a", "1", 600_000, "").await, "1");
        assert_eq!(get("a", "2", 600_000, "").await, "1");
        assert_eq!(get("b", "3", 10_000, "").await, "3");
        assert_eq!(get("b", "4", 600_000, "").await, "4", "one that is about to end is not used again");
        assert_eq!(get("a", "5", 600_000, "1").await, "5", "one that was refused neither");
        assert_eq!(get("a", "6", 600_000, "1").await, "5");
    }
}
