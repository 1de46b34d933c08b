//! Counts and findings of a sub-command, and the end of its daemon.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use agentd_e2e::Service;
use serde_json::json;

use crate::{cli, peer::Peer};

/// The number of findings that are kept in full.
const KEPT: usize = 50;

/// Counts of the whole run.
#[derive(Default)]
pub(crate) struct Tally {
    /// Commands that were answered.
    pub(crate) commands: AtomicU64,
    /// Prompts whose run settled as required.
    pub(crate) prompts: AtomicU64,
    is_over: AtomicBool,
    kinds: Mutex<BTreeMap<String, u64>>,
    findings: Mutex<Vec<String>>,
    /// The time of each `daemon_status`.
    looks: Mutex<Vec<Duration>>,
}

impl Tally {
    /// Counts an operation, or an error that the protocol allows.
    pub(crate) fn note(&self, kind: &str) {
        *self.kinds.lock().unwrap().entry(kind.to_owned()).or_default() += 1;
    }

    /// Records a broken promise.
    pub(crate) fn find(&self, text: &str) {
        self.note("FINDING");
        let mut findings = self.findings.lock().unwrap();
        if findings.len() < KEPT {
            cli::error(&format!("FINDING: {text}"));
            findings.push(text.to_owned());
        }
    }

    /// Records the time of a `daemon_status`.
    pub(crate) fn looked(&self, took: Duration) {
        self.looks.lock().unwrap().push(took);
    }

    /// The times of all `daemon_status` commands, sorted.
    pub(crate) fn looks(&self) -> Vec<Duration> {
        let mut looks = self.looks.lock().unwrap().clone();
        looks.sort_unstable();
        looks
    }

    /// Ends the clients' work.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns `true` when clients are to leave.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The counts by name.
    pub(crate) fn kinds(&self) -> BTreeMap<String, u64> {
        self.kinds.lock().unwrap().clone()
    }

    /// The findings.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.findings.lock().unwrap().clone()
    }
}

/// Whether a process runs. One that has ended stays in `/proc` until its parent takes notice: with the daemon gone that is the machine's first
/// process, which may take its time when much else is at work.
fn runs(id: u32) -> bool {
    let about = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Behind the name, which may have brackets of its own.
    let state = about.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Ends the daemon; returns its exit status, and what is wrong with its end.
pub(crate) fn end_daemon(service: Service) -> (String, Vec<String>) {
    let below = descendants(service.id());
    let told = Peer::connect(service.socket())
        .and_then(|mut peer| peer.done(json!({"type": "shutdown", "mode": "abort"})));
    let mut wrong = Vec::new();
    if let Err(trouble) = told {
        wrong.push(format!("shutdown: {trouble}"));
        return ("killed".into(), wrong);
    }
    let ended = service.wait();
    if !ended.status.success() {
        wrong.push(format!("the daemon ended with {}", ended.status));
    }
    if let Some(line) = ended.stderr.lines().find(|line| line.contains("panicked")) {
        wrong.push(format!("the log of the daemon: {line}"));
    }
    for id in below.into_iter().filter(|id| runs(*id)) {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        wrong.push(format!("process {id} outlived the daemon: {command}"));
    }
    (ended.status.to_string(), wrong)
}

/// The descendants of a process.
pub(crate) fn descendants(id: u32) -> Vec<u32> {
    let mut below: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process that ended meanwhile has no file.
        let Ok(stat) = fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        below.entry(parent.unwrap_or(0)).or_default().push(child);
    }
    let mut found = Vec::new();
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        let children = below.remove(&id).unwrap_or_default();
        found.extend(&children);
        next.extend(children);
    }
    found
}
