//! What leads a connection to another session besides a command that is executed at once: a command that extensions were asked about, and
//! extensions themselves.

use std::sync::Arc;

use agentd_session::{ClientOrder, ExtensionStart, Leaving, MoveRequest};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::hub::SessionSlot;

/// A command to leave a session, which extensions were asked about.
pub(super) struct AskedSwitch {
    pub(super) name: &'static str,
    pub(super) id: Option<Value>,
    pub(super) from: Arc<SessionSlot>,
    pub(super) leaving: Leaving,
    /// When the extensions of the next session are started.
    pub(super) extensions: ExtensionStart,
    /// Whether an extension prevents it.
    pub(super) is_prevented: bool,
}

/// A move of the connection.
pub(super) enum Move {
    /// By a command.
    Asked(Box<AskedSwitch>),
    /// By an extension.
    OfExtension(Box<MoveRequest>),
    /// An extension ends the session.
    Quit,
}

/// The moves that are to be made.
pub(super) struct Moves {
    pub(super) asked: (UnboundedSender<Box<AskedSwitch>>, UnboundedReceiver<Box<AskedSwitch>>),
    pub(super) of_extensions: (UnboundedSender<ClientOrder>, UnboundedReceiver<ClientOrder>),
}

impl Default for Moves {
    fn default() -> Self {
        Self { asked: unbounded_channel(), of_extensions: unbounded_channel() }
    }
}

impl Moves {
    /// The next move. Cancel safe.
    pub(super) async fn next(&mut self) -> Move {
        // Both channels have a sender here.
        tokio::select! {
            Some(asked) = self.asked.1.recv() => Move::Asked(asked),
            Some(order) = self.of_extensions.1.recv() => match order {
                ClientOrder::Move(request) => Move::OfExtension(request),
                ClientOrder::Quit => Move::Quit,
            },
        }
    }

    /// A command whose question was answered.
    pub(super) fn answered(&mut self) -> Option<Box<AskedSwitch>> {
        self.asked.1.try_recv().ok()
    }
}
