//! Which way of working a command line asks for.

use super::{OneShotFormat, flags::Flags};

/// A way of working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Many sessions and clients on a socket.
    Serve,
    /// One session on stdin and stdout.
    Stdio,
    /// The prompts of the command line, and the end.
    OneShot(OneShotFormat),
}

/// What `--mode` takes; `--stdio` is `--mode rpc`, and `--print` without a mode is `--mode text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModeFlag {
    Text,
    Json,
    Rpc,
}

impl ModeFlag {
    /// # Errors
    /// The reference's text.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "rpc" => Ok(Self::Rpc),
            other => Err(format!("Error: Invalid mode \"{other}\". Valid values: text, json, rpc")),
        }
    }
}

impl Flags {
    /// The way of working. Under our own name a message needs `-p`, so that a mistyped subcommand is no prompt; as the
    /// reference, whatever is about a session is one, since there is no terminal interface that it could be for.
    ///
    /// # Errors
    /// When flags of two ways of working meet.
    pub(super) fn mode(&self, serve: bool) -> Result<Mode, String> {
        let asked = match (self.mode, self.print) {
            (Some(ModeFlag::Rpc), _) => Some(Mode::Stdio),
            (Some(ModeFlag::Json), _) => Some(Mode::OneShot(OneShotFormat::Json)),
            (Some(ModeFlag::Text), _) | (None, true) => Some(Mode::OneShot(OneShotFormat::Text)),
            (None, false) => None,
        };
        match asked {
            Some(Mode::Stdio) if serve => {
                Err("Error: `serve` listens on a socket; without it, --stdio serves stdin and stdout.".into())
            }
            Some(_) if serve => {
                Err("Error: `serve` listens on a socket; without it, -p and --mode answer prompts and end."
                    .into())
            }
            Some(mode) => Ok(mode),
            None if !serve && (self.named_pi || self.compat && self.about_a_session.is_some()) => {
                Ok(Mode::OneShot(OneShotFormat::Text))
            }
            None => Ok(Mode::Serve),
        }
    }
}
