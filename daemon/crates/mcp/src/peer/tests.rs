//! The peer with a server that is played by hand, and the clock paused.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::{elicitation::UserAnswer, message::METHOD_NOT_FOUND};

#[derive(Default)]
struct Recorder {
    notifications: Mutex<Vec<String>>,
    roots: Option<Value>,
}

impl PeerHandler for Recorder {
    fn server(&self) -> &str {
        "test"
    }

    fn notification(&self, method: &str, _params: &Value) {
        self.notifications.lock().unwrap().push(method.to_owned());
    }

    fn roots(&self) -> Option<Value> {
        self.roots.clone()
    }
}

fn peer_of(recorder: Arc<Recorder>, tells_cancellation: bool) -> (Peer, mpsc::Receiver<Outgoing>) {
    Peer::new(recorder, PeerTransport { tells_cancellation, tasks: TaskTracker::new() })
}

fn peer() -> (Peer, mpsc::Receiver<Outgoing>) {
    peer_of(Arc::default(), true)
}

fn terms(seconds: u64) -> RequestTerms<'static> {
    RequestTerms::within(Duration::from_secs(seconds))
}

/// A request on its way in a task of its own.
fn asking(peer: &Peer, terms: RequestTerms<'static>) -> tokio::task::JoinHandle<Result<Value, RequestError>> {
    let peer = peer.clone();
    tokio::spawn(async move { peer.request("tools/call", json!({"name": "x"}), terms).await })
}

fn server_request(id: Value, method: &str, params: Value) -> Incoming {
    Incoming::Request { id, method: method.to_owned(), params }
}

async fn next(sent: &mut mpsc::Receiver<Outgoing>) -> Value {
    serde_json::from_slice(&sent.recv().await.expect("a message").line).unwrap()
}

fn answer(peer: &Peer, id: u64, text: &str) {
    peer.receive(Incoming::Response { id: Some(id), outcome: Ok(json!(text)) }, None);
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_requests_in_any_order_and_each_once() {
    let (peer, mut sent) = peer();
    let (one, two) = (asking(&peer, terms(5)), asking(&peer, terms(5)));
    assert_eq!(next(&mut sent).await["id"], 1);
    assert_eq!(next(&mut sent).await["id"], 2);
    answer(&peer, 7, "never asked");
    peer.receive(Incoming::Response { id: None, outcome: Ok(json!("another id")) }, None);
    answer(&peer, 2, "two");
    answer(&peer, 2, "again");
    answer(&peer, 1, "one");
    assert_eq!(one.await.unwrap(), Ok(json!("one")));
    assert_eq!(two.await.unwrap(), Ok(json!("two")));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_taken_back_and_its_late_answer_ignored() {
    let (peer, mut sent) = peer();
    let asked = asking(&peer, terms(5));
    next(&mut sent).await;
    assert_eq!(asked.await.unwrap(), Err(RequestError::TimedOut(Duration::from_secs(5))));
    let cancelled = next(&mut sent).await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"], json!({"requestId": 1, "reason": "timed out"}));
    answer(&peer, 1, "late");
    let after = asking(&peer, terms(5));
    assert_eq!(next(&mut sent).await["id"], 2);
    answer(&peer, 2, "on time");
    assert_eq!(after.await.unwrap(), Ok(json!("on time")));
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_passed_on_but_not_for_initialize() {
    let (peer, mut sent) = peer();
    for (method, is_told) in [("tools/call", true), ("initialize", false)] {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let terms = RequestTerms { cancel: Some(&cancel), ..terms(5) };
        assert_eq!(peer.request(method, json!({}), terms).await, Err(RequestError::Cancelled));
        assert_eq!(next(&mut sent).await["method"], method);
        assert_eq!(sent.try_recv().is_ok(), is_told);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_begins_the_time_anew_and_is_passed_on_at_a_bounded_rate() {
    let (peer, mut sent) = peer();
    let reports = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reports);
    let report: ProgressReport = Arc::new(move |text| {
        assert_eq!(text, "Progress 1/4");
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let asked = asking(&peer, RequestTerms { progress: Some(report), ..terms(5) });
    assert_eq!(next(&mut sent).await["params"]["_meta"]["progressToken"], 1);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        for _ in 0..1000 {
            let params = json!({"progressToken": 1, "progress": 1, "total": 4});
            peer.receive(Incoming::Notification { method: "notifications/progress".into(), params }, None);
        }
    }
    assert_eq!(reports.load(Ordering::Relaxed), 3);
    answer(&peer, 1, "done");
    assert_eq!(asked.await.unwrap(), Ok(json!("done")), "after 12 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_costs_its_own_calls_only() {
    let (peer, _unread) = peer();
    for id in 0..10_000 {
        peer.receive(server_request(json!(id), "ping", Value::Null), None);
    }
    let asked = asking(&peer, terms(1));
    assert_eq!(asked.await.unwrap(), Err(RequestError::TimedOut(Duration::from_secs(1))));
}

#[tokio::test(start_paused = true)]
async fn requests_of_the_server_are_answered() {
    let roots = json!({"roots": []});
    let handler = Arc::new(Recorder { roots: Some(roots.clone()), ..Recorder::default() });
    let (peer, mut sent) = peer_of(handler.clone(), true);
    for (method, expected) in
        [("ping", json!({})), ("roots/list", roots), ("sampling/createMessage", Value::Null)]
    {
        peer.receive(server_request(json!("s-1"), method, Value::Null), None);
        let response = next(&mut sent).await;
        assert_eq!(response["id"], "s-1");
        assert_eq!(response["result"], expected, "{method}");
        assert_eq!(response["error"]["code"] == METHOD_NOT_FOUND, expected.is_null(), "{method}");
    }
    peer.receive(Incoming::Notification { method: "notifications/message".into(), params: json!({}) }, None);
    assert_eq!(*handler.notifications.lock().unwrap(), ["notifications/message"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_ends_all_requests() {
    let (peer, mut sent) = peer();
    let asked = asking(&peer, terms(5));
    next(&mut sent).await;
    peer.close("it has ended");
    peer.close("another reason");
    assert_eq!(asked.await.unwrap(), Err(RequestError::Closed("it has ended".into())));
    assert_eq!(asking(&peer, terms(5)).await.unwrap(), Err(RequestError::Closed("it has ended".into())));
}

/// A user whose answer comes when the test gives it.
#[derive(Default)]
struct SlowUser {
    asked: Notify,
    answer: Notify,
    dropped: Arc<AtomicUsize>,
}

/// Counts questions that were taken back.
struct Asked(Arc<AtomicUsize>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl UserInput for SlowUser {
    fn is_there(&self) -> bool {
        true
    }

    fn select(&self, _title: String, options: Vec<String>) -> UserAnswer<'_> {
        Box::pin(async move {
            let _asked = Asked(Arc::clone(&self.dropped));
            self.asked.notify_one();
            self.answer.notified().await;
            options.into_iter().next()
        })
    }

    fn input(&self, _title: String, _placeholder: Option<String>) -> UserAnswer<'_> {
        Box::pin(std::future::ready(None))
    }
}

fn elicitation(id: u64) -> Incoming {
    server_request(
        json!(id),
        "elicitation/create",
        json!({"message": "m", "requestedSchema": {"type": "object"}}),
    )
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_stands_still_while_its_user_is_asked() {
    let (peer, mut sent) = peer();
    let user = Arc::new(SlowUser::default());
    let asked = asking(&peer, RequestTerms { user: Some(user.clone()), ..terms(5) });
    next(&mut sent).await;
    peer.receive(elicitation(9), None);
    user.asked.notified().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!asked.is_finished());
    user.answer.notify_one();
    assert_eq!(
        next(&mut sent).await,
        json!({"jsonrpc": "2.0", "id": 9, "result": {"action": "accept", "content": {}}})
    );
    assert_eq!(
        asked.await.unwrap(),
        Err(RequestError::TimedOut(Duration::from_secs(5))),
        "from the answer on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_call() {
    let (peer, mut sent) = peer();
    let user = Arc::new(SlowUser::default());
    let asked = asking(&peer, RequestTerms { user: Some(user.clone()), ..terms(5) });
    next(&mut sent).await;
    peer.receive(elicitation(9), Some(1));
    user.asked.notified().await;
    answer(&peer, 1, "done without it");
    assert_eq!(next(&mut sent).await["result"], json!({"action": "cancel"}));
    assert_eq!(
        (asked.await.unwrap(), user.dropped.load(Ordering::Relaxed)),
        (Ok(json!("done without it")), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_for_another_user_and_not_too_much_at_once() {
    let (peer, mut sent) = peer();
    let (one, two) = (Arc::new(SlowUser::default()), Arc::new(SlowUser::default()));
    let _calls = [one.clone(), two].map(|user| asking(&peer, RequestTerms { user: Some(user), ..terms(5) }));
    next(&mut sent).await;
    next(&mut sent).await;
    peer.receive(elicitation(9), None);
    assert_eq!(next(&mut sent).await["result"], json!({"action": "cancel"}));
    for id in 0..9 {
        peer.receive(elicitation(id), Some(1));
    }
    let refused = next(&mut sent).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(8), &json!(-32603)));
    peer.close("it has ended");
    // The tasks of the questions end with the connection.
    peer.0.tasks.close();
    peer.0.tasks.wait().await;
    assert_eq!(one.dropped.load(Ordering::Relaxed), 8);
}

#[tokio::test(start_paused = true)]
async fn stateless_requests_say_who_asks_and_what_http_repeats() {
    let (peer, mut sent) = peer_of(Arc::default(), false);
    peer.set_stateless(true);
    let asked = asking(&peer, terms(5));
    let message = sent.recv().await.unwrap();
    let repeated = message.repeated.unwrap();
    assert_eq!(repeated.subject.as_deref(), Some("x"));
    let sent_params: Value = serde_json::from_slice(&message.line).unwrap();
    assert_eq!(sent_params["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(asked.await.unwrap(), Err(RequestError::TimedOut(Duration::from_secs(5))));
    assert!(sent.try_recv().is_err(), "the transport gives it up");
}
