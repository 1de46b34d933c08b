//! Searches a folder with several threads, and orders the results as in a walk.

use std::{
    collections::BTreeMap,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use agentd_agent::ToolError;
use grep_regex::RegexMatcher;
use tokio_util::sync::CancellationToken;

use super::file::{Engine, Found, Search, Stop};
use crate::{
    operations::FileKind,
    search::{Walk, WalkRules},
};

/// Files that a thread takes from the walk at once: enough that taking them costs little beside searching.
const BATCH: usize = 32;

/// The most threads, including the caller's: one search must not occupy a big machine alone.
const MOST_THREADS: usize = 8;

/// Batches that may wait for an earlier one: their results, up to 50 KiB each, are in memory.
const MOST_WAITING: usize = 64;

/// What to search for, and how much to return.
pub(super) struct Wanted<'a> {
    pub(super) matcher: &'a RegexMatcher,
    /// Lines shown before and after each match.
    pub(super) context: usize,
    /// The most matching lines.
    pub(super) limit: usize,
}

/// Searches every file that `rules` let through. Blocks; stops when enough was found, or when `cancel` fires.
pub(super) fn search_tree(
    rules: WalkRules<'_>,
    wanted: &Wanted<'_>,
    cancel: &CancellationToken,
) -> Result<Found, ToolError> {
    let root = rules.root.to_owned();
    let enough = AtomicBool::new(false);
    let shared = Shared {
        walk: Mutex::new(Source { walk: Walk::new(rules), next: 0, unreadable: 0, is_over: false }),
        order: Mutex::new(Order::default()),
        moved: Condvar::new(),
        search: Search {
            matcher: wanted.matcher,
            context: wanted.context,
            stop: Stop { cancel, enough: &enough },
        },
        root: &root,
        limit: wanted.limit,
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    thread::scope(|scope| {
        // With fewer threads the search only takes longer.
        let helpers: Vec<_> = (1..threads)
            .map_while(|_| {
                thread::Builder::new().name("grep".into()).spawn_scoped(scope, || shared.work()).ok()
            })
            .collect();
        shared.work();
        helpers.into_iter().for_each(|helper| {
            // The thread has reported its panic; the check below finds its missing batch.
            let _ = helper.join();
        });
    });
    let Shared { walk, order, .. } = shared;
    let mut order = order.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !enough.load(Ordering::Relaxed) && !cancel.is_cancelled() && !order.waiting.is_empty() {
        return Err(ToolError("The search stopped unexpectedly; try it again.".to_owned()));
    }
    order.found.unreadable += walk.into_inner().unwrap_or_else(PoisonError::into_inner).unreadable;
    Ok(order.found)
}

struct Shared<'a> {
    walk: Mutex<Source<'a>>,
    order: Mutex<Order>,
    /// Signals that batches need not wait any longer.
    moved: Condvar,
    search: Search<'a>,
    root: &'a Path,
    /// The most matching lines.
    limit: usize,
}

/// The files that no thread has taken yet.
struct Source<'a> {
    walk: Walk<'a>,
    /// The number of the next batch.
    next: usize,
    unreadable: usize,
    is_over: bool,
}

/// The results in order.
#[derive(Default)]
struct Order {
    found: Found,
    /// The number of the next batch in order.
    next: usize,
    /// Batches that were searched before their turn.
    waiting: BTreeMap<usize, (Found, Vec<PathBuf>)>,
    /// Whether a thread has ended: from then on, no thread waits.
    is_ending: bool,
}

/// Tells the other threads that one has ended, even by a panic.
struct Leaving<'a, 'b>(&'a Shared<'b>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        lock(&self.0.order).is_ending = true;
        self.0.moved.notify_all();
    }
}

impl Shared<'_> {
    /// Searches batches until none is left or enough was found.
    fn work(&self) {
        let _leaving = Leaving(self);
        let mut engine = Engine::new(self.search.context, false);
        while let Some((number, files)) = self.take() {
            let mut found = Found::default();
            for file in &files {
                if self.search.stop.is_set() {
                    return;
                }
                // Earlier batches may already have found some.
                let most = self.limit.saturating_sub(found.matches);
                self.search_file(&mut engine, file, most, &mut found);
                if found.has_more {
                    break;
                }
            }
            self.hand_in(number, found, files);
        }
    }

    fn search_file(&self, engine: &mut Engine, file: &Path, most: usize, found: &mut Found) {
        let shown = file.strip_prefix(self.root).unwrap_or(file).to_string_lossy();
        self.search.file(engine, (file, &shown), most, found);
    }

    fn take(&self) -> Option<(usize, Vec<PathBuf>)> {
        let mut source = lock(&self.walk);
        if source.is_over || self.search.stop.is_set() {
            return None;
        }
        let mut files = Vec::with_capacity(BATCH);
        while files.len() < BATCH {
            match source.walk.next() {
                Some(Ok(entry)) if entry.kind == FileKind::File => files.push(entry.path),
                // Asking takes a lock that all threads share: not for every file.
                Some(Ok(_)) if self.search.stop.is_set() => return None,
                Some(Ok(_)) => {}
                Some(Err(_)) => source.unreadable += 1,
                None => {
                    source.is_over = true;
                    break;
                }
            }
        }
        if files.is_empty() {
            return None;
        }
        let number = source.next;
        source.next += 1;
        Some((number, files))
    }

    /// Puts a batch in its place, and adds the results that are complete up to there.
    fn hand_in(&self, number: usize, found: Found, files: Vec<PathBuf>) {
        let mut order = lock(&self.order);
        order.waiting.insert(number, (found, files));
        loop {
            let next = order.next;
            let Some((found, files)) = order.waiting.remove(&next) else { break };
            order.next += 1;
            let room = self.limit - order.found.matches;
            if found.matches > room || found.has_more {
                let cut = self.first(&files, room);
                order.found.append(&cut);
                order.found.has_more = true;
                self.search.stop.enough.store(true, Ordering::Relaxed);
                order.waiting.clear();
                return;
            }
            order.found.append(&found);
        }
        self.moved.notify_all();
        let is_ahead = |order: &mut Order| {
            order.waiting.len() > MOST_WAITING && !order.is_ending && !self.search.stop.is_set()
        };
        // A poisoned lock only means that another thread has panicked and ended.
        drop(self.moved.wait_while(order, is_ahead));
    }

    /// The first matches of a batch that has more than there is room for.
    fn first(&self, files: &[PathBuf], room: usize) -> Found {
        let mut engine = Engine::new(self.search.context, false);
        let mut found = Found::default();
        for file in files {
            if found.has_more || self.search.stop.cancel.is_cancelled() {
                break;
            }
            let room = room.saturating_sub(found.matches);
            self.search_file(&mut engine, file, room, &mut found);
        }
        found
    }
}

/// No holder of these locks leaves a half-made change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
