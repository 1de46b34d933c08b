//! Ends the input of a command on a terminal without a user.

use std::time::Duration;

use agentd_process::InputPipe;
use tokio::{
    io::AsyncWriteExt as _,
    time::{Instant, sleep_until},
};

/// The character that ends a program's input on a terminal by default: Ctrl-D.
const END_OF_INPUT: u8 = 4;

/// How often it is typed at the start, so that this many reads of lines find the end at once.
const AT_START: usize = 8;

/// How often it is typed at most: less than a terminal's buffer holds, so that writing never waits.
const MOST: usize = 2000;

/// How long a command is silent before it may be waiting for a key.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause before the next end.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Types the end of input at the start, and again whenever the command has been silent for a while: for programs that
/// read single keys, or discard what was typed before they asked.
pub(super) struct InputEnd {
    /// Held until the command ends.
    input: Option<InputPipe>,
    next: Instant,
    pause: Duration,
    typed: usize,
}

impl InputEnd {
    /// Without an input there is nothing to end.
    pub(super) async fn begin(input: Option<InputPipe>) -> Self {
        let mut end = Self { input, next: Instant::now() + FIRST_PAUSE, pause: FIRST_PAUSE, typed: 0 };
        end.press(AT_START).await;
        end
    }

    /// Restarts the silence: the command wrote something.
    pub(super) fn heard(&mut self) {
        self.pause = FIRST_PAUSE;
        self.next = Instant::now() + self.pause;
    }

    /// Waits until the command has been silent for long enough; for ever when no more ends are due. Cancel safe.
    pub(super) async fn silence(&self) {
        if self.input.is_none() || self.typed >= MOST {
            std::future::pending().await
        }
        sleep_until(self.next).await;
    }

    /// Types the end once more.
    pub(super) async fn again(&mut self) {
        self.press(1).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.next = Instant::now() + self.pause;
    }

    async fn press(&mut self, times: usize) {
        self.typed += times;
        if let Some(input) = &mut self.input
            && input.write_all(&[END_OF_INPUT; AT_START][..times]).await.is_err()
        {
            // The command has ended and reads no more.
            self.input = None;
        }
    }
}
