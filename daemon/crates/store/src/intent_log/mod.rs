//! What is under way in a session, so that a crash can be told from an end.
//!
//! The intent log lies beside the session file (`<stem>.ledger`), one JSON object a line. Before something with an effect begins,
//! a [`IntentRecord`] says so; what came of it follows, or is an entry of the session file. When nothing is under way there is no
//! intent log. [`UnfinishedWork`] is what an intent log says that a crash left.

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
