//! `agentctl login` with an account: in a browser, by a code, or as an extension asks.

use std::io::{self, IsTerminal};

use agentd_protocol::{
    credentials::{AuthStatusParams, Login, LoginFinishParams, LoginStartParams, LoginStarted, LoginUpdate},
    event::Event,
    oauth_setting::LoginFlow,
    secret::Secret,
};
use tokio::{sync::mpsc, time::Instant};

use super::report;
use crate::{
    cli::LoginOptions,
    commands::{
        browser::{has_screen, open},
        daemon_call,
        dialogs::{PendingDialogs, TypedOutcome},
        typed_lines::{TypedLine, typed_lines},
    },
    exit::{Exit, Fault, print_stderr},
    output,
    private_daemon::StartOptions,
    render::one_line,
    rpc::{self, CallError, Client, EventLine},
};

/// Whose logins are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Those of agentd, then those of extensions: what is wrong with an extension is in nobody's way.
    AgentdFirst,
    /// Those of agentd and of the extensions of this folder.
    Extensions,
}

/// The end of a first try.
enum Tried {
    LoggedIn(Login),
    /// agentd alone has no such login.
    Elsewhere,
}

/// Whether agentd itself knows no such provider.
///
/// # Errors
/// When agentd cannot be asked.
pub(super) fn is_unknown(provider: &str) -> Result<bool, Fault> {
    let params = AuthStatusParams { provider: Some(provider.to_owned()) };
    let start = StartOptions { args: without_extensions(), cwd: None };
    daemon_call::with_private_quietly(start, async |client: &Client| {
        match client.call::<rpc::GetAuthStatus>(&params).await {
            Ok(_) => Ok(false),
            Err(CallError::Refused { code: Some(code), .. }) if code == "not_found" => Ok(true),
            // The next call says what is wrong.
            Err(CallError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    })
}

/// Logs in. Ctrl-C ends agentd, and with it the login that has begun.
///
/// # Errors
/// When there is no login.
pub(super) fn log_in(options: &LoginOptions, place: Place) -> Result<Exit, Fault> {
    let params = LoginStartParams {
        provider: options.provider.clone(),
        flow: options.device.then_some(LoginFlow::Device),
        force: options.force.then_some(true),
    };
    let opens = !options.no_browser;
    let mut login = None;
    if place == Place::AgentdFirst {
        let start = StartOptions { args: without_extensions(), cwd: None };
        let tried = daemon_call::with_private_events(start, async |client, events| {
            match client.call::<rpc::LoginStart>(&params).await {
                Ok(started) => {
                    let mut terminal = Terminal::new(opens);
                    terminal.begin(&started);
                    terminal.finish(client, events, started).await.map(Tried::LoggedIn)
                }
                // Extensions may know the provider, or how to log in to it.
                Err(CallError::Refused { code: Some(code), .. })
                    if matches!(code.as_str(), "not_found" | "unsupported") =>
                {
                    Ok(Tried::Elsewhere)
                }
                Err(error) => Err(error),
            }
        })?;
        if let Tried::LoggedIn(done) = tried {
            login = Some(done);
        }
    }
    let login = match login {
        Some(login) => login,
        None => {
            let args = ["--no-session", "--no-mcp"].map(str::to_owned).to_vec();
            let start = StartOptions { args, cwd: None };
            daemon_call::with_private_events(start, async |client, events| {
                let mut terminal = Terminal::new(opens);
                let started = terminal.start(client, events, &params).await?;
                terminal.begin(&started);
                terminal.finish(client, events, started).await
            })?
        }
    };
    if options.json { output::print_json(&login) } else { output::print(&report::login_of_account(&login)) }
}

fn without_extensions() -> Vec<String> {
    ["--no-session", "--no-mcp", "--no-extensions", "--offline"].map(str::to_owned).to_vec()
}

/// The user of a login: instructions and questions on stderr, answers from stdin. Stdout is for the result.
struct Terminal {
    opens: bool,
    dialogs: PendingDialogs,
    /// Read once something is asked.
    lines: Option<mpsc::Receiver<TypedLine>>,
    /// Whether nothing can be typed any more.
    is_over: bool,
}

impl Terminal {
    fn new(opens: bool) -> Self {
        Self { opens, dialogs: PendingDialogs::of("", false), lines: None, is_over: false }
    }

    /// Begins a login, while an extension may ask.
    async fn start(
        &mut self,
        client: &Client,
        events: &mut mpsc::Receiver<EventLine>,
        params: &LoginStartParams,
    ) -> Result<LoginStarted, CallError> {
        let start = client.call::<rpc::LoginStart>(params);
        tokio::pin!(start);
        loop {
            tokio::select! {
                started = &mut start => return started,
                Some(event) = events.recv() => self.event(&event),
            }
        }
    }

    /// Shows what the user does now.
    fn begin(&mut self, started: &LoginStarted) {
        let LoginStarted { provider, url, instructions, user_code, .. } = started;
        let provider = one_line(provider);
        let Some(url) = url else { return };
        let mut text = address(&provider, url, user_code.as_deref(), instructions.as_deref());
        if started.redirect_uri.is_some() && io::stdin().is_terminal() {
            text.push_str(
                "\nIf the browser is on another machine, paste the address that it ends at, or the code that it shows, here.\n",
            );
        }
        match started.expires_in_seconds {
            Some(seconds) => {
                let minutes = seconds.div_ceil(60);
                text.push_str(&format!("\nWaiting for up to {minutes} min (Ctrl-C to give up) ..."));
            }
            None => text.push_str("\nWaiting (Ctrl-C to give up) ..."),
        }
        print_stderr(&text);
        self.visit(url);
    }

    fn visit(&self, url: &str) {
        if self.opens && has_screen() {
            open(url);
        }
    }

    fn event(&mut self, line: &EventLine) {
        let text = match line.event() {
            Some(Event::LoginUpdate(update)) => {
                let LoginUpdate { provider, url, instructions, user_code, message, .. } = update;
                if let Some(message) = message {
                    print_stderr(&one_line(&message));
                }
                let Some(url) = url else { return };
                let text = address(&one_line(&provider), &url, user_code.as_deref(), instructions.as_deref());
                print_stderr(text.trim_end());
                return self.visit(&url);
            }
            Some(Event::ExtensionUiRequest(request)) => self.dialogs.take(request),
            Some(Event::ExtensionError(failure)) => {
                format!("{}: {}", one_line(&failure.extension_path), one_line(&failure.error))
            }
            _ => return,
        };
        show(&text);
    }

    /// Waits for the end of the login; passes on answers and pasted codes.
    async fn finish(
        &mut self,
        client: &Client,
        events: &mut mpsc::Receiver<EventLine>,
        started: LoginStarted,
    ) -> Result<Login, CallError> {
        let params = |code| LoginFinishParams { login_id: started.login_id.clone(), code };
        let waiting = params(None);
        let finish = client.call::<rpc::LoginFinish>(&waiting);
        tokio::pin!(finish);
        let takes_code = started.redirect_uri.is_some() && io::stdin().is_terminal();
        loop {
            let is_asking = self.dialogs.is_asking();
            if is_asking && self.is_over {
                self.answer(client, None).await?;
                continue;
            }
            if self.lines.is_none() && (takes_code || is_asking) {
                self.lines = Some(typed_lines());
            }
            let line = tokio::select! {
                done = &mut finish => return done,
                Some(event) = events.recv() => {
                    self.event(&event);
                    continue;
                }
                line = next(&mut self.lines), if (takes_code || is_asking) && !self.is_over => line,
            };
            self.is_over = line.is_none();
            if is_asking {
                self.answer(client, line).await?;
                continue;
            }
            let Some(code) = line.map(|line| line.text.trim().to_owned()).filter(|code| !code.is_empty())
            else {
                continue;
            };
            let pasted = params(Some(Secret::new(code)));
            tokio::select! {
                done = &mut finish => return done,
                answered = client.call::<rpc::LoginFinish>(&pasted) => match answered {
                    // The error says what is wrong with the pasted text; the login goes on.
                    Err(CallError::Refused { error, .. }) => print_stderr(&one_line(&error)),
                    answered => return answered,
                }
            }
        }
    }

    /// Answers the question on the screen; the end of the input is a no to all.
    async fn answer(&mut self, client: &Client, line: Option<TypedLine>) -> Result<(), CallError> {
        let Some(mut line) = line else {
            let (noes, text) = self.dialogs.input_ended();
            show(text);
            for no in noes {
                no.send(client).await?;
            }
            return Ok(());
        };
        if !io::stdin().is_terminal() {
            // Nobody has typed it too early.
            line.at = Instant::now().into_std();
        }
        match self.dialogs.typed(&line) {
            TypedOutcome::Answer(answer, next) => {
                answer.send(client).await?;
                show(&next);
            }
            TypedOutcome::More => {}
            TypedOutcome::Unclear(how) => show(&how),
        }
        Ok(())
    }
}

/// The next line; `None` once there is no more.
async fn next(lines: &mut Option<mpsc::Receiver<TypedLine>>) -> Option<TypedLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}

fn address(provider: &str, url: &str, code: Option<&str>, instructions: Option<&str>) -> String {
    let url = one_line(url);
    let mut text = match code {
        Some(code) => {
            let code = one_line(code);
            format!("To log in to {provider}, open this address and enter the code {code}:\n\n  {url}\n")
        }
        None => format!("To log in to {provider}, open this address in a browser:\n\n  {url}\n"),
    };
    if let Some(instructions) = instructions {
        text.push_str(&format!("\n{}\n", one_line(instructions)));
    }
    text
}

fn show(text: &str) {
    let text = text.trim_end();
    if !text.is_empty() {
        print_stderr(text);
    }
}
