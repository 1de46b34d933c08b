//! The places, by name.

macro_rules! points {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// A place that can be armed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Point {
            $($(#[$doc])+ $variant,)+
        }

        impl Point {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in the variable.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

points! {
    /// A session file is about to be opened.
    StoreOpen = "store.open",
    /// A session file is about to be made.
    StoreCreate = "store.create",
    /// A session file was made and has no content yet.
    StoreCreated = "store.created",
    /// Lines are about to be written to a session file.
    StoreAppend = "store.append",
    /// The lines are in the file, and not acknowledged yet.
    StoreAppended = "store.appended",
    /// The content of a session file is about to be brought to the disk.
    StoreSync = "store.sync",
    /// A session file is about to be cut.
    StoreCut = "store.cut",
    /// A session file is about to be removed.
    StoreRemove = "store.remove",
    /// A file is about to get a second name.
    StoreLink = "store.link",
    /// A file is about to be put in the place of another.
    StoreRename = "store.rename",
    /// A file was put in the place of another.
    StoreRenamed = "store.renamed",
    /// An intent is about to be written to the intent log.
    IntentLogIntent = "intent_log.intent",
    /// It is in the intent log, and has not happened.
    IntentLogIntentWritten = "intent_log.intent_written",
    /// An outcome is about to be written to the intent log.
    IntentLogOutcome = "intent_log.outcome",
    /// It is in the intent log.
    IntentLogOutcomeWritten = "intent_log.outcome_written",
    /// Text that the model streamed is about to be written to the intent log.
    IntentLogFlush = "intent_log.flush",
    /// It is in the intent log.
    IntentLogFlushed = "intent_log.flushed",
    /// An intent log is about to be removed: nothing is under way any more.
    IntentLogClear = "intent_log.clear",
    /// A crash interrupted a session; what is missing is about to be added.
    RecoveryBegin = "recovery.begin",
    /// It is in the session file, and the intent log is there still.
    RecoveryAppended = "recovery.appended",
    /// The intent log is gone, or says only that the run goes on.
    RecoveryCleared = "recovery.cleared",
    /// Tools are about to run: the intent log says so.
    RunToolStarted = "run.tool_started",
    /// A part of an answer came and is not published yet.
    RunDelta = "run.delta",
    /// The model is about to be asked: the intent log says so.
    RunModelAsked = "run.model_asked",
    /// A file for a long output is about to be made.
    SpillCreate = "spill.create",
    /// A part of a long output is about to be written.
    SpillWrite = "spill.write",
    /// A long output is about to be removed for its age or size.
    ArtifactRemove = "artifact.remove",
    /// A message is stored; the event that says so is about to go out.
    SessionStored = "session.stored",
    /// The event that says so is in the feed.
    SessionPublished = "session.published",
    /// A content is about to be kept for undo.
    UndoContent = "undo.content",
    /// The line of a checkpoint is about to be written.
    UndoRecord = "undo.record",
    /// A step of a restoring was made.
    UndoStep = "undo.step",
    /// A file of the user's was replaced by a merge of an isolated copy.
    MergeStep = "merge.step",
    /// A merge has moved the user's branch; the index is about to be replaced.
    MergeHead = "merge.head",
    /// A merge is complete but for its journal.
    MergeDone = "merge.done",
    /// A file of a change of several files was changed.
    ChangeStep = "change.step",
    /// All of them are changed, or as before again; the journal of the change is about to go.
    ChangeDone = "change.done",
    /// A file of a change that a killed daemon left is as before again.
    ChangeTakenBack = "change.taken_back",
    /// A prompt passed its checks; its sender is about to be told.
    SessionAccepted = "session.accepted",
    /// The new content of `settings.json` is about to be written to a file beside it.
    SettingsWrite = "settings.write",
    /// The new file is about to replace `settings.json`.
    SettingsRename = "settings.rename",
    /// The new content of `auth.json` is about to be written to a file beside it.
    AuthWrite = "auth.write",
    /// The new file is about to replace `auth.json`; both locks are held.
    AuthRename = "auth.rename",
    /// The new content of `trust.json` is about to be written to a file beside it.
    TrustWrite = "trust.write",
    /// The new file is about to replace `trust.json`.
    TrustRename = "trust.rename",
    /// The new content of a catalogue or of `models.json` is about to be written to a file beside it.
    ModelsWrite = "models.write",
    /// The new file is about to replace the catalogue or `models.json`.
    ModelsRename = "models.rename",
    /// The note that this daemon lives is about to be made.
    OwnerCreate = "owner.create",
    /// The note is there and locked; nothing was started yet.
    OwnerCreated = "owner.created",
    /// The guard of child processes was started.
    GuardStarted = "guard.started",
    /// The guard was asked for a command's scope.
    GuardAsked = "guard.asked",
    /// The note of a dead daemon is about to be removed: what it left was killed.
    OwnerSwept = "owner.swept",
    /// The place of the socket is locked; a dead socket may be in it.
    SocketLocked = "socket.locked",
    /// The socket is there, and its mode is not set yet.
    SocketBound = "socket.bound",
    /// A session's artifacts are about to be deleted.
    DeleteArtifacts = "delete.artifacts",
    /// A session's artifacts are deleted; its file is there.
    DeleteFile = "delete.file",
    /// A copy of a session has its file, and no artifacts yet.
    CopyFiled = "copy.filed",
    /// A page of a session is written, under another name.
    ExportRename = "export.rename",
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_plain() {
        let names: HashSet<&str> = Point::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), Point::ALL.len());
        for name in names {
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'.' || byte == b'_'),
                "{name}"
            );
        }
    }
}
