//! The pages that were read last, so that their other lines can be shown without getting them again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// Bytes of all pages of all sessions.
const MAX_BYTES: usize = 8 << 20;

/// Pages of all sessions.
const MAX_PAGES: usize = 64;

/// The pages. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(crate) struct PageCache(Arc<Mutex<VecDeque<KeptPage>>>);

/// The name of a page: the session, the URL, whether it is raw.
pub(crate) type PageKey = (String, String, bool);

struct KeptPage {
    key: PageKey,
    text: Arc<str>,
}

impl PageCache {
    /// A page that was read before.
    pub(crate) fn find(&self, key: &PageKey) -> Option<Arc<str>> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pages.iter().position(|page| page.key == *key)?;
        let page = pages.remove(at)?;
        let text = Arc::clone(&page.text);
        pages.push_back(page);
        Some(text)
    }

    /// Keeps a page.
    pub(crate) fn store(&self, key: PageKey, text: &Arc<str>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|page| page.key != key);
        pages.push_back(KeptPage { key, text: Arc::clone(text) });
        while pages.len() > MAX_PAGES || pages.iter().map(|page| page.text.len()).sum::<usize>() > MAX_BYTES {
            pages.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_that_were_read_last_are_kept() {
        let pages = PageCache::default();
        let key = |name: &str| ("s".to_owned(), name.to_owned(), false);
        let text: Arc<str> = "x".repeat(3 << 20).into();
        for name in ["a", "b"] {
            pages.store(key(name), &text);
        }
        assert!(pages.find(&key("a")).is_some());
        pages.store(key("c"), &text);
        assert!(
            pages.find(&key("a")).is_some()
                && pages.find(&key("b")).is_none()
                && pages.find(&key("c")).is_some()
        );
        assert!(pages.find(&("other".to_owned(), "a".to_owned(), false)).is_none());
    }
}
