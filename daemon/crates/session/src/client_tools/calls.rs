//! The calls that a client works on.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_agent::ToolProgress;
use agentd_protocol::{
    client_tools::{ToolProgressParams, ToolResponseParams},
    error::{ErrorCode, Failure},
    eval_executor::{EvalOutput, EvalResult},
    host_uris::{HostUriOperation, HostUriResult},
    tool::ToolResult,
};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::request_ends::{CallOf, Leaving, Over};

/// Requests that are over and remembered, for answers that come late.
const REMEMBERED: usize = 256;

/// The calls that one connection works on, in all its sessions. Cheap to clone.
#[derive(Clone, Default)]
pub struct ClientCalls(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    open: HashMap<String, Open>,
    /// Requests that are over, oldest first.
    over: VecDeque<(String, Over)>,
}

struct Open {
    /// Whose tool it is.
    provider: u64,
    of: CallOf,
    /// Whether the client knows of it.
    sent: bool,
    max_bytes: usize,
    progress: ToolProgress,
    /// Takes what a cell prints.
    printed: Option<CellPrinter>,
    answer: oneshot::Sender<Answer>,
}

/// Takes what a cell prints, as much as a result may have.
struct CellPrinter {
    pieces: mpsc::UnboundedSender<String>,
    bytes: usize,
}

/// The outcome of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The client's result.
    Result(Box<ToolResult>),
    /// What the client says of a URL.
    Url(Box<HostUriResult>),
    /// How a cell ended.
    Cell(Box<EvalResult>),
    /// Why there is none.
    Failed(String),
}

impl ClientCalls {
    /// Opens a request: its id, and what comes of it.
    pub(super) fn open(
        &self,
        provider: u64,
        of: CallOf,
        max_bytes: usize,
        progress: ToolProgress,
    ) -> (String, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let open = Open { provider, of, sent: false, max_bytes, progress, printed: None, answer };
        (self.insert(open), answered)
    }

    /// Opens a request for a cell, of which `pieces` gets what it prints.
    pub(super) fn open_cell(
        &self,
        provider: u64,
        of: CallOf,
        max_bytes: usize,
        pieces: mpsc::UnboundedSender<String>,
    ) -> (String, oneshot::Receiver<Answer>) {
        let (answer, answered) = oneshot::channel();
        let (progress, printed) = (ToolProgress::new(|_| {}), Some(CellPrinter { pieces, bytes: 0 }));
        let open = Open { provider, of, sent: false, max_bytes, progress, printed, answer };
        (self.insert(open), answered)
    }

    fn insert(&self, open: Open) -> String {
        let id = Uuid::new_v4().to_string();
        self.lock().open.insert(id.clone(), open);
        id
    }

    /// Sends a request on its way, unless it is over already.
    pub(super) fn send(&self, id: &str, send: impl FnOnce()) {
        let mut calls = self.lock();
        if let Some(open) = calls.open.get_mut(id) {
            open.sent = true;
            // Under the lock, so that nobody takes it back in between.
            send();
        }
    }

    /// Gives a request up; true when the client knows of it and has not answered.
    pub(super) fn give_up(&self, id: &str, why: Over) -> bool {
        self.lock().end(id, why).is_some_and(|open| open.sent)
    }

    /// Ends every call of a provider.
    pub(super) fn leave(&self, provider: u64, leaving: Leaving) {
        let mut calls = self.lock();
        let ids: Vec<String> = calls
            .open
            .iter()
            .filter(|(_, open)| open.provider == provider)
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            if let Some(open) = calls.end(&id, Over::Left) {
                // A call that is over meanwhile waits for nothing.
                let _ = open.answer.send(Answer::Failed(leaving.text(&open.of)));
            }
        }
    }

    /// Takes the client's answer to a request. `bytes` is the length of the line that brought it.
    ///
    /// # Errors
    /// When nobody waits for it, and when it cannot be used: then the call fails, and says so to the model.
    pub fn respond(&self, params: ToolResponseParams, bytes: usize) -> Result<(), Failure> {
        let mut calls = self.lock();
        let max_bytes = calls.get_tool(&params.request_id)?.max_bytes;
        let (answer, outcome) = match (params.result, params.error) {
            _ if bytes > max_bytes => {
                let failure = too_long("result", bytes, max_bytes);
                (unusable(&failure.error), Err(failure))
            }
            (Some(result), None) => (Answer::Result(Box::new(result.into())), Ok(())),
            (None, Some(error)) if !error.trim().is_empty() => (Answer::Failed(error), Ok(())),
            (None, Some(_)) => {
                let text = "Invalid field \"error\": expected a text that says why the call failed, got \"\"";
                (unusable(text), Err(Failure::new(ErrorCode::InvalidField, text)))
            }
            (result, _) => {
                let found = if result.is_some() { "both" } else { "neither" };
                let text = format!("Expected one of \"result\" and \"error\", got {found}");
                (unusable(&text), Err(Failure::new(ErrorCode::InvalidField, text)))
            }
        };
        if let Some(open) = calls.end(&params.request_id, Over::Answered) {
            let _ = open.answer.send(answer);
        }
        outcome
    }

    /// Takes the client's answer about a URL. `bytes` is the length of the line that brought it.
    ///
    /// # Errors
    /// As of [`Self::respond`].
    pub fn respond_url(&self, result: HostUriResult, bytes: usize) -> Result<(), Failure> {
        let mut calls = self.lock();
        let open = calls.get(&result.id)?;
        let CallOf::Url { operation, .. } = open.of else { return Err(open.of.other_answer(&result.id)) };
        let max_bytes = open.max_bytes;
        let id = result.id.clone();
        let (answer, outcome) = if bytes > max_bytes {
            let failure = too_long("content", bytes, max_bytes);
            (unusable(&failure.error), Err(failure))
        } else if result.is_error {
            let said = result.error.or(result.content).filter(|text| !text.trim().is_empty());
            (Answer::Failed(said.unwrap_or_else(|| "The client gave no reason.".to_owned())), Ok(()))
        } else if result.content.is_none() && operation == HostUriOperation::Read {
            let text = "Missing field \"content\"";
            (unusable(text), Err(Failure::new(ErrorCode::InvalidField, text)))
        } else {
            (Answer::Url(Box::new(result)), Ok(()))
        };
        if let Some(open) = calls.end(&id, Over::Answered) {
            let _ = open.answer.send(answer);
        }
        outcome
    }

    /// Takes a piece of what a cell prints. `bytes` is the length of the line that brought it.
    ///
    /// # Errors
    /// When nobody waits for it, and when it is too long: then the cell fails, and says so to the model.
    pub fn cell_printed(&self, output: EvalOutput, bytes: usize) -> Result<(), Failure> {
        let mut calls = self.lock();
        let of = &calls.get(&output.id)?.of;
        if !matches!(of, CallOf::Cell { .. }) {
            return Err(of.other_answer(&output.id));
        }
        let Some(open) = calls.open.get_mut(&output.id) else { return Ok(()) };
        let Some(printed) = &mut open.printed else { return Ok(()) };
        printed.bytes = printed.bytes.saturating_add(bytes);
        if printed.bytes > open.max_bytes {
            let failure = too_long("text", printed.bytes, open.max_bytes);
            if let Some(open) = calls.end(&output.id, Over::Answered) {
                let _ = open.answer.send(unusable_cell(&failure.error));
            }
            return Err(failure);
        }
        // A call that has ended meanwhile reads nothing more.
        let _ = printed.pieces.send(output.text);
        Ok(())
    }

    /// Takes the end of a cell. `bytes` is the length of the line that brought it.
    ///
    /// # Errors
    /// As of [`Self::respond`].
    pub fn respond_cell(&self, result: EvalResult, bytes: usize) -> Result<(), Failure> {
        let mut calls = self.lock();
        let open = calls.get(&result.id)?;
        if !matches!(open.of, CallOf::Cell { .. }) {
            return Err(open.of.other_answer(&result.id));
        }
        let (id, max_bytes) = (result.id.clone(), open.max_bytes);
        let (answer, outcome) = if bytes > max_bytes {
            let failure = too_long("content", bytes, max_bytes);
            (unusable_cell(&failure.error), Err(failure))
        } else if result.error.as_ref().is_some_and(|error| error.trim().is_empty()) {
            let text = "Invalid field \"error\": expected a text that says why the cell failed, got \"\"";
            (unusable_cell(text), Err(Failure::new(ErrorCode::InvalidField, text)))
        } else {
            (Answer::Cell(Box::new(result)), Ok(()))
        };
        if let Some(open) = calls.end(&id, Over::Answered) {
            let _ = open.answer.send(answer);
        }
        outcome
    }

    /// Shows what a call has given so far. `bytes` is the length of the line that brought it.
    ///
    /// # Errors
    /// When nobody waits for it, and when it is too long; the call goes on either way.
    pub fn progress(&self, params: ToolProgressParams, bytes: usize) -> Result<(), Failure> {
        let calls = self.lock();
        let open = calls.get_tool(&params.request_id)?;
        if bytes > open.max_bytes {
            return Err(too_long("partialResult", bytes, open.max_bytes));
        }
        open.progress.report(ToolResult { terminate: None, ..params.partial_result.into() });
        Ok(())
    }

    /// A `tool_response` could not be read. If its request is known, the call fails: the client believes that it has answered.
    pub fn unreadable(&self, request_id: &str, error: &str) {
        if let Some(open) = self.lock().end(request_id, Over::Answered) {
            let of_cell = matches!(open.of, CallOf::Cell { .. });
            let _ = open.answer.send(if of_cell { unusable_cell(error) } else { unusable(error) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        // No method panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn get(&self, id: &str) -> Result<&Open, Failure> {
        self.open.get(id).ok_or_else(|| {
            let over = self.over.iter().find(|(over, _)| over == id);
            match over {
                Some((_, over)) => {
                    let text = format!("The request \"{id}\" is over: {}. This was ignored.", over.why());
                    Failure::new(ErrorCode::NotFound, text)
                }
                None => Failure::new(ErrorCode::NotFound, format!("There is no request \"{id}\"."))
                    .hint("It is the requestId of a tool_request, or the id of a host_tool_call, host_uri_request or eval_request, that this connection got."),
            }
        })
    }

    /// The same, of a call of a tool.
    fn get_tool(&self, id: &str) -> Result<&Open, Failure> {
        let open = self.get(id)?;
        match open.of {
            CallOf::Tool(_) => Ok(open),
            CallOf::Url { .. } | CallOf::Cell { .. } => Err(open.of.other_answer(id)),
        }
    }

    fn end(&mut self, id: &str, why: Over) -> Option<Open> {
        let open = self.open.remove(id)?;
        if self.over.len() >= REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back((id.to_owned(), why));
        Some(open)
    }
}

/// The text for the model when an answer cannot be used.
fn unusable(why: &str) -> Answer {
    Answer::Failed(format!("The client that provides the tool gave a result that cannot be used: {why}"))
}

/// The same, of a cell.
fn unusable_cell(why: &str) -> Answer {
    Answer::Failed(format!("The client that runs the cell gave an answer that cannot be used: {why}."))
}

impl CallOf {
    /// An answer of another kind came, and the request goes on waiting.
    fn other_answer(&self, id: &str) -> Failure {
        let (what, answer) = match self {
            Self::Tool(_) => ("a call of a tool", "tool_response or host_tool_result"),
            Self::Url { .. } => ("a read or write of a URL", "host_uri_result"),
            Self::Cell { .. } => ("a cell", "eval_output and eval_result"),
        };
        let text = format!("The request \"{id}\" is {what}: answer it with {answer}.");
        Failure::new(ErrorCode::InvalidField, text)
    }
}

fn too_long(field: &str, bytes: usize, max_bytes: usize) -> Failure {
    let text = format!("Invalid field \"{field}\": expected at most {max_bytes} bytes, got {bytes}");
    Failure::new(ErrorCode::TooLarge, text)
        .hint("The setting clientTools.maxResultBytes is the limit; answer with the path of a file instead.")
}

#[cfg(test)]
mod tests {
    use agentd_protocol::client_tools::ClientToolResult;

    use super::*;

    fn opened(calls: &ClientCalls) -> (String, oneshot::Receiver<Answer>) {
        calls.open(1, CallOf::Tool("t".into()), 100, ToolProgress::new(|_| {}))
    }

    fn read(calls: &ClientCalls) -> (String, oneshot::Receiver<Answer>) {
        let of = CallOf::Url { scheme: "db".into(), operation: HostUriOperation::Read };
        calls.open(1, of, 100, ToolProgress::new(|_| {}))
    }

    fn response(id: &str, result: bool, error: Option<&str>) -> ToolResponseParams {
        ToolResponseParams {
            request_id: id.into(),
            result: result.then(ClientToolResult::default),
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn a_request_is_answered_once() {
        let calls = ClientCalls::default();
        let (id, mut answer) = opened(&calls);
        calls.respond(response(&id, true, None), 10).unwrap();
        assert_eq!(answer.try_recv().unwrap(), Answer::Result(Box::default()));
        let failure = calls.respond(response(&id, true, None), 10).unwrap_err();
        assert_eq!(failure.code, ErrorCode::NotFound);
        assert!(failure.error.contains("answered before"), "{failure}");
        let failure = calls.respond(response("x", true, None), 10).unwrap_err();
        assert!(failure.error.contains("no request \"x\""), "{failure}");
    }

    #[test]
    fn what_cannot_be_used_ends_the_call_and_is_refused() {
        for (result, error, bytes, says) in [
            (false, None, 10, "got neither"),
            (true, Some("x"), 10, "got both"),
            (false, Some(" "), 10, "says why"),
            (true, None, 101, "at most 100 bytes, got 101"),
        ] {
            let calls = ClientCalls::default();
            let (id, mut answer) = opened(&calls);
            let failure = calls.respond(response(&id, result, error), bytes).unwrap_err();
            assert!(failure.error.contains(says), "{failure}");
            let Answer::Failed(text) = answer.try_recv().unwrap() else { panic!("no failure") };
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn urls_are_answered_by_their_own_results() {
        let calls = ClientCalls::default();
        let (id, mut answer) = read(&calls);
        let failure = calls.respond(response(&id, true, None), 10).unwrap_err();
        assert!(failure.error.contains("answer it with host_uri_result"), "{failure}");
        let result = |id: &str| HostUriResult { id: id.to_owned(), ..HostUriResult::default() };
        let (tool, _waits) = opened(&calls);
        let failure = calls.respond_url(result(&tool), 10).unwrap_err();
        assert!(failure.error.contains("answer it with tool_response"), "{failure}");
        let good = HostUriResult { content: Some("x".into()), ..result(&id) };
        calls.respond_url(good.clone(), 10).unwrap();
        assert_eq!(answer.try_recv().unwrap(), Answer::Url(Box::new(good)));
        let failed = HostUriResult { is_error: true, ..result("") };
        for (result, bytes, told, refused) in [
            (result(""), 10, "Missing field \"content\"", true),
            (HostUriResult { error: Some("no row".into()), ..failed.clone() }, 10, "no row", false),
            (HostUriResult { content: Some("no column".into()), ..failed.clone() }, 10, "no column", false),
            (failed, 10, "no reason", false),
            (HostUriResult { content: Some("x".into()), ..result("") }, 101, "at most 100 bytes", true),
        ] {
            let (id, mut answer) = read(&calls);
            assert_eq!(calls.respond_url(HostUriResult { id, ..result }, bytes).is_err(), refused);
            let Answer::Failed(text) = answer.try_recv().unwrap() else { panic!("no failure") };
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn cells_print_and_end_by_answers_of_their_own() {
        let calls = ClientCalls::default();
        let cell = || {
            let (pieces, printed) = mpsc::unbounded_channel();
            let (id, answer) = calls.open_cell(1, CallOf::Cell { language: "py".into() }, 100, pieces);
            (id, answer, printed)
        };
        let output = |id: &str, text: &str| EvalOutput { id: id.to_owned(), text: text.to_owned() };
        let result = |id: &str| EvalResult { id: id.to_owned(), ..EvalResult::default() };
        let (id, mut answer, mut printed) = cell();
        let failure = calls.respond(response(&id, true, None), 10).unwrap_err();
        assert!(failure.error.contains("is a cell: answer it with eval_output and eval_result"), "{failure}");
        let (tool, _waits) = opened(&calls);
        assert!(calls.cell_printed(output(&tool, "x"), 10).is_err());
        assert!(calls.respond_cell(result(&tool), 10).unwrap_err().error.contains("is a call of a tool"));
        calls.cell_printed(output(&id, "a"), 50).unwrap();
        calls.respond_cell(result(&id), 10).unwrap();
        assert_eq!(printed.try_recv().unwrap(), "a");
        assert_eq!(answer.try_recv().unwrap(), Answer::Cell(Box::new(result(&id))));
        assert_eq!(calls.cell_printed(output(&id, "b"), 10).unwrap_err().code, ErrorCode::NotFound);
        // What cannot be used ends the cell, and is refused.
        let (id, mut answer, _printed) = cell();
        calls.cell_printed(output(&id, "a"), 60).unwrap();
        let failure = calls.cell_printed(output(&id, "b"), 60).unwrap_err();
        assert!(failure.error.contains("at most 100 bytes, got 120"), "{failure}");
        let Answer::Failed(text) = answer.try_recv().unwrap() else { panic!("no failure") };
        assert!(text.starts_with("The client that runs the cell gave an answer"), "{text}");
        let (id, mut answer, _printed) = cell();
        assert!(calls.respond_cell(EvalResult { error: Some(" ".into()), ..result(&id) }, 10).is_err());
        assert!(matches!(answer.try_recv().unwrap(), Answer::Failed(_)));
        let (_, mut answer, _printed) = cell();
        calls.leave(1, Leaving::Disconnected);
        let text = "The client that runs cells of py has disconnected.";
        assert_eq!(answer.try_recv().unwrap(), Answer::Failed(text.into()));
    }

    #[test]
    fn a_request_that_was_given_up_is_not_sent() {
        let calls = ClientCalls::default();
        let (id, _answer) = opened(&calls);
        assert!(!calls.give_up(&id, Over::Aborted), "the client never heard of it");
        calls.send(&id, || panic!("it is over"));
        let (id, _answer) = opened(&calls);
        let mut sent = false;
        calls.send(&id, || sent = true);
        assert!(sent && calls.give_up(&id, Over::TimedOut));
        let failure = calls.respond(response(&id, true, None), 10).unwrap_err();
        assert!(failure.error.contains("took too long"), "{failure}");
    }

    #[test]
    fn those_who_leave_take_their_calls_along_and_no_others() {
        let calls = ClientCalls::default();
        let (_, mut first) = opened(&calls);
        let (_, mut other) = calls.open(2, CallOf::Tool("o".into()), 100, ToolProgress::new(|_| {}));
        calls.leave(1, Leaving::Disconnected);
        let text = "The client that provides the tool t has disconnected.";
        assert_eq!(first.try_recv().unwrap(), Answer::Failed(text.into()));
        assert!(other.try_recv().is_err());
    }

    #[test]
    fn only_so_many_are_remembered() {
        let calls = ClientCalls::default();
        for _ in 0..=REMEMBERED {
            let (id, _) = opened(&calls);
            calls.give_up(&id, Over::Aborted);
        }
        assert_eq!(calls.lock().over.len(), REMEMBERED);
    }
}
