//! A token endpoint for tests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Such as `POST /token`.
    pub(crate) target: String,
    /// The lines of the head, names in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

/// A server that answers each request as `answer` says (status and JSON), and keeps what it was asked.
pub(crate) struct TokenServer {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl TokenServer {
    pub(crate) fn start(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (kept, answer) = (Arc::clone(&asked), Arc::new(answer));
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { port, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> (u16, String)) {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let target = lines.remove(0).trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<String> = lines
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| format!("{}:{value}", name.to_ascii_lowercase()))
        .collect();
    let length = headers.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let asked = Asked { target, headers, body: String::from_utf8(body).unwrap() };
    kept.lock().unwrap().push(asked.clone());
    let (status, body) = answer(&asked);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A client that is gone needs no answer.
    let _ = reader.get_mut().write_all((head + &body).as_bytes());
}
