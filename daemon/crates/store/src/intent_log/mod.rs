//! The intent log: the work that is under way in a session, so that a crash can be told from a normal end.
//!
//! The file lies beside the session file (`<stem>.ledger`), one JSON object a line. An [`IntentRecord`] is written before an
//! action with an effect begins; its outcome is a later record or an entry of the session file. Without work under way there is
//! no file. [`UnfinishedWork`] is the content that a crash left.

mod ownership;
mod read;
mod record;
mod writer;

pub use ownership::{OwnershipNotes, intent_log_path};
pub use read::{MadeCalls, StreamedAnswer, UnfinishedWork, UserCommand, WaitingMessage};
pub use record::{
    AskRecord, BashDoneRecord, BashRecord, CallsRecord, DeliveredRecord, DoneRecord, IntentRecord, NamedCall,
    QueuedRecord, REQUEST_KEY_FIELD, RunRecord, SaidRecord, Streamed,
};
pub use writer::IntentLog;
