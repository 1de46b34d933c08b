//! Adds to a session what a crash kept from being written.

use agentd_files::fail_point::{self, Point};
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    settings::CrashRecovery,
};
use agentd_store::{
    NewEntry, OpenSession, SessionTree, StoreError,
    intent_log::{IntentLog, IntentRecord, OwnershipNotes, QueuedRecord, RunRecord, UnfinishedWork},
};
use agentd_tools::TakenBack;

use super::{
    pending::{AfterCrash, Origin},
    plan::plan_recovery_with,
};
use crate::clock::now_ms;

/// How often a turn continues by itself after a crash. A turn that ends the daemon every time must stop at some point.
const MAX_RESUMES: u32 = 2;

/// Diagnostics about queued messages, and their hint.
const WAITS: &str = "that waited in a queue when the daemon was killed waits again";

const WAIT: &str = "that waited in queues when the daemon was killed wait again";

const TAKE_BACK: &str = "the next run delivers what waits; clear_queue takes it back";

/// The same of messages in the intent log of a session that is not simply the user's.
const HELD_BACK: &str = "that waits in this session is not delivered";

const ALL_HELD_BACK: &str = "that wait in this session are not delivered";

const ASK: &str =
    "clients that answer questions are asked, such as `agentctl attach`; clear_queue takes it back";

/// The result of crash recovery.
pub(crate) struct Recovered {
    /// The session's intent log, for what comes now.
    pub(crate) intent_log: IntentLog,
    /// Diagnostics for the user.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Whether the turn goes on.
    pub(crate) next: AfterCrash,
    /// Whether something is left to be done: the disk failed.
    pub(crate) is_due: bool,
    /// Messages that wait in queues.
    pub(crate) waiting: Vec<QueuedRecord>,
    /// Messages that are to wait only when the user says so.
    pub(crate) held_back: Vec<QueuedRecord>,
}

/// Adds to a session what a crash kept from being written. Blocks. To be called while its file is locked, before anybody
/// works with it.
///
/// A disk that fails keeps no session from being opened: a diagnostic says so.
///
/// `taken_back` are the changes of files that were taken back, so that the results of their calls say so; `claims` are for the intent log of a session outside of the agent directory.
pub(crate) fn recover(
    session: &mut OpenSession,
    taken_back: &[TakenBack],
    way: CrashRecovery,
    origin: Origin,
    claims: Option<OwnershipNotes>,
) -> Recovered {
    let way = if origin != Origin::User && way == CrashRecovery::Resume { CrashRecovery::Ask } else { way };
    let mut intent_log = session.writer.intent_log();
    if let Some(claims) = claims {
        intent_log.claim_in(claims);
    }
    let mut diagnostics = Vec::new();
    let (mut next, mut is_due, mut waiting) = (AfterCrash::Nothing, false, Vec::new());
    let at = session.writer.path().map(std::path::Path::to_owned);
    let mut tell = |text: String, hint: &str| {
        let told = Diagnostic::warning(DiagnosticKind::Session, text).hint(hint);
        diagnostics.push(at.as_deref().map_or_else(|| told.clone(), |path| told.clone().at(path)));
    };
    let found = intent_log.left();
    if origin != Origin::User && !matches!(found, Ok(None)) {
        intent_log.is_of_others();
    }
    match found {
        Ok(None) => {}
        Ok(Some(left)) => match finish(session, &mut intent_log, (&left, taken_back), way) {
            Ok(finished) => {
                next = finished.after;
                let hint = match next {
                    AfterCrash::GoesOn => "the turn goes on by itself (setting crashRecovery)",
                    AfterCrash::Asks => "whether the turn goes on, you are asked (setting crashRecovery)",
                    AfterCrash::Nothing => "look at what may have run; then go on with a prompt",
                };
                if let Some(story) = finished.story {
                    tell(story, hint);
                }
                waiting = finished.waiting;
                match (waiting.len(), origin) {
                    (0, _) => {}
                    (1, Origin::User) => tell(format!("a message {WAITS}"), TAKE_BACK),
                    (count, Origin::User) => tell(format!("{count} messages {WAIT}"), TAKE_BACK),
                    (1, _) => tell(format!("a message {HELD_BACK}: {}", origin.doubt()), ASK),
                    (count, _) => tell(format!("{count} messages {ALL_HELD_BACK}: {}", origin.doubt()), ASK),
                }
            }
            Err(error) => {
                is_due = true;
                tell(
                    format!(
                        "a crash interrupted this session, and what is known of that could not be stored: {error}"
                    ),
                    "see that the disk has room and the folder of the session can be written; it is tried again \
                     before the session works",
                );
            }
        },
        Err(error) => {
            is_due = true;
            tell(
                format!("whether a crash interrupted this session is not known: {error}"),
                "see that the file can be read; it is tried again before the session works",
            );
        }
    }
    if is_due {
        intent_log.hold();
    }
    let held_back = if origin != Origin::User { std::mem::take(&mut waiting) } else { Vec::new() };
    Recovered { intent_log, diagnostics, next, is_due, waiting, held_back }
}

struct FinishedRecovery {
    /// The diagnostic about an interrupted turn, if there is one.
    story: Option<String>,
    after: AfterCrash,
    waiting: Vec<QueuedRecord>,
}

fn finish(
    session: &mut OpenSession,
    intent_log: &mut IntentLog,
    (left, taken_back): (&UnfinishedWork, &[TakenBack]),
    way: CrashRecovery,
) -> Result<FinishedRecovery, StoreError> {
    let plan = plan_recovery_with(&session.tree, left, taken_back, now_ms())?;
    if !plan.entries.is_empty() {
        fail_point::hit(Point::RecoveryBegin);
    }
    for entry in plan.entries {
        append(session, entry)?;
    }
    fail_point::hit(Point::RecoveryAppended);
    let resumes = left.run.as_ref().map_or(0, |run| run.resumes);
    let after = match way {
        _ if !plan.goes_on => AfterCrash::Nothing,
        CrashRecovery::Close => AfterCrash::Nothing,
        CrashRecovery::Ask => AfterCrash::Asks,
        CrashRecovery::Resume if resumes < MAX_RESUMES => AfterCrash::GoesOn,
        CrashRecovery::Resume => AfterCrash::Nothing,
    };
    // Counted before it goes on: a crash in the first moment counts, too.
    let resumes = resumes + u32::from(after == AfterCrash::GoesOn);
    let run = (after != AfterCrash::Nothing).then(|| {
        let entry = session.tree.leaf_id().map(str::to_owned);
        IntentRecord::Run(RunRecord { at: now_ms(), entry, resumes })
    });
    let waiting = waiting_messages(left, &session.tree);
    intent_log.replace(
        &run.into_iter().chain(waiting.iter().cloned().map(IntentRecord::Queued)).collect::<Vec<_>>(),
    )?;
    fail_point::hit(Point::RecoveryCleared);
    Ok(FinishedRecovery { story: plan.story, after, waiting })
}

/// The messages that wait, by the numbers that they have from now on.
pub(crate) fn waiting_messages(left: &UnfinishedWork, tree: &SessionTree) -> Vec<QueuedRecord> {
    let renumbered = |(number, queued): (u64, &QueuedRecord)| QueuedRecord { number, ..queued.clone() };
    (1..).zip(left.waiting(tree)).map(renumbered).collect()
}

fn append(session: &mut OpenSession, entry: NewEntry) -> Result<(), StoreError> {
    let entry = session.tree.prepare(entry, now_ms());
    session.writer.append(&entry)?;
    session.tree.push(entry);
    Ok(())
}

#[cfg(test)]
mod tests;
