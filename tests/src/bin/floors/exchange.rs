//! What a prompt and a delta come down to: bytes from a server, to a file and to a client.

use std::{
    fs::File,
    io::{PipeWriter, Read as _, Write as _, pipe},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use crate::report::{Scale, measure};

/// The request of a short conversation with four tools, in bytes.
const REQUEST: usize = 6_000;

/// An answer of one delta as a stream of events, in bytes.
const ANSWER: usize = 950;

/// The events of a run with one delta, as a client gets them: so many lines, so many bytes in all.
const EVENTS: (usize, usize) = (9, 3_600);

/// The entries of a prompt and of its answer, and what is noted before the model is asked, in bytes.
const ENTRIES: (usize, usize) = (210, 540);

const INTENT: usize = 190;

/// A delta from the server, and as a client gets it, in bytes.
const DELTA: (usize, usize) = (130, 280);

/// The pause between two deltas.
const PAUSE: Duration = Duration::from_millis(5);

/// A prompt that is answered at once: the entries and the intent are written, the server is asked over a kept connection, and the client
/// gets a line for each event.
pub(super) fn prompt(scale: Scale) {
    let mut server = connect(|mut stream| {
        let (mut request, answer) = (vec![0; REQUEST], [b'x'; ANSWER]);
        while stream.read_exact(&mut request).is_ok() {
            stream.write_all(&answer).unwrap();
        }
    });
    let (mut session, mut intents) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let mut client = client();
    let (request, event) = ([b'x'; REQUEST], vec![b'x'; EVENTS.1 / EVENTS.0]);
    let mut answer = vec![0; ANSWER];
    let append = |file: &mut File, bytes: usize| file.write_all(&vec![b'x'; bytes]).unwrap();
    measure("a prompt with an answer of one delta", scale.of(2_000, 50), || {
        append(&mut session, ENTRIES.0);
        append(&mut intents, INTENT);
        server.write_all(&request).unwrap();
        server.read_exact(&mut answer).unwrap();
        append(&mut session, ENTRIES.1);
        for _ in 0..EVENTS.0 {
            client.write_all(&event).unwrap();
        }
        intents.set_len(0).unwrap();
    });
}

/// Deltas that come one by one: each is read, and a line for it is written.
pub(super) fn paced(scale: Scale) {
    let count = scale.of(400, 20);
    let mut server = connect(move |mut stream| {
        for _ in 0..count {
            thread::sleep(PAUSE);
            stream.write_all(&[b'x'; DELTA.0]).unwrap();
        }
    });
    let mut client = client();
    let (mut delta, event) = ([0; DELTA.0], [b'x'; DELTA.1]);
    measure("a delta, 5 ms after the one before", count, || {
        server.read_exact(&mut delta).unwrap();
        client.write_all(&event).unwrap();
    });
}

/// A connection to a server that does this.
fn connect(serve: impl FnOnce(TcpStream) + Send + 'static) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || serve(listener.accept().unwrap().0));
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A pipe to a client that reads all it gets.
fn client() -> PipeWriter {
    let (mut reader, writer) = pipe().unwrap();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while reader.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    writer
}
