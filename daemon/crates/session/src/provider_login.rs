//! Logins with providers of extensions: the way from the extension to its user, and to the file of logins.

use std::sync::Arc;

use agentd_auth::{FinishedLogin, LoginError, OutsideLogin, StartError, register_secret};
use agentd_extensions::{LoginAsk, LoginCall, LoginOption, SessionExtensions};
use agentd_protocol::{
    credentials::{LoginStarted, LoginUpdate},
    terminal_text::visible,
};
use serde_json::{Map, Value};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    context::SessionContext,
    extensions::{ExtensionRequest, modify_models},
    login_request::{LogIn, LogInAnswer},
    ui::{Asker, Dialog, DialogAnswer, Ui},
};

/// How often an empty answer is asked for again that must not be empty.
const EMPTY_ANSWERS: usize = 3;

/// What a login works with.
pub(crate) struct LoginSurroundings {
    pub(crate) context: Arc<SessionContext>,
    pub(crate) extensions: SessionExtensions,
    pub(crate) ui: Ui,
    pub(crate) requests: mpsc::UnboundedSender<ExtensionRequest>,
    /// Fires when the session is aborted, or ends.
    pub(crate) aborted: CancellationToken,
}

impl LogIn {
    /// Logs in, stores the login, and tells the end to who waits for it.
    pub(crate) async fn run(self, with: LoginSurroundings) {
        let Self { provider, force, answer } = self;
        let auth = &with.context.auth;
        let begun = match auth.has_place_for_login(&provider, force).await {
            Ok(()) => auth.services().logins.begin_outside(&provider).map_err(StartError::from),
            Err(error) => Err(error.into()),
        };
        let login = match begun {
            Ok(login) => login,
            Err(error) => {
                // The client may have left.
                let _ = answer.send(LogInAnswer::Failed(Box::new(error)));
                return;
            }
        };
        let mut teller = Teller::new(&login, &provider, answer, with.requests.clone());
        let outcome = tokio::select! {
            biased;
            () = login.given_up() => Err(LoginError::Cancelled),
            () = with.aborted.cancelled() => Err(LoginError::Outside("the login was aborted".to_owned())),
            outcome = finished(&with, &provider, force, &mut teller) => outcome,
        };
        login.end(outcome);
        // Where nothing was told before, the client asks now.
        teller.begin(LoginUpdate::default());
    }
}

/// The login, stored, with its models on offer.
async fn finished(
    with: &LoginSurroundings,
    provider: &str,
    force: bool,
    teller: &mut Teller,
) -> Result<FinishedLogin, LoginError> {
    let entry = asked(with, provider, teller).await.map_err(|error| {
        // It becomes a part of a sentence.
        LoginError::Outside(error.trim_end_matches('.').to_owned())
    })?;
    let context = &with.context;
    let finished = context.auth.store_login(provider, entry, force).await?;
    modify_models(&with.extensions, &context.auth, context.models.base()).await;
    let (counted, count) = oneshot::channel();
    // Without the actor there are no models.
    let _ = with.requests.send(ExtensionRequest::LoggedIn(provider.to_owned(), counted));
    Ok(FinishedLogin { models: Some(count.await.unwrap_or_default()), ..finished })
}

/// Runs the login of the extension, and leads what it asks and tells to the user. Open questions end with it.
async fn asked(
    with: &LoginSurroundings,
    provider: &str,
    teller: &mut Teller,
) -> Result<Map<String, Value>, String> {
    let (sender, mut calls) = mpsc::unbounded_channel();
    let logins = with.extensions.logins();
    let mut logging_in = std::pin::pin!(logins.log_in(provider, sender));
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    let mut questions = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(call) = calls.recv() => {
                if let Some(question) = teller.take(call) {
                    let (ui, over) = (with.ui.clone(), over.clone());
                    questions.spawn(async move { question.ask(&ui, &over).await });
                }
            }
            Some(_) = questions.join_next() => {}
            ended = &mut logging_in => break ended,
        }
    }
}

/// A question of a login.
struct Question(LoginCall);

impl Question {
    /// Asks the user, and passes the answer on. When `over` fires, the question is withdrawn.
    async fn ask(self, ui: &Ui, over: &CancellationToken) {
        let Self(call) = self;
        let answered = match &call.ask {
            LoginAsk::Prompt { message, placeholder, allow_empty } => {
                let placeholder = placeholder.as_deref().map(|text| visible(text).into_owned());
                let mut answer = None;
                for _ in 0..EMPTY_ANSWERS {
                    let dialog = Dialog::input(visible(message), placeholder.clone());
                    answer = value(ui.ask(Asker::Extension, dialog, over).await);
                    if *allow_empty || answer.as_deref() != Some("") {
                        break;
                    }
                }
                answer.filter(|answer| *allow_empty || !answer.is_empty()).map(Some)
            }
            LoginAsk::Select { message, options } => {
                let labels = options.iter().map(|LoginOption { label, .. }| visible(label).into_owned());
                let labels: Vec<String> = labels.collect();
                let dialog = Dialog::select(visible(message), labels.clone());
                let answer = value(ui.ask(Asker::Extension, dialog, over).await);
                let chosen = answer.and_then(|answer| labels.iter().position(|label| *label == answer));
                let chosen = chosen.and_then(|at| options.get(at)).map(|option| option.id.clone());
                // Nothing is an answer here.
                return call.answer(chosen);
            }
            LoginAsk::ManualCode => {
                let title = "Paste the code, or the address that the browser ended at";
                let answer = value(ui.ask(Asker::Extension, Dialog::input(title, None), over).await);
                if answer.is_none() && !ui.is_there(Asker::Extension) {
                    // The browser may still come back.
                    over.cancelled().await;
                }
                answer.map(Some)
            }
            LoginAsk::Auth { .. } | LoginAsk::DeviceCode { .. } | LoginAsk::Progress { .. } => Some(None),
        };
        match answered {
            Some(answer) => {
                // It may be a key, a password or a code.
                answer.iter().for_each(|answer| register_secret(answer));
                call.answer(answer);
            }
            None if ui.is_there(Asker::Extension) => call.refuse("Login cancelled"),
            None => call.refuse("Login cancelled: nobody is there to answer"),
        }
    }
}

fn value(answer: DialogAnswer) -> Option<String> {
    match answer {
        DialogAnswer::Value(text) => Some(text),
        DialogAnswer::Confirmed(_) | DialogAnswer::Permission { .. } | DialogAnswer::Nothing => None,
    }
}

/// Tells the client what the login has for the user: first by the answer to its command, then by events.
struct Teller {
    id: String,
    provider: String,
    answer: Option<oneshot::Sender<LogInAnswer>>,
    requests: mpsc::UnboundedSender<ExtensionRequest>,
}

impl Teller {
    fn new(
        login: &OutsideLogin,
        provider: &str,
        answer: oneshot::Sender<LogInAnswer>,
        requests: mpsc::UnboundedSender<ExtensionRequest>,
    ) -> Self {
        Self { id: login.id().to_owned(), provider: provider.to_owned(), answer: Some(answer), requests }
    }

    /// Tells what needs no answer; gives a question back.
    fn take(&mut self, call: LoginCall) -> Option<Question> {
        let update = match &call.ask {
            LoginAsk::Auth { url, instructions } => {
                LoginUpdate { url: Some(url.clone()), instructions: instructions.clone(), ..self.update() }
            }
            LoginAsk::DeviceCode { user_code, verification_uri, .. } => LoginUpdate {
                url: Some(verification_uri.clone()),
                user_code: Some(user_code.clone()),
                ..self.update()
            },
            LoginAsk::Progress { message } => {
                let update = LoginUpdate { message: Some(message.clone()), ..self.update() };
                self.send(update);
                call.answer(None);
                return None;
            }
            LoginAsk::Prompt { .. } | LoginAsk::Select { .. } | LoginAsk::ManualCode => {
                self.begin(LoginUpdate::default());
                return Some(Question(call));
            }
        };
        // Clients open it with programs that would open other things, too.
        if update.url.as_deref().is_some_and(|url| !is_of_web(url)) {
            call.refuse("The address to open is neither http nor https");
            return None;
        }
        if self.answer.is_some() {
            self.begin(update);
        } else {
            self.send(update);
        }
        call.answer(None);
        None
    }

    fn update(&self) -> LoginUpdate {
        LoginUpdate { login_id: self.id.clone(), provider: self.provider.clone(), ..LoginUpdate::default() }
    }

    /// Answers the command, unless it is.
    fn begin(&mut self, with: LoginUpdate) {
        let Some(answer) = self.answer.take() else { return };
        let LoginUpdate { url, instructions, user_code, .. } = with;
        let started = LoginStarted {
            login_id: self.id.clone(),
            provider: self.provider.clone(),
            flow: None,
            url,
            instructions,
            user_code,
            redirect_uri: None,
            expires_in_seconds: None,
        };
        // A client that has left is noticed by who waits for the login.
        let _ = answer.send(LogInAnswer::Started(Box::new(started)));
    }

    fn send(&self, update: LoginUpdate) {
        // Without the actor there are no clients.
        let _ = self.requests.send(ExtensionRequest::LoginUpdate(Box::new(update)));
    }
}

fn is_of_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}
