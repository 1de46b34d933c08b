//! `agentctl login`, `logout` and `auth status`: keys of providers.

mod account;
mod report;

pub(crate) use report::words as key_origin;

use std::{
    collections::BTreeMap,
    io::{self, BufRead, IsTerminal, Read, Write},
    os::fd::AsFd,
};

use agentd_protocol::{
    credentials::{AuthStatusParams, LoginParams, LogoutParams},
    secret::Secret,
};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use super::daemon_call;
use crate::{
    cli::{AuthStatusOptions, LoginOptions, LogoutOptions},
    exit::{self, Exit, Fault, Signals, conclude},
    output,
    render::one_line,
    rpc,
};

/// The most that is read of a pasted line, in bytes.
const MAX_LINE_BYTES: u64 = 16 * 1024;

/// The most that is read of a piped key, in bytes; a key is far shorter.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// Asks for a key and has agentd store it, or logs in with an account.
pub(crate) fn login(options: LoginOptions) -> Exit {
    conclude(log_in(options))
}

/// Has agentd remove what is stored for a provider.
pub(crate) fn logout(options: &LogoutOptions) -> Exit {
    conclude(log_out(options))
}

pub(crate) fn status(options: &AuthStatusOptions) -> Exit {
    conclude(tell_status(options))
}

fn log_in(options: LoginOptions) -> Result<Exit, Fault> {
    if !options.key.is_empty() {
        return Err(Fault::usage(format!(
            "agentctl: keys are not taken from the command line, where the shell's history and other users see them. Run \
             `agentctl login {provider}` and type the key, or pipe it in:\n  agentctl login {provider} < FILE",
            provider = options.provider
        )));
    }
    if options.oauth || options.device || options.no_browser {
        return account::log_in(&options, account::Place::AgentdFirst);
    }
    // What is piped in is a key. Extensions bring providers that ask for what they need by themselves.
    let may_be_of_extension = io::stdin().is_terminal() && !options.force && options.env.is_empty();
    if may_be_of_extension && account::is_unknown(&options.provider)? {
        return account::log_in(&options, account::Place::Extensions);
    }
    let env = options.env.iter().map(|pair| variable(pair)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let key = ask_for_key(&options.provider)?;
    let params = LoginParams { provider: options.provider, key, env, force: options.force.then_some(true) };
    let login = daemon_call::private::<rpc::Login>(&params)?;
    if options.json { output::print_json(&login) } else { output::print(&report::login(&login)) }
}

/// Parses `NAME=VALUE`. The value may be a secret, so errors do not repeat it.
fn variable(pair: &str) -> Result<(String, Secret), Fault> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Secret::new(value))),
        _ => Err(Fault::usage("agentctl: --env takes NAME=VALUE, such as --env CLOUDFLARE_ACCOUNT_ID=0123")),
    }
}

fn log_out(options: &LogoutOptions) -> Result<Exit, Fault> {
    let logout = daemon_call::private::<rpc::Logout>(&LogoutParams { provider: options.provider.clone() })?;
    if options.json { output::print_json(&logout) } else { output::print(&report::logout(&logout)) }
}

fn tell_status(options: &AuthStatusOptions) -> Result<Exit, Fault> {
    let params = AuthStatusParams { provider: options.provider.clone() };
    let status = daemon_call::private::<rpc::GetAuthStatus>(&params)?;
    let printed =
        if options.json { output::print_json(&status)? } else { output::print(&report::status(&status))? };
    let usable = status.providers.iter().any(|provider| provider.usable);
    Ok(if printed == Exit::Answered && !usable { Exit::Failed } else { printed })
}

/// Reads a key: one typed line when stdin is a terminal, else all of stdin. White space around it is left out.
///
/// # Errors
/// When there is no key, it cannot be read, or a signal comes first.
fn ask_for_key(provider: &str) -> Result<Secret, Fault> {
    let text = if io::stdin().is_terminal() { typed(provider)? } else { piped()? };
    let text = text.ok_or_else(|| Fault::usage("agentctl: the key is not text"))?;
    match text.trim() {
        "" => Err(Fault::usage(format!(
            "agentctl: no key was given, so nothing was stored. Type it when asked, or pipe it in: agentctl login {} < FILE",
            one_line(provider)
        ))),
        key => Ok(Secret::new(key)),
    }
}

fn broken(error: io::Error) -> Fault {
    Fault::new(Exit::Failed, format!("agentctl: cannot read the key: {error}"))
}

fn piped() -> Result<Option<String>, Fault> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_KEY_BYTES + 1).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() as u64 > MAX_KEY_BYTES {
        return Err(Fault::usage("agentctl: what was piped in is much too long for a key"));
    }
    Ok(String::from_utf8(bytes).ok())
}

fn typed(provider: &str) -> Result<Option<String>, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let line = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        let silence = EchoOff::start().map_err(broken)?;
        write!(exit::stderr(), "Key for {} (it is not shown): ", one_line(provider)).map_err(broken)?;
        let reading = tokio::task::spawn_blocking(|| {
            let mut line = Vec::new();
            io::stdin().lock().take(MAX_KEY_BYTES).read_until(b'\n', &mut line).map(|_| line)
        });
        let line = tokio::select! {
            exit = signals.next() => Err(Fault::new(exit, "")),
            read = reading => read.map_err(io::Error::other).and_then(|read| read).map_err(broken),
        };
        drop(silence);
        // The line break was not echoed either. A closed stderr shows nothing anyway.
        let _ = writeln!(exit::stderr());
        line
    });
    // The reading thread may block forever.
    runtime.shutdown_background();
    Ok(String::from_utf8(line?).ok())
}

/// A terminal without echo, until this is dropped.
struct EchoOff(Termios);

impl EchoOff {
    fn start() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        // Input typed ahead was echoed, so it is not the secret: it is discarded.
        tcsetattr(stdin.as_fd(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // Fails only when the terminal is gone.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}

/// The lines of stdin that are not empty, read on a thread that may block forever.
pub(super) fn pasted_lines() -> mpsc::Receiver<Secret> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = (&mut stdin).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            if !read.is_ok_and(|read| read > 0) {
                return;
            }
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if !line.is_empty() && sender.blocking_send(Secret::new(line)).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_pairs() {
        let (name, value) = variable("A=b=c").unwrap();
        assert_eq!((name.as_str(), value.expose()), ("A", "b=c"));
        for pair in ["A", "=x", ""] {
            assert_eq!(variable(pair).unwrap_err().exit, Exit::Usage, "{pair}");
        }
    }
}
