//! What follows when a server has refused a request.

use std::sync::Arc;

use agentd_auth::{Auth, Secret};
use reqwest::StatusCode;

use super::{
    AfterRefusal, Authorization, MAX_REPEATS, NoLoginToken, RequestCourse, TokenSource, login_token,
};
use crate::{
    config::Grant,
    oauth::{
        challenge::Challenge,
        scopes::{holds, union},
        store::StoredSignIn,
    },
};

impl Authorization {
    /// Says what follows when the server has refused a request that carried the token `sent`.
    pub(crate) async fn refused(
        self: &Arc<Self>,
        course: &mut RequestCourse,
        status: StatusCode,
        challenge: Challenge,
        sent: Option<&Secret>,
    ) -> AfterRefusal {
        let is_for_scopes = status == StatusCode::FORBIDDEN && challenge.wants_more_scopes();
        if status != StatusCode::UNAUTHORIZED && !is_for_scopes {
            return AfterRefusal::Other;
        }
        if course.repeats >= MAX_REPEATS {
            return self.in_vain();
        }
        let follows = match &self.parts.source {
            TokenSource::Login(provider, auth) => {
                self.after_refused_login(course, (provider, auth.as_ref()), is_for_scopes, sent).await
            }
            TokenSource::OAuth(config) if config.grant != Grant::AuthorizationCode => {
                self.after_refused_machine(course, challenge, is_for_scopes, sent).await
            }
            TokenSource::OAuth(_) if is_for_scopes => self.after_missing_scope(challenge, sent).await,
            TokenSource::OAuth(_) => self.after_refused_token(course, challenge, sent).await,
        };
        if follows == AfterRefusal::Repeat {
            course.repeats += 1;
        }
        follows
    }

    /// The server refuses what its authorization server has just given.
    fn in_vain(&self) -> AfterRefusal {
        let name = &self.parts.name;
        AfterRefusal::Fail(format!(
            "MCP server \"{name}\" refuses the token that its authorization server has just given"
        ))
    }

    async fn after_refused_login(
        &self,
        course: &mut RequestCourse,
        (provider, auth): (&str, Option<&Auth>),
        is_for_scopes: bool,
        sent: Option<&Secret>,
    ) -> AfterRefusal {
        if is_for_scopes || std::mem::replace(&mut course.has_renewed, true) {
            let name = &self.parts.name;
            return AfterRefusal::Fail(format!(
                "MCP server \"{name}\" refuses the token of the login with {provider}"
            ));
        }
        match login_token(provider, auth, sent).await {
            Ok(token) if Some(&token) != sent => AfterRefusal::Repeat,
            Ok(_) => self.need_sign_in(),
            Err(problem) if problem.may_pass => AfterRefusal::Fail(self.without_login(&problem)),
            Err(problem) => AfterRefusal::SignIn(self.without_login(&problem)),
        }
    }

    async fn after_refused_machine(
        self: &Arc<Self>,
        course: &mut RequestCourse,
        challenge: Challenge,
        is_for_scopes: bool,
        sent: Option<&Secret>,
    ) -> AfterRefusal {
        let current = self.lock().machine.clone();
        // Another request may have had a new one meanwhile.
        if let (Some(current), Some(sent)) = (&current, sent)
            && current.access != *sent
        {
            return AfterRefusal::Repeat;
        }
        let before = current.and_then(|tokens| tokens.scope);
        let wanted = challenge.scope.clone();
        let is_in_vain = is_for_scopes
            && holds(before.as_deref().unwrap_or_default(), wanted.as_deref().unwrap_or_default());
        if is_in_vain || std::mem::replace(&mut course.has_renewed, true) {
            return self.in_vain();
        }
        let scope = if is_for_scopes {
            Some(union(before.as_deref().unwrap_or_default(), wanted.as_deref().unwrap_or_default()))
        } else {
            before
        };
        self.lock().challenge = Some(challenge);
        let refused = sent.cloned().unwrap_or_else(|| Secret::new(""));
        match self.make_machine_token(&refused, scope).await {
            Ok(_) => AfterRefusal::Repeat,
            Err(error) => AfterRefusal::Fail(self.fails(&error)),
        }
    }

    async fn after_refused_token(
        self: &Arc<Self>,
        course: &mut RequestCourse,
        challenge: Challenge,
        sent: Option<&Secret>,
    ) -> AfterRefusal {
        self.lock().challenge = Some(challenge);
        let tokens = match self.load().await {
            Ok(tokens) => tokens,
            Err(error) => return AfterRefusal::Fail(self.fails(&error)),
        };
        let Some(tokens) = tokens else { return self.need_sign_in() };
        // The user has signed in elsewhere, or another process has renewed.
        if Some(&tokens.access) != sent && !tokens.is_over() {
            return AfterRefusal::Repeat;
        }
        if std::mem::replace(&mut course.has_renewed, true) {
            return self.need_sign_in();
        }
        match self.renew(tokens.access).await {
            Ok(_) => AfterRefusal::Repeat,
            Err(error) if error.may_pass() => AfterRefusal::Fail(self.fails(&error)),
            Err(_) => self.need_sign_in(),
        }
    }

    async fn after_missing_scope(
        self: &Arc<Self>,
        challenge: Challenge,
        sent: Option<&Secret>,
    ) -> AfterRefusal {
        let tokens = match self.load().await {
            Ok(tokens) => tokens,
            Err(error) => return AfterRefusal::Fail(self.fails(&error)),
        };
        let current = tokens.as_ref().map(|tokens| &tokens.access);
        if current.is_some() && current != sent {
            return AfterRefusal::Repeat;
        }
        let before = tokens.and_then(|tokens| tokens.scope).unwrap_or_default();
        let wanted = challenge.scope.as_deref().unwrap_or_default();
        let name = &self.parts.name;
        // The authorization server has given what it gives.
        if holds(&before, wanted) {
            return AfterRefusal::Fail(format!(
                "MCP server \"{name}\" refuses the request for lack of scopes, which the sign-in had asked for already ({wanted})"
            ));
        }
        let all = union(&before, wanted);
        let (store, key) = (self.parts.store.clone(), self.key.clone());
        let noting = tokio::task::spawn_blocking(move || {
            store.update(&key, |stored| Some(StoredSignIn { wanted_scope: Some(all), ..stored? }))
        });
        if let Ok(Err(error)) = noting.await {
            return AfterRefusal::Fail(self.fails(&error));
        }
        AfterRefusal::SignIn(format!(
            "MCP server \"{name}\" requires sign-in with further scopes ({wanted}): run agentctl mcp login {name}"
        ))
    }

    /// Notes that the user must sign in.
    fn need_sign_in(&self) -> AfterRefusal {
        AfterRefusal::SignIn(self.note_sign_in(None))
    }

    /// Notes that the user must sign in, and why: the text for requests.
    fn note_sign_in(&self, why: Option<&str>) -> String {
        let name = &self.parts.name;
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let text = match &self.parts.source {
            TokenSource::Login(provider, _) => {
                format!("MCP server \"{name}\" requires sign-in: run agentctl login {provider}{why}")
            }
            TokenSource::OAuth(_) => {
                format!("MCP server \"{name}\" requires sign-in: run agentctl mcp login {name}{why}")
            }
        };
        self.lock().sign_in = Some(text.clone());
        text
    }

    /// What a request says for which there is no token of a login. Where only the user can help, that is noted.
    pub(super) fn without_login(&self, problem: &NoLoginToken) -> String {
        if problem.may_pass {
            return self.describe(&problem.text);
        }
        self.note_sign_in(Some(&problem.text))
    }
}
