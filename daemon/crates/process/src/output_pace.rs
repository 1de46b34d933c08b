//! Reads a flood of output in large pieces.
//!
//! A program that writes as fast as it can is woken, and wakes its reader, for every few kilobytes: both then spend their time on that. So once
//! an output is long, its pipe is made larger, and its reader gives it a moment to fill.

use std::time::Duration;

use tokio::{
    io::AsyncReadExt as _,
    time::{Instant, sleep_until},
};

use crate::streams::OutputPipe;

/// Bytes of output after which it is a flood.
const FLOOD_BYTES: usize = 1 << 20;

/// What the pipe of a flood holds, in bytes: the most that Linux lets every user have.
const PIPE_BYTES: usize = 1 << 20;

/// Less than this in one read means that the reader is faster than the writer: it waits.
const FULL_BYTES: usize = PIPE_BYTES / 4;

/// How long it waits. Timers have a resolution of a millisecond.
const PAUSE: Duration = Duration::from_millis(1);

/// The pace at which one output is read.
#[derive(Debug, Default)]
pub(crate) struct OutputPace {
    /// Bytes read so far; counted while the output may become a flood.
    seen: usize,
    state: PaceState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PaceState {
    /// Read as it comes, whatever becomes of it: the reader wants small pieces, or the pipe cannot be made larger.
    #[default]
    Fixed,
    /// Read as it comes, unless it becomes a flood.
    AsItComes,
    /// A flood, of which the next piece is read then.
    Paced(Instant),
}

impl OutputPace {
    /// The pace for a reader that takes pieces of a megabyte.
    pub(crate) fn for_large_pieces() -> Self {
        Self { seen: 0, state: PaceState::AsItComes }
    }

    /// Reads the next piece: 0 at the end. Cancel safe.
    ///
    /// # Errors
    /// The system's.
    pub(crate) async fn read(&self, output: &mut OutputPipe, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let PaceState::Paced(next) = self.state {
            sleep_until(next).await;
        }
        output.read(buffer).await
    }

    /// Takes account of a piece that was read into `buffer`, of which it may make a larger one for the next.
    pub(crate) fn note(&mut self, count: usize, output: &OutputPipe, buffer: &mut Vec<u8>) {
        match self.state {
            PaceState::AsItComes => {
                self.seen += count;
                if self.seen < FLOOD_BYTES {
                    return;
                }
                if output.enlarge(PIPE_BYTES) {
                    buffer.resize(PIPE_BYTES, 0);
                    self.state = PaceState::Paced(Instant::now());
                } else {
                    self.state = PaceState::Fixed;
                }
            }
            PaceState::Paced(_) => {
                let pause = if count < FULL_BYTES { PAUSE } else { Duration::ZERO };
                self.state = PaceState::Paced(Instant::now() + pause);
            }
            PaceState::Fixed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};
    use tokio::net::unix::pipe;

    use super::*;

    fn pipe() -> (OutputPipe, std::fs::File) {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        (OutputPipe::of_pipe(pipe::Receiver::from_owned_fd(read).unwrap()), write.into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_in_large_pieces_and_little_output_as_it_comes() {
        let (output, _writer) = pipe();
        let mut pace = OutputPace::for_large_pieces();
        let mut buffer = vec![0; 1000];
        pace.note(FLOOD_BYTES - 1, &output, &mut buffer);
        assert_eq!((pace.state, buffer.len()), (PaceState::AsItComes, 1000));
        pace.note(1, &output, &mut buffer);
        if pace.state == PaceState::Fixed {
            // The user has as many large pipes as the system allows.
            assert_eq!(buffer.len(), 1000);
            return;
        }
        assert_eq!(buffer.len(), PIPE_BYTES);
        let now = Instant::now();
        pace.note(FULL_BYTES, &output, &mut buffer);
        assert_eq!(pace.state, PaceState::Paced(now));
        pace.note(FULL_BYTES - 1, &output, &mut buffer);
        assert_eq!(pace.state, PaceState::Paced(now + PAUSE));
    }

    #[tokio::test]
    async fn a_reader_that_wants_small_pieces_gets_them() {
        let (output, _writer) = pipe();
        let (mut pace, mut buffer) = (OutputPace::default(), vec![0; 1000]);
        pace.note(10 * FLOOD_BYTES, &output, &mut buffer);
        assert_eq!((pace.state, buffer.len()), (PaceState::Fixed, 1000));
    }

    #[tokio::test]
    async fn nothing_of_a_flood_is_lost() {
        use std::io::Write as _;
        let (mut output, mut writer) = pipe();
        let total = 5 * FLOOD_BYTES + 7;
        let written = std::thread::spawn(move || {
            let all: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
            all.chunks(5000).for_each(|piece| writer.write_all(piece).unwrap());
        });
        let (mut pace, mut buffer, mut all) = (OutputPace::for_large_pieces(), vec![0; 1000], Vec::new());
        loop {
            let count = pace.read(&mut output, &mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            all.extend_from_slice(&buffer[..count]);
            pace.note(count, &output, &mut buffer);
        }
        written.join().unwrap();
        assert_eq!(all.len(), total);
        assert!(all.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
    }
}
