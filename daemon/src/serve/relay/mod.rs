//! Serving a host that speaks a protocol of others on stdin and stdout: an editor (`agentd acp`), an agent (`agentd mcp serve`). A
//! [`Translator`] knows the protocol; here lines are moved between the host and a daemon, which is in this process or, with `--shared`, the
//! user's.

mod daemon_link;
mod move_lines;
mod own;
mod shared;
mod translator;

pub(super) use self::{own::own, shared::shared, translator::Translator};
