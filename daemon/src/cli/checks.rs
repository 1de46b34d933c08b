//! Flags that do not go together.

use super::flags::Flags;

impl Flags {
    /// Looks at what is said about the session.
    ///
    /// # Errors
    /// The first contradiction, in the reference's words where it has them.
    pub(super) fn check_session(&self) -> Result<(), String> {
        if self.socket.is_some() || self.detached {
            return Err("Error: --socket is for the daemon on a socket; it cannot be combined with --stdio or prompts \
                        (for --stdio --shared, AGENTD_SOCKET names the daemon's socket)"
                .into());
        }
        if let (Some(provider), None) = (&self.provider, &self.model) {
            return Err(format!(
                "Error: --provider requires --model (for example: --provider {provider} --model <pattern>)"
            ));
        }
        if self.api_key.is_some() && self.model.is_none() && self.models.is_none() {
            return Err("Error: --api-key requires a model to be specified via --model, --provider/--model, or --models"
                .into());
        }
        if self.demo {
            exclusive("--demo", &[("--model", self.model.is_some())])?;
        }
        self.check_resume()?;
        let (session, last, none) = (self.session.is_some(), self.continue_last, self.no_session);
        if self.fork.is_some() {
            exclusive("--fork", &[("--session", session), ("--continue", last), ("--no-session", none)])?;
        }
        if self.session_id.is_some() {
            exclusive("--session-id", &[("--session", session), ("--continue", last)])?;
        }
        Ok(())
    }

    /// # Errors
    /// When a session is to be picked from a list: nobody can.
    pub(super) fn check_resume(&self) -> Result<(), String> {
        if self.resume {
            return Err("Error: --resume opens a picker, and agentd has no terminal interface: --continue takes the most \
                        recent session of this folder, --session <id> any other; `agentctl prompt --resume` asks, `agentctl sessions` lists them"
                .into());
        }
        Ok(())
    }
}

fn exclusive(flag: &str, others: &[(&str, bool)]) -> Result<(), String> {
    let given: Vec<&str> = others.iter().filter(|(_, given)| *given).map(|(other, _)| *other).collect();
    if given.is_empty() {
        return Ok(());
    }
    Err(format!("Error: {flag} cannot be combined with {}", given.join(", ")))
}
