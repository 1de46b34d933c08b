//! The peer with a server that is played by hand, and the clock paused.

use std::sync::atomic::AtomicUsize;

use super::*;

#[derive(Default)]
struct Recorder {
    notifications: Mutex<Vec<String>>,
    roots: Option<Value>,
}

impl PeerHandler for Recorder {
    fn notification(&self, method: &str, _params: &Value) {
        self.notifications.lock().unwrap().push(method.to_owned());
    }

    fn roots(&self) -> Option<Value> {
        self.roots.clone()
    }
}

fn peer() -> (Peer, mpsc::Receiver<Bytes>) {
    Peer::new(Arc::new(Recorder::default()))
}

fn terms(seconds: u64) -> RequestTerms<'static> {
    RequestTerms { timeout: Duration::from_secs(seconds), cancel: None, progress: None }
}

/// A request on its way in a task of its own.
fn asking(peer: &Peer, terms: RequestTerms<'static>) -> tokio::task::JoinHandle<Result<Value, RequestError>> {
    let peer = peer.clone();
    tokio::spawn(async move { peer.request("tools/call", json!({"name": "x"}), terms).await })
}

async fn next(sent: &mut mpsc::Receiver<Bytes>) -> Value {
    serde_json::from_slice(&sent.recv().await.expect("a message")).unwrap()
}

fn answer(peer: &Peer, id: u64, text: &str) {
    peer.receive(Incoming::Response { id: Some(id), outcome: Ok(json!(text)) });
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_requests_in_any_order_and_each_once() {
    let (peer, mut sent) = peer();
    let (one, two) = (asking(&peer, terms(5)), asking(&peer, terms(5)));
    assert_eq!(next(&mut sent).await["id"], 1);
    assert_eq!(next(&mut sent).await["id"], 2);
    answer(&peer, 7, "never asked");
    peer.receive(Incoming::Response { id: None, outcome: Ok(json!("another id")) });
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
    let report: ProgressReport = Box::new(move |text| {
        assert_eq!(text, "Progress 1/4");
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let asked = asking(&peer, RequestTerms { progress: Some(report), ..terms(5) });
    assert_eq!(next(&mut sent).await["params"]["_meta"]["progressToken"], 1);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        for _ in 0..1000 {
            let params = json!({"progressToken": 1, "progress": 1, "total": 4});
            peer.receive(Incoming::Notification { method: "notifications/progress".into(), params });
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
        peer.receive(Incoming::Request { id: json!(id), method: "ping".into() });
    }
    let asked = asking(&peer, terms(1));
    assert_eq!(asked.await.unwrap(), Err(RequestError::TimedOut(Duration::from_secs(1))));
}

#[tokio::test(start_paused = true)]
async fn requests_of_the_server_are_answered() {
    let roots = json!({"roots": []});
    let handler = Arc::new(Recorder { roots: Some(roots.clone()), ..Recorder::default() });
    let (peer, mut sent) = Peer::new(handler.clone());
    for (method, expected) in [
        ("ping", json!({})),
        ("roots/list", roots),
        ("sampling/createMessage", Value::Null),
        ("elicitation/create", Value::Null),
    ] {
        peer.receive(Incoming::Request { id: json!("s-1"), method: method.into() });
        let response = next(&mut sent).await;
        assert_eq!(response["id"], "s-1");
        assert_eq!(response["result"], expected, "{method}");
        assert_eq!(response["error"]["code"] == METHOD_NOT_FOUND, expected.is_null(), "{method}");
    }
    peer.receive(Incoming::Notification { method: "notifications/message".into(), params: json!({}) });
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
