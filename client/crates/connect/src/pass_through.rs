//! Copies bytes between our standard streams and the daemon, without reading them.
//!
//! `agentd --stdio --shared` and `agentctl rpc` open a session of the daemon with the flags, folder and environment of their own process,
//! take that one response off the connection, and from then on copy bytes with two threads and one buffer each way. Back pressure therefore
//! reaches from the host to the provider, and the lines are the daemon's own.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::sync::oneshot;

/// How much is copied at once, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The reason why copying ended early.
#[derive(Debug, thiserror::Error)]
pub enum PassThroughError {
    /// The daemon closed the connection while our input was open.
    #[error("agentd closed the connection; `agentctl logs` may say why")]
    Closed,
    /// The connection broke.
    #[error("the connection to agentd broke: {0}")]
    Lost(#[source] io::Error),
    /// Our output cannot be written.
    #[error("cannot write to stdout: {0}")]
    Output(#[source] io::Error),
    /// The system refuses another thread or descriptor.
    #[error("cannot start: {0}")]
    Start(#[source] io::Error),
}

/// Stdin and stdout without buffers.
///
/// # Errors
/// When one of them is closed, or the system has no descriptors left.
pub fn standard_streams() -> Result<(File, File), PassThroughError> {
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(PassThroughError::Start)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(PassThroughError::Start)?;
    Ok((input.into(), output.into()))
}

/// Copies `input` to the connection, and `first` and then the connection to `output`, until the daemon closes it. The
/// end of the input ends the sending side; the daemon then answers what it owes and closes.
///
/// A side that takes nothing is waited for, and holds up the other one: only one piece each way is kept. Reads and
/// writes are blocking calls on two threads, since the parent process shares the descriptors. The threads outlive a
/// dropped future, which only happens at the end of the program.
///
/// # Errors
/// See [`PassThroughError`].
pub async fn pass_through(
    stream: tokio::net::UnixStream,
    first: Vec<u8>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), PassThroughError> {
    let (result, ended) = oneshot::channel();
    start(stream, first, input, output, result).map_err(PassThroughError::Start)?;
    ended
        .await
        .unwrap_or_else(|_| Err(PassThroughError::Lost(io::Error::other("the copying thread broke down"))))
}

fn start(
    stream: tokio::net::UnixStream,
    first: Vec<u8>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    result: oneshot::Sender<Result<(), PassThroughError>>,
) -> io::Result<()> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let sending = stream.try_clone()?;
    let input_ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&input_ended);
    thread::Builder::new().name("input".into()).spawn(move || send(input, &sending, &flag))?;
    thread::Builder::new().name("output".into()).spawn(move || {
        // Fails when the program ends: the receiver is dropped.
        let _ = result.send(receive(stream, &first, output, &input_ended));
    })?;
    Ok(())
}

fn send(mut input: impl Read, mut stream: &UnixStream, ended: &AtomicBool) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match input.read(&mut buffer) {
            // An input that cannot be read counts as ended.
            Ok(0) => break,
            Ok(count) => {
                // The other thread reports the end of the daemon.
                if stream.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    ended.store(true, Ordering::Release);
    // Fails only when the daemon is gone.
    let _ = stream.shutdown(Shutdown::Write);
}

fn receive(
    mut stream: UnixStream,
    first: &[u8],
    mut output: impl Write,
    input_ended: &AtomicBool,
) -> Result<(), PassThroughError> {
    let mut write = |bytes: &[u8]| {
        output.write_all(bytes).and_then(|()| output.flush()).map_err(PassThroughError::Output)
    };
    write(first)?;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) if input_ended.load(Ordering::Acquire) => return Ok(()),
            Ok(0) => return Err(PassThroughError::Closed),
            Ok(count) => write(&buffer[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(PassThroughError::Lost(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn bytes_pass_both_ways_and_the_end_of_the_input_ends_it() {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let sent: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
        let passing = pass_through(ours, b"first ".to_vec(), io::Cursor::new(sent.clone()), writer);
        let (mut from_us, mut to_us) = theirs.into_split();
        let daemon = async {
            let mut got = Vec::new();
            from_us.read_to_end(&mut got).await.unwrap();
            to_us.write_all(b"\xFF no line").await.unwrap();
            drop(to_us);
            got
        };
        let (passed, got) = tokio::join!(passing, daemon);
        passed.unwrap();
        assert!(got == sent);
        let mut received = Vec::new();
        reader.read_to_end(&mut received).unwrap();
        assert_eq!(received, b"first \xFF no line");
    }

    #[tokio::test]
    async fn a_daemon_that_hangs_up_is_told_from_the_end() {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let (input, _kept_open) = io::pipe().unwrap();
        drop(theirs);
        let broken = pass_through(ours, Vec::new(), input, io::sink()).await.unwrap_err();
        assert!(matches!(broken, PassThroughError::Closed), "{broken}");
    }

    #[tokio::test]
    async fn a_closed_output_is_told() {
        let (ours, mut theirs) = tokio::net::UnixStream::pair().unwrap();
        let (input, _kept_open) = io::pipe().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        theirs.write_all(b"x").await.unwrap();
        let broken = pass_through(ours, Vec::new(), input, writer).await.unwrap_err();
        assert!(
            matches!(&broken, PassThroughError::Output(error) if error.kind() == ErrorKind::BrokenPipe),
            "{broken}"
        );
    }

    /// Bytes that one side does not take stay with the other side.
    #[tokio::test]
    async fn a_slow_side_holds_the_other_one_up() {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let (input, _kept_open) = io::pipe().unwrap();
        let (mut slow, writer) = io::pipe().unwrap();
        let passing = tokio::spawn(pass_through(ours, Vec::new(), input, writer));
        let mut written = 0usize;
        // Nobody reads, so the pipes fill up and writing has to stop.
        while let Ok(wrote) = tokio::time::timeout(std::time::Duration::from_millis(300), async {
            theirs.writable().await.unwrap();
            theirs.try_write(&[0; 1 << 16])
        })
        .await
        {
            match wrote {
                Ok(count) => written += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            assert!(written < 8 << 20, "{written} bytes were taken and nobody read them");
        }
        drop(theirs);
        let reading = tokio::task::spawn_blocking(move || {
            let mut all = Vec::new();
            slow.read_to_end(&mut all).map(|_| all.len())
        });
        assert!(matches!(passing.await.unwrap(), Err(PassThroughError::Closed)));
        assert_eq!(reading.await.unwrap().unwrap(), written);
    }
}
