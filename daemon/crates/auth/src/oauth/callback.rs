//! The callback address of a browser login: a port of this machine, open for one login.

use std::{collections::VecDeque, io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::timeout,
};

use super::endpoint::shown;
use crate::Secret;

/// The longest head of a request.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The timeout of a request.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Browsers open connections ahead. One more than these takes the place of the oldest that has not said what it wants.
const MAX_CONNECTIONS: usize = 16;

/// What the authorization server sends with the browser.
#[derive(Debug, PartialEq, Eq)]
pub struct Callback {
    /// The code, or the refusal.
    pub outcome: CallbackOutcome,
    /// The server that says so (`iss`, RFC 9207), where it names itself.
    pub issuer: Option<String>,
}

/// The result of a browser login.
#[derive(Debug, PartialEq, Eq)]
pub enum CallbackOutcome {
    /// A code, to be exchanged.
    Code(Secret),
    /// The server refused, in these words.
    Denied(String),
}

/// The path and state that a browser must bring.
#[derive(Debug, Clone)]
pub struct ExpectedCallback {
    /// The path that belongs to the login.
    pub path: String,
    /// The value of `state`; `None` where the path says it.
    pub state: Option<String>,
}

/// Waits until the browser comes back. Other requests are refused without effect, and incomplete ones block no other request.
///
/// # Errors
/// The port cannot be listened at any more.
///
/// Cancel safety: dropping the future closes the port with all connections.
pub async fn wait_for_callback(listener: TcpListener, expected: ExpectedCallback) -> io::Result<Callback> {
    let mut visits = JoinSet::new();
    // The oldest first.
    let mut reading: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    loop {
        tokio::select! {
            // A connection that has brought the expected request is served before new ones.
            biased;
            Some(visited) = visits.join_next() => {
                if let Ok(Some(callback)) = visited {
                    return Ok(callback);
                }
            }
            accepted = listener.accept() => {
                let Some(stream) = accepted_stream(accepted)? else { continue };
                let expected = expected.clone();
                let (place, replaced) = oneshot::channel();
                let visit = async move {
                    timeout(TIME_LIMIT, visit(stream, &expected, replaced)).await.ok().flatten()
                };
                visits.spawn(visit);
                reading.retain(|place| !place.is_closed());
                reading.push_back(place);
                if reading.len() > MAX_CONNECTIONS {
                    // Dropped, it tells.
                    reading.pop_front();
                }
            }
        }
    }
}

/// `None` for one that left before it was accepted, which is no fault of the port's.
fn accepted_stream(accepted: io::Result<(TcpStream, SocketAddr)>) -> io::Result<Option<TcpStream>> {
    match accepted {
        Ok((stream, _)) => Ok(Some(stream)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// One request; what it brings, if it is the one that is waited for. Until it is there, another may take its place.
async fn visit(
    mut stream: TcpStream,
    expected: &ExpectedCallback,
    replaced: oneshot::Receiver<()>,
) -> Option<Callback> {
    let head = tokio::select! {
        head = read_head(&mut stream) => head?,
        _ = replaced => return None,
    };
    let line = String::from_utf8_lossy(&head);
    let target = line.lines().next().and_then(|line| line.strip_prefix("GET ")?.split(' ').next());
    let found = target.map_or(Err("404 Not Found"), |target| read_target(target, expected));
    let (status, title, text) = match found.as_ref().map(|callback| &callback.outcome) {
        Ok(CallbackOutcome::Code(_)) => {
            ("200 OK", "Logged in", "agentd has what it needs. You can close this page.")
        }
        Ok(CallbackOutcome::Denied(_)) => {
            ("200 OK", "Not logged in", "The provider refused. The terminal says why.")
        }
        Err(status) => (*status, "Not logged in", "This is not the page that the login is waiting for."),
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1><p>{text}</p></html>\n"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // A browser that is gone has brought what it had all the same.
    if stream.write_all(answer.as_bytes()).await.is_ok() {
        let _ = stream.shutdown().await;
    }
    found.ok()
}

/// `None` for one that is too long, or that ends early.
async fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || head.len() + read > MAX_HEAD_BYTES {
            return None;
        }
        let before = head.len().saturating_sub(3);
        head.extend_from_slice(&buffer[..read]);
        if head[before..].windows(4).any(|end| end == b"\r\n\r\n") {
            return Some(head);
        }
    }
}

/// The result that a request brings, or the status that refuses it.
pub(super) fn read_target(target: &str, expected: &ExpectedCallback) -> Result<Callback, &'static str> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != expected.path {
        return Err("404 Not Found");
    }
    let members = members(query);
    let member = |name: &str| {
        members
            .iter()
            .find(|(other, value)| other == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    if expected.state.is_some() && member("state") != expected.state.as_deref() {
        return Err("400 Bad Request");
    }
    let outcome = match (member("code"), member("error")) {
        (_, Some(error)) => {
            let more = member("error_description").map(|more| format!(": {more}")).unwrap_or_default();
            CallbackOutcome::Denied(shown(&format!("{error}{more}"), &[]))
        }
        (Some(code), None) => CallbackOutcome::Code(Secret::new(code)),
        (None, None) => return Err("400 Bad Request"),
    };
    Ok(Callback { outcome, issuer: member("iss").map(str::to_owned) })
}

/// Reads what a user pasted: the address that the browser ended at, `code#state`, or the code itself.
///
/// # Errors
/// Says what is wrong with it, and quotes nothing.
pub fn read_pasted(text: &str, expected: &ExpectedCallback) -> Result<Callback, &'static str> {
    let text = text.trim();
    if let Some((address, query)) = text.split_once('?') {
        let query = query.split('#').next().unwrap_or_default();
        if expected.state.is_none() && !address.ends_with(&expected.path) {
            return Err("it is the address of another login");
        }
        return read_target(&format!("{}?{query}", expected.path), expected)
            .map_err(|_| "it is the address of another login, or has no code in it");
    }
    let (code, state) = text.split_once('#').map_or((text, None), |(code, state)| (code, Some(state)));
    if state.is_some() && expected.state.is_some() && state != expected.state.as_deref() {
        return Err("it belongs to another login");
    }
    if code.is_empty() || !code.bytes().all(|byte| byte.is_ascii_graphic()) || code.contains("://") {
        return Err("it is no code, and no address with one in it");
    }
    Ok(Callback { outcome: CallbackOutcome::Code(Secret::new(code)), issuer: None })
}

fn members(query: &str) -> Vec<(String, String)> {
    // Any base will do: only the query is looked at.
    match reqwest::Url::parse(&format!("http://127.0.0.1/?{query}")) {
        Ok(url) => url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> ExpectedCallback {
        ExpectedCallback { path: "/cb".into(), state: Some("st".into()) }
    }

    fn code(text: &str) -> Callback {
        Callback { outcome: CallbackOutcome::Code(Secret::new(text)), issuer: None }
    }

    #[test]
    fn only_the_browser_of_the_login_is_heard() {
        let check = |target: &str, found: Result<Callback, &'static str>| {
            assert_eq!(read_target(target, &expected()), found, "{target}");
        };
        check("/cb?code=a%2Bb&state=st", Ok(code("a+b")));
        check(
            "/cb?state=st&error=access_denied&error_description=no+way",
            Ok(Callback { outcome: CallbackOutcome::Denied("access_denied: no way".into()), issuer: None }),
        );
        let named = Callback { issuer: Some("https://as.example/".into()), ..code("a") };
        check("/cb?code=a&state=st&iss=https%3A%2F%2Fas.example%2F", Ok(named));
        check("/cb?code=a&state=other", Err("400 Bad Request"));
        check("/cb?code=a", Err("400 Bad Request"));
        check("/cb?error=x", Err("400 Bad Request"));
        check("/cb?state=st", Err("400 Bad Request"));
        check("/cb?state=st&code=", Err("400 Bad Request"));
        check("/favicon.ico", Err("404 Not Found"));
        check("/cb/?code=a&state=st", Err("404 Not Found"));
        let by_path = ExpectedCallback { path: "/cb/secret".into(), state: None };
        assert_eq!(read_target("/cb/secret?code=a", &by_path), Ok(code("a")));
    }

    #[test]
    fn what_is_pasted_is_understood() {
        let check = |text: &str, good: Option<&str>| {
            let found = read_pasted(text, &expected()).ok();
            assert_eq!(found, good.map(code), "{text}");
        };
        check(" abc \n", Some("abc"));
        check("abc#st", Some("abc"));
        check("abc#other", None);
        check("http://localhost:1/cb?code=abc&state=st", Some("abc"));
        check("http://localhost:1/cb?code=abc&state=st#x", Some("abc"));
        check("http://localhost:1/cb?code=abc&state=other", None);
        check("https://example.com/", None);
        check("", None);
        check("a b", None);
    }

    #[tokio::test]
    async fn strangers_change_nothing() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let waiting = tokio::spawn(wait_for_callback(listener, expected()));
        let say = async |text: &'static [u8]| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(text).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        // A silent connection blocks no other.
        let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let refused = say(b"GET /cb?code=a&state=bad HTTP/1.1\r\n\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 400 ") && !refused.contains("bad"), "{refused}");
        assert!(say(b"POST /cb?code=a&state=st HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
        assert!(!waiting.is_finished());
        let good = say(b"GET /cb?code=good&state=st HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(good.starts_with("HTTP/1.1 200 ") && !good.contains("good"), "{good}");
        assert_eq!(waiting.await.unwrap().unwrap(), code("good"));
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the port is closed");
    }

    #[tokio::test]
    async fn half_requests_hold_up_nobody() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let waiting = tokio::spawn(wait_for_callback(listener, expected()));
        let mut halves = Vec::new();
        for _ in 0..MAX_CONNECTIONS * 3 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(b"GET /cb?code=a&state=s").await.unwrap();
            halves.push(stream);
        }
        let mut browser = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        browser.write_all(b"GET /cb?code=good&state=st HTTP/1.1\r\n\r\n").await.unwrap();
        // Before the deadline of any of them.
        let found = timeout(TIME_LIMIT / 2, waiting).await.expect("nobody waits for the others");
        assert_eq!(found.unwrap().unwrap(), code("good"));
    }
}
