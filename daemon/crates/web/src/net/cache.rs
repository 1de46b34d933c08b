//! Answers that may be used again, as HTTP says (RFC 9111), in bounded memory. A private cache: nothing in it came by cookies or credentials.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, LAST_MODIFIED, PRAGMA, VARY},
};

/// The longest time for which an answer counts that says nothing of it: a tenth of its age, at most this.
const MAX_GUESS: Duration = Duration::from_secs(3600);

/// What an entry takes besides its body.
const OVERHEAD: usize = 512;

/// An answer with its whole body.
#[derive(Debug, Clone)]
pub(crate) struct StoredAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// When it was received, or last found to be still right.
    received: SystemTime,
    /// For how long it counts from then on.
    lifetime: Duration,
}

/// What the cache has for a request.
pub(crate) enum Cached {
    /// Nothing.
    Nothing,
    /// An answer that counts.
    Fresh(Arc<StoredAnswer>),
    /// An answer that the server can be asked about.
    Stale(Arc<StoredAnswer>),
}

/// The answers that are kept. Cheap to clone; all clones are the same cache.
#[derive(Clone, Default)]
pub(crate) struct HttpCache(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    answers: HashMap<(String, String), (u64, Arc<StoredAnswer>)>,
    bytes: usize,
    /// Counts uses, to find the answer that was not used for longest.
    uses: u64,
}

impl HttpCache {
    /// What there is for a URL, asked for in this variant: by this header `Accept`, and with these hosts allowed.
    pub(crate) fn find(&self, url: &str, variant: &str, now: SystemTime) -> Cached {
        let mut inner = self.lock();
        inner.uses += 1;
        let uses = inner.uses;
        let Some((used, answer)) = inner.answers.get_mut(&(url.to_owned(), variant.to_owned())) else {
            return Cached::Nothing;
        };
        *used = uses;
        let answer = Arc::clone(answer);
        if answer.is_fresh(now) { Cached::Fresh(answer) } else { Cached::Stale(answer) }
    }

    /// Keeps an answer if it may be kept, in at most `most` bytes for all.
    pub(crate) fn store(&self, url: &str, variant: &str, answer: &Arc<StoredAnswer>, most: usize) {
        let key = (url.to_owned(), variant.to_owned());
        let mut inner = self.lock();
        inner.remove(&key);
        let size = answer.size(&key);
        if !answer.may_be_kept() || size > most / 4 {
            return;
        }
        inner.uses += 1;
        let uses = inner.uses;
        inner.bytes += size;
        inner.answers.insert(key, (uses, Arc::clone(answer)));
        while inner.bytes > most {
            let oldest = inner.answers.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            match oldest {
                Some(key) => inner.remove(&key),
                None => break,
            }
        }
    }

    /// The bytes of all answers.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn remove(&mut self, key: &(String, String)) {
        if let Some((_, answer)) = self.answers.remove(key) {
            self.bytes = self.bytes.saturating_sub(answer.size(key));
        }
    }
}

impl StoredAnswer {
    /// An answer that was received now.
    pub(crate) fn new(status: StatusCode, headers: HeaderMap, body: Bytes, now: SystemTime) -> Self {
        let lifetime = lifetime(&headers, now);
        Self { status, headers, body, received: now, lifetime }
    }

    /// The same answer, which the server has found to be still right, with what its answer to that says.
    pub(crate) fn confirmed(&self, headers: &HeaderMap, now: SystemTime) -> Self {
        let mut all = self.headers.clone();
        for name in [CACHE_CONTROL, DATE, ETAG, EXPIRES, LAST_MODIFIED, AGE] {
            if let Some(value) = headers.get(&name) {
                all.insert(name, value.clone());
            }
        }
        Self::new(self.status, all, self.body.clone(), now)
    }

    fn is_fresh(&self, now: SystemTime) -> bool {
        now.duration_since(self.received).is_ok_and(|age| age < self.lifetime)
    }

    /// Whether a later request could be answered by it, or ask about it.
    fn may_be_kept(&self) -> bool {
        let has_body_of_url = matches!(self.status.as_u16(), 200 | 203 | 300 | 301 | 308 | 404 | 410);
        let varies = self.headers.get_all(VARY).iter().any(|vary| {
            // What we send is always the same, but for what we accept, which is part of the key.
            vary.to_str().map_or(true, |vary| vary.contains('*'))
        });
        let can_be_used = !self.lifetime.is_zero() || self.validators().next().is_some();
        has_body_of_url && !varies && !has_directive(&self.headers, "no-store") && can_be_used
    }

    /// The headers by which the server is asked whether the answer is still right.
    pub(crate) fn validators(
        &self,
    ) -> impl Iterator<Item = (reqwest::header::HeaderName, &reqwest::header::HeaderValue)> {
        use reqwest::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
        let etag = self.headers.get(ETAG).map(|etag| (IF_NONE_MATCH, etag));
        let modified = self.headers.get(LAST_MODIFIED).map(|modified| (IF_MODIFIED_SINCE, modified));
        etag.into_iter().chain(modified)
    }

    fn size(&self, (url, variant): &(String, String)) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        OVERHEAD + self.body.len() + headers + url.len() + variant.len()
    }
}

/// The value of a directive of `Cache-Control`; empty for one without.
fn directive<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all(CACHE_CONTROL).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|directive| {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
    })
}

fn has_directive(headers: &HeaderMap, wanted: &str) -> bool {
    directive(headers, wanted).is_some()
}

/// For how long an answer counts from now on.
fn lifetime(headers: &HeaderMap, now: SystemTime) -> Duration {
    let text = |name| headers.get(name).and_then(|value: &reqwest::header::HeaderValue| value.to_str().ok());
    let time = |name| text(name).and_then(|text| httpdate::parse_http_date(text).ok());
    let pragma = text(PRAGMA).is_some_and(|pragma| pragma.to_ascii_lowercase().contains("no-cache"));
    let has_control = headers.contains_key(CACHE_CONTROL);
    if has_directive(headers, "no-cache") || (pragma && !has_control) {
        return Duration::ZERO;
    }
    let date = time(DATE).unwrap_or(now);
    let age = text(AGE).and_then(|age| age.trim().parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
    let whole = if let Some(seconds) = directive(headers, "max-age") {
        Duration::from_secs(seconds.parse().unwrap_or(0))
    } else if headers.contains_key(EXPIRES) {
        time(EXPIRES).and_then(|expires| expires.duration_since(date).ok()).unwrap_or_default()
    } else {
        let modified = time(LAST_MODIFIED).and_then(|modified| date.duration_since(modified).ok());
        modified.map_or(Duration::ZERO, |since| (since / 10).min(MAX_GUESS))
    };
    whole.saturating_sub(age)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn answer(headers: &[(&str, &str)], body: usize, now: SystemTime) -> Arc<StoredAnswer> {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
            })
            .collect();
        Arc::new(StoredAnswer::new(StatusCode::OK, headers, vec![0; body].into(), now))
    }

    fn state(headers: &[(&str, &str)], after: u64) -> &'static str {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let cache = HttpCache::default();
        cache.store("u", "a", &answer(headers, 10, now), 100_000);
        match cache.find("u", "a", now + Duration::from_secs(after)) {
            Cached::Nothing => "nothing",
            Cached::Fresh(_) => "fresh",
            Cached::Stale(_) => "stale",
        }
    }

    #[test]
    fn answers_count_as_long_as_their_servers_say() {
        let date = ("date", "Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(state(&[("cache-control", "public, max-age=60")], 59), "fresh");
        assert_eq!(state(&[("cache-control", "max-age=60")], 60), "stale");
        assert_eq!(state(&[("cache-control", "max-age=60"), ("age", "30")], 31), "stale");
        assert_eq!(state(&[("cache-control", "no-store, max-age=60")], 0), "nothing");
        assert_eq!(state(&[("cache-control", "no-cache"), ("etag", "\"x\"")], 0), "stale");
        assert_eq!(state(&[("etag", "\"x\"")], 0), "stale");
        assert_eq!(state(&[], 0), "nothing");
        assert_eq!(state(&[date, ("expires", "Tue, 14 Nov 2023 22:14:20 GMT")], 59), "fresh");
        assert_eq!(state(&[date, ("expires", "0"), ("etag", "x")], 0), "stale");
        assert_eq!(state(&[date, ("last-modified", "Tue, 14 Nov 2023 22:03:20 GMT")], 59), "fresh");
        assert_eq!(state(&[date, ("last-modified", "Tue, 14 Nov 2023 22:03:20 GMT")], 61), "stale");
        assert_eq!(state(&[("cache-control", "max-age=60"), ("vary", "*")], 0), "nothing");
        assert_eq!(state(&[("cache-control", "max-age=60"), ("vary", "Accept")], 0), "fresh");
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let now = SystemTime::now();
        let cache = HttpCache::default();
        let one = answer(&[("cache-control", "max-age=60")], 1000, now);
        for url in ["1", "2", "3", "4", "5"] {
            cache.store(url, "", &one, 7000);
            // The first is used again and again.
            cache.find("1", "", now);
        }
        assert!(cache.bytes() <= 7000);
        assert!(
            matches!(cache.find("1", "", now), Cached::Fresh(_))
                && matches!(cache.find("2", "", now), Cached::Nothing)
        );
        cache.store("huge", "", &answer(&[("cache-control", "max-age=60")], 6000, now), 7000);
        assert!(matches!(cache.find("huge", "", now), Cached::Nothing));
        let confirmed = one.confirmed(
            &[(CACHE_CONTROL, HeaderValue::from_static("max-age=600"))].into_iter().collect(),
            now,
        );
        assert!(confirmed.is_fresh(now + Duration::from_secs(599)));
        cache.store("1", "", &one, 0);
        assert_eq!((cache.bytes() > 0, matches!(cache.find("1", "", now), Cached::Nothing)), (true, true));
    }
}
