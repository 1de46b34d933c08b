use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, DuplexStream, Lines, duplex},
    time::advance,
};

use super::*;

/// A connection, and what arrives at the host.
fn connected() -> (HostConnection, Lines<BufReader<DuplexStream>>) {
    let (connection, lines) = HostConnection::new();
    let (ours, theirs) = duplex(1 << 20);
    let writer = connection.clone();
    tokio::spawn(async move { writer.write(lines, ours, &CancellationToken::new()).await });
    (connection, BufReader::new(theirs).lines())
}

async fn next(lines: &mut Lines<BufReader<DuplexStream>>) -> Value {
    serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap()
}

fn value(text: &str) -> Result<Box<RawValue>, HostFailure> {
    Ok(RawValue::from_string(text.to_owned()).unwrap())
}

async fn asked(connection: &HostConnection, terms: RequestTerms<'_>) -> Result<String, RequestError> {
    connection.request("hook", &json!({}), terms).await.map(|value| value.get().to_owned())
}

#[tokio::test]
async fn records_arrive_in_their_order() {
    let (connection, mut host) = connected();
    connection.note("state", &json!({"seq": 1}));
    let asking = asked(&connection, RequestTerms::default());
    let host = async {
        assert_eq!(next(&mut host).await, json!({"type": "state", "seq": 1}));
        assert_eq!(next(&mut host).await, json!({"id": 1, "type": "hook"}));
        connection.settle(1, value("[1]"));
    };
    assert_eq!(tokio::join!(asking, host).0, Ok("[1]".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_time_stands_still_while_the_host_waits_for_us() {
    let (connection, _host) = connected();
    let terms = RequestTerms { limit: Some(Duration::from_secs(60)), ..RequestTerms::default() };
    let asking = asked(&connection, terms);
    tokio::pin!(asking);
    assert!(futures::poll!(&mut asking).is_pending());
    advance(Duration::from_secs(50)).await;
    let call = connection.call_within(Some(1)).0;
    assert!(futures::poll!(&mut asking).is_pending());
    advance(Duration::from_secs(1000)).await;
    assert!(futures::poll!(&mut asking).is_pending());
    drop(call);
    assert!(futures::poll!(&mut asking).is_pending());
    advance(Duration::from_secs(9)).await;
    assert!(futures::poll!(&mut asking).is_pending());
    advance(Duration::from_secs(2)).await;
    assert_eq!(asking.await, Err(RequestError::Late));
}

#[tokio::test]
async fn who_leaves_takes_the_request_back() {
    let (connection, mut host) = connected();
    {
        let asking = asked(&connection, RequestTerms::default());
        tokio::pin!(asking);
        assert!(futures::poll!(&mut asking).is_pending());
    }
    assert_eq!(next(&mut host).await["type"], "hook");
    assert_eq!(next(&mut host).await, json!({"type": "cancel", "id": 1}));
    // The result is late, and nobody's.
    connection.settle(1, value("1"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_answered_or_given_up() {
    let (connection, _host) = connected();
    let cancel = CancellationToken::new();
    let terms =
        || RequestTerms { cancel: Some(&cancel), grace: Duration::from_secs(10), ..RequestTerms::default() };
    cancel.cancel();
    let asking = asked(&connection, terms());
    tokio::pin!(asking);
    assert!(futures::poll!(&mut asking).is_pending());
    connection.settle(1, value("\"aborted\""));
    assert_eq!(asking.await, Ok("\"aborted\"".to_owned()));
    assert_eq!(asked(&connection, terms()).await, Err(RequestError::Late));
}

#[tokio::test]
async fn the_end_of_a_host_ends_its_requests() {
    let (connection, _host) = connected();
    let asking = asked(&connection, RequestTerms::default());
    tokio::pin!(asking);
    assert!(futures::poll!(&mut asking).is_pending());
    connection.close("code 3");
    connection.close("another reason");
    assert_eq!(asking.await, Err(RequestError::Gone("code 3".into())));
    assert_eq!(asked(&connection, RequestTerms::default()).await, Err(RequestError::Gone("code 3".into())));
}

#[tokio::test]
async fn requests_wait_for_a_host_that_does_not_read() {
    let (connection, lines) = HostConnection::new();
    connection.note("state", &json!({"long": "x".repeat(MAX_UNSENT)}));
    let asking = asked(&connection, RequestTerms::default());
    tokio::pin!(asking);
    assert!(futures::poll!(&mut asking).is_pending());
    assert!(connection.lock().requests.is_empty());
    // It begins to read.
    let (ours, theirs) = duplex(1 << 20);
    let over = CancellationToken::new();
    let mut theirs = BufReader::new(theirs).lines();
    let reading = async {
        assert_eq!(next(&mut theirs).await["type"], "state");
        assert_eq!(next(&mut theirs).await["type"], "hook");
        connection.settle(1, value("0"));
        over.cancel();
    };
    let (answer, ..) = tokio::join!(asking, reading, connection.write(lines, ours, &over));
    assert_eq!(answer, Ok("0".to_owned()));
}
