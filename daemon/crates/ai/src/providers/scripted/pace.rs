//! Cuts texts into deltas of random sizes, and emits them at a given speed.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::script::ChunkSizes;
use crate::failure::Failure;

/// The assumed length of a token, in characters.
const TOKEN_CHARS: usize = 4;

/// The number of tokens in a number of characters.
pub(super) fn tokens(chars: usize) -> u64 {
    u64::try_from(chars.div_ceil(TOKEN_CHARS)).unwrap_or(u64::MAX)
}

/// Cuts the texts of one answer. The same script, seed and request give the same pieces.
pub(super) struct Cutter {
    sizes: ChunkSizes,
    state: u64,
}

impl Cutter {
    /// `request` tells the requests of a conversation apart.
    pub(super) fn new(sizes: ChunkSizes, request: usize) -> Self {
        let request = u64::try_from(request).unwrap_or_default();
        Self { sizes, state: sizes.seed ^ request.wrapping_mul(0x2545_f491_4f6c_dd1d) }
    }

    /// The pieces of a text, at least one.
    pub(super) fn cut(&mut self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let chars = self.size() * TOKEN_CHARS;
            let end = rest.char_indices().nth(chars).map_or(rest.len(), |(end, _)| end);
            let (piece, behind) = rest.split_at(end);
            pieces.push(piece.to_owned());
            rest = behind;
        }
        if pieces.is_empty() {
            pieces.push(String::new());
        }
        pieces
    }

    /// The size of the next piece, in tokens.
    fn size(&mut self) -> usize {
        let ChunkSizes { min, max, .. } = self.sizes;
        let choices = u64::from(max - min) + 1;
        usize::try_from(u64::from(min) + self.random() % choices).unwrap_or(usize::MAX / TOKEN_CHARS)
    }

    /// SplitMix64: random enough for tests, and the same everywhere.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Keeps a speed over the whole answer: a late delta does not delay the next ones.
pub(super) struct Pace {
    per_second: f64,
    due: Instant,
}

impl Pace {
    pub(super) fn new(per_second: f64) -> Self {
        Self { per_second, due: Instant::now() }
    }

    /// Restarts after a pause, which is not caught up.
    pub(super) fn reset(&mut self) {
        self.due = Instant::now();
    }

    /// Waits for the time that a model of this speed needs for `delta`.
    ///
    /// # Errors
    /// An abort ends the wait at once.
    pub(super) async fn wait(&mut self, delta: &str, cancel: &CancellationToken) -> Result<(), Failure> {
        let tokens = u32::try_from(tokens(delta.chars().count())).unwrap_or(u32::MAX);
        self.due += Duration::from_secs_f64(f64::from(tokens) / self.per_second);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::aborted()),
            () = sleep_until(self.due) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, seed: u64, request: usize) -> Vec<String> {
        Cutter::new(ChunkSizes { min: 1, max: 3, seed }, request).cut(text)
    }

    #[test]
    fn pieces_have_sizes_within_the_bounds_and_make_the_text() {
        let text = "Grüße — ".repeat(50);
        let pieces = cut(&text, 7, 2);
        assert_eq!(pieces.concat(), text);
        let sizes: Vec<usize> = pieces.iter().map(|piece| piece.chars().count()).collect();
        let (_, all_but_last) = sizes.split_last().unwrap();
        assert!(all_but_last.iter().all(|size| [4, 8, 12].contains(size)), "{sizes:?}");
        assert!([4, 8, 12].iter().all(|size| sizes.contains(size)), "every size comes: {sizes:?}");
        assert_eq!(cut("", 7, 2), [""]);
    }

    #[test]
    fn the_seed_and_the_request_decide() {
        let text = "x".repeat(400);
        assert_eq!(cut(&text, 7, 2), cut(&text, 7, 2));
        assert_ne!(cut(&text, 7, 2), cut(&text, 8, 2));
        assert_ne!(cut(&text, 7, 2), cut(&text, 7, 3));
    }
}
