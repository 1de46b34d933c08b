//! Reads requests, has several threads answer them, and writes the answers as they come.

use std::{
    io::{self, BufRead, Read as _, Write},
    num::NonZero,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use agentd_syntax::{Answer, MAX_LINE, Query, Request, Response};

use crate::engine::{CompiledQuery, guarded};

/// The most threads that parse: one search must not occupy a big machine alone.
const MOST_THREADS: usize = 8;

/// Bytes of a thread's stack, of which only what is used takes memory: deep code is walked by recursion.
const STACK: usize = 256 << 20;

/// Serves requests until the input ends.
///
/// # Errors
/// Those of the input, and a line that is no request or too long.
pub(crate) fn serve(mut input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
    let output = Arc::new(Mutex::new(output));
    // Without a buffer: what no thread has time for stays in the pipe, and its sender waits.
    let (requests, taken) = mpsc::sync_channel::<Request>(0);
    let taken = Arc::new(Mutex::new(taken));
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let mut workers = Vec::new();
    for _ in 0..threads {
        let (taken, output) = (Arc::clone(&taken), Arc::clone(&output));
        let builder = thread::Builder::new().name("parse".into()).stack_size(STACK);
        workers.push(builder.spawn(move || work(&taken, &output))?);
    }
    let mut line = Vec::new();
    let done = loop {
        line.clear();
        let count = input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if count == 0 {
            break Ok(());
        }
        if count > MAX_LINE {
            break Err(io::Error::other("a request is too long"));
        }
        match serde_json::from_slice(&line) {
            Ok(request) => {
                if requests.send(request).is_err() {
                    // Every worker has ended: nobody reads answers any more.
                    break Ok(());
                }
            }
            Err(error) => break Err(io::Error::other(format!("a line is no request: {error}"))),
        }
    };
    drop(requests);
    for worker in workers {
        // A worker that panicked outside of a text has said so on stderr.
        let _ = worker.join();
    }
    done
}

fn work(taken: &Mutex<mpsc::Receiver<Request>>, output: &Mutex<impl Write>) {
    let mut last: Option<(Query, Result<CompiledQuery, String>)> = None;
    loop {
        let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Request { id, query, texts }) = next else { return };
        let compiled = match last.take() {
            Some((known, compiled)) if known == query => compiled,
            _ => guarded(|| CompiledQuery::new(&query)),
        };
        let answer = match &compiled {
            Ok(compiled) => compiled.answer(&texts),
            Err(why) => Answer::Refused(why.clone()),
        };
        last = Some((query, compiled));
        let Ok(mut line) = serde_json::to_vec(&Response { id, answer }) else { return };
        line.push(b'\n');
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, for the test that holds the other end.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_request_has_an_answer() {
        let query = |pattern: &str| Query {
            language: "rust".into(),
            pattern: pattern.into(),
            selector: None,
            rewrite: None,
        };
        let mut input = Vec::new();
        for id in 0..50 {
            let pattern = if id % 2 == 0 { "f($A)" } else { "f(" };
            let request = Request { id, query: query(pattern), texts: vec!["fn a() { f(1) }".into(); 3] };
            serde_json::to_writer(&mut input, &request).unwrap();
            input.push(b'\n');
        }
        let written = Written::default();
        serve(&input[..], written.clone()).unwrap();
        let written = written.0.lock().unwrap();
        let mut answers: Vec<Response> = written
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        answers.sort_by_key(|response| response.id);
        assert_eq!(answers.len(), 50);
        for Response { id, answer } in answers {
            match answer {
                Answer::Found { literals, texts } => {
                    assert_eq!((id % 2, literals, texts.len()), (0, Vec::<String>::new(), 3));
                    assert_eq!(texts[2].as_ref().unwrap()[0].start, 9);
                }
                Answer::Refused(why) => assert!(id % 2 == 1 && why.contains("no code in rust"), "{why}"),
            }
        }
        assert!(serve(&b"{}\n"[..], Written::default()).is_err());
    }
}
