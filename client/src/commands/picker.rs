//! A list on the terminal from which one line is picked: what is typed filters it.

mod keys;
mod state;
mod terminal;

use std::{io, time::Duration};

use agentd_client_text::{FuzzyQuery, FuzzyText};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

pub(crate) use self::state::PickerItem;
use self::{
    keys::KeyDecoder,
    state::{PickerState, Step},
    terminal::RawTerminal,
};
use super::daemon_call;
use crate::exit::{Exit, Fault};

/// How long a terminal may take between the bytes of one key. An Escape that nothing follows is the key Escape.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);

/// Whether the terminal can show the list: a person is there, and it can move its cursor.
pub(crate) fn possible() -> bool {
    super::confirm::possible() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Lets the user pick one of the items, shown in their order. Gives the index, or `None` when the user leaves.
/// The terminal is as before however this ends, a panic and a signal included.
///
/// # Errors
/// When the terminal cannot be used, and at Ctrl-C and other signals.
pub(crate) fn pick(items: Vec<PickerItem>) -> Result<Option<usize>, Fault> {
    daemon_call::block_on(choose(PickerState::new(items)))
}

/// The places of the texts that fit a query by their letters, as in the list.
pub(crate) fn matches(texts: impl Iterator<Item = String>, query: &str) -> Vec<usize> {
    let query = FuzzyQuery::new(query);
    let fits = |(at, text): (usize, String)| query.score(&FuzzyText::new(&text)).map(|_| at);
    texts.enumerate().filter_map(fits).collect()
}

async fn choose(mut state: PickerState) -> Result<Option<usize>, Fault> {
    let broken = |error: io::Error| {
        Fault::new(Exit::Failed, format!("agentctl: the terminal cannot be used: {error}"))
    };
    let mut resized = signal(SignalKind::window_change()).map_err(broken)?;
    let terminal = RawTerminal::enter().map_err(broken)?;
    let keyboard = terminal.keyboard().map_err(broken)?;
    let mut decoder = KeyDecoder::default();
    loop {
        terminal.draw(&state).map_err(broken)?;
        let keys = tokio::select! {
            ready = keyboard.readable() => {
                ready.map_err(broken)?;
                match terminal::pressed(&keyboard).map_err(broken)? {
                    Some(bytes) => decoder.keys(&bytes),
                    None => return Ok(None),
                }
            }
            () = sleep(ESCAPE_TIMEOUT), if decoder.is_in_a_key() => decoder.pause(),
            _ = resized.recv() => Vec::new(),
        };
        for key in keys {
            match state.press(key) {
                Step::On => {}
                Step::Picked(at) => return Ok(Some(at)),
                Step::Left => return Ok(None),
                Step::Interrupted => return Err(Fault::new(Exit::Interrupted, "")),
            }
        }
    }
}
