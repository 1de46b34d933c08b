//! A site on loopback, for tests.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What a path answers.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) status: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body never comes to its end.
    pub(crate) hangs: bool,
}

impl Reply {
    pub(crate) fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: "200 OK",
            headers: vec![("content-type", content_type.to_owned())],
            body: body.into(),
            hangs: false,
        }
    }

    pub(crate) fn status(self, status: &'static str) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn to(location: &str) -> Self {
        Self::new("text/plain", "").status("302 Found").header("location", location)
    }
}

type Answer = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

/// A site on loopback.
pub(crate) struct Site {
    pub(crate) base: String,
    routes: Arc<Mutex<HashMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let site = Self { base, routes: Arc::default(), requests: Arc::default() };
        let (routes, requests) = (Arc::clone(&site.routes), Arc::clone(&site.requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&routes), Arc::clone(&requests)));
            }
        });
        site
    }

    /// Answers a path, with its query, always in the same way.
    pub(crate) fn route(&self, path: &str, reply: Reply) {
        self.answer(path, move |_| reply.clone());
    }

    /// Answers a path by the head of the request.
    pub(crate) fn answer(&self, path: &str, answer: impl Fn(&str) -> Reply + Send + Sync + 'static) {
        self.routes.lock().unwrap().insert(path.to_owned(), Arc::new(answer));
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The heads of all requests for a path.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let start = format!(" {path} ");
        requests
            .iter()
            .filter(|head| head.lines().next().is_some_and(|line| line.contains(&start)))
            .cloned()
            .collect()
    }

    /// The last body that was sent to a path: what stands behind the head.
    pub(crate) fn sent(&self, path: &str) -> String {
        self.asked(path)
            .last()
            .and_then(|request| request.split_once("\r\n\r\n"))
            .map(|(_, body)| body.to_owned())
            .unwrap_or_default()
    }
}

async fn serve(
    mut stream: TcpStream,
    routes: Arc<Mutex<HashMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
) {
    let mut read = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8_lossy(&read[..head_end]).into_owned();
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length:")
                    .map(|it| it.trim().parse::<usize>().unwrap())
            })
            .unwrap_or(0);
        while read.len() < head_end + length {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let request = String::from_utf8_lossy(&read[..head_end + length]).into_owned();
        read.drain(..head_end + length);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let answer = routes.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
        let reply = answer.map_or_else(
            || Reply::new("text/html", "<h1>Not found</h1>").status("404 Not Found"),
            |answer| answer(&request),
        );
        let mut out = format!("HTTP/1.1 {}\r\n", reply.status);
        for (name, value) in &reply.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = reply.body.len() + if reply.hangs { 1000 } else { 0 };
        out.push_str(&format!("content-length: {length}\r\n\r\n"));
        if stream.write_all(out.as_bytes()).await.is_err() || stream.write_all(&reply.body).await.is_err() {
            return;
        }
        if reply.hangs {
            std::future::pending::<()>().await;
        }
    }
}
