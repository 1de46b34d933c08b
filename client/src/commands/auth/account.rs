//! Logging in with an account: agentd does it, and this shows what the user has to do meanwhile.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Read},
    process::{Command, Stdio},
};

use agentd_protocol::{
    credentials::{LoginFinishParams, LoginStartParams, LoginStarted},
    oauth_setting::LoginFlow,
    secret::Secret,
};
use tokio::sync::mpsc;

use super::{one_call, report};
use crate::{
    cli::LoginOptions,
    connect::Start,
    exit::{Exit, Fault, tell},
    render::one_line,
    rpc::{self, CallError, Client},
};

/// The most that is read of a pasted line.
const MAX_LINE_BYTES: u64 = 16 * 1024;

/// Logs in. Ctrl-C ends agentd with what it has begun: nothing is left.
pub(super) fn log_in(options: &LoginOptions) -> Result<Exit, Fault> {
    let params = LoginStartParams {
        provider: options.provider.clone(),
        flow: options.device.then_some(LoginFlow::Device),
        force: options.force.then_some(true),
    };
    let opens = !options.no_browser;
    let start = Start { args: vec!["--no-session".to_owned()], cwd: None };
    let login = one_call::converse(start, async |client: &Client| {
        let started = client.call::<rpc::LoginStart>(&params).await?;
        show(&started, opens);
        wait(client, started).await
    })?;
    if options.json {
        one_call::print_json(&login)
    } else {
        one_call::print(&report::login_of_account(&login))
    }
}

/// Says what is to be done. On stderr: stdout is for what came of it.
fn show(started: &LoginStarted, opens: bool) {
    let (provider, url) = (one_line(&started.provider), one_line(&started.url));
    let minutes = started.expires_in_seconds.div_ceil(60);
    let mut text = match &started.user_code {
        Some(code) => {
            format!(
                "To log in to {provider}, open this address and enter the code {}:\n\n  {url}\n",
                one_line(code)
            )
        }
        None => format!("To log in to {provider}, open this address in a browser:\n\n  {url}\n"),
    };
    if started.redirect_uri.is_some() && io::stdin().is_terminal() {
        text.push_str(
            "\nIf the browser is on another machine, paste the address that it ends at, or the code that it shows, here.\n",
        );
    }
    text.push_str(&format!("\nWaiting for up to {minutes} min (Ctrl-C to give up) ..."));
    tell(&text);
    if opens && has_screen() {
        open(&started.url);
    }
}

/// Whether a browser that is opened here could be seen.
fn has_screen() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens a browser. Where that does not work, the address is on the screen.
fn open(url: &str) {
    // agentd sends no other addresses; a program that opens files must never see one.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut browser) = command.spawn() {
        // It may live as long as the browser does; somebody has to see its end.
        std::thread::spawn(move || browser.wait());
    }
}

/// Waits for the end, and passes on what is pasted meanwhile.
async fn wait(
    client: &Client,
    started: LoginStarted,
) -> Result<agentd_protocol::credentials::Login, CallError> {
    let params = |code| LoginFinishParams { login_id: started.login_id.clone(), code };
    let waiting = params(None);
    let finish = client.call::<rpc::LoginFinish>(&waiting);
    tokio::pin!(finish);
    let takes_code = started.redirect_uri.is_some() && io::stdin().is_terminal();
    let mut lines = if takes_code { pasted_lines() } else { mpsc::channel(1).1 };
    loop {
        let line = tokio::select! {
            done = &mut finish => return done,
            Some(line) = lines.recv() => line,
        };
        let pasted = params(Some(line));
        tokio::select! {
            done = &mut finish => return done,
            answered = client.call::<rpc::LoginFinish>(&pasted) => match answered {
                // It says what is wrong with what was pasted, and the login goes on.
                Err(CallError::Refused { error, .. }) => tell(&one_line(&error)),
                answered => return answered,
            }
        }
    }
}

/// The lines of stdin that are not empty, read on a thread of their own: it may wait there for ever.
fn pasted_lines() -> mpsc::Receiver<Secret> {
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
