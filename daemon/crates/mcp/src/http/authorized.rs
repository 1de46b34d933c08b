//! Requests with the tokens of a server's authorization.

use agentd_http::{Secret, deepest_cause};
use reqwest::{
    RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, HeaderValue},
};

use super::Connection;
use crate::{
    message::Outgoing,
    oauth::{AfterRefusal, Challenge, RequestCourse},
    peer::RequestError,
};

impl Connection {
    /// Sends a request with all headers and its token, and again while another token is worth it: a request that was refused did not run.
    /// `message` is what is sent with it.
    pub(super) async fn send(
        &self,
        request: impl Fn() -> RequestBuilder + Send,
        message: Option<&Outgoing>,
    ) -> Result<Response, RequestError> {
        let failed = |error: reqwest::Error| RequestError::Http(deepest_cause(&error));
        let Some(authorization) = &self.endpoint.authorization else {
            return self.headed(request(), message).send().await.map_err(failed);
        };
        let mut course = RequestCourse::default();
        loop {
            let token = authorization.token().await.map_err(RequestError::Unauthorized)?;
            let mut headed = self.headed(request(), message);
            if let Some(token) = &token {
                let value = bearer(token);
                let value =
                    value.ok_or_else(|| RequestError::Unauthorized("its token cannot be sent".to_owned()))?;
                headed = headed.header(AUTHORIZATION, value);
            }
            let response = headed.send().await.map_err(failed)?;
            let status = response.status();
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                authorization.accepted();
                return Ok(response);
            }
            let challenge = Challenge::of(response.headers());
            match authorization.refused(&mut course, status, challenge, token.as_ref()).await {
                AfterRefusal::Repeat => {}
                AfterRefusal::SignIn(text) | AfterRefusal::Fail(text) => {
                    return Err(RequestError::Unauthorized(text));
                }
                AfterRefusal::Other => return Ok(response),
            }
        }
    }

    /// A request with all headers and the token of the requests before, for a connection that ends: no new one is worth the time.
    pub(super) fn with_known_token(&self, request: RequestBuilder) -> RequestBuilder {
        let headed = self.headed(request, None);
        let token =
            self.endpoint.authorization.as_ref().and_then(|authorization| authorization.known_token());
        token
            .and_then(|token| bearer(&token))
            .into_iter()
            .fold(headed, |headed, value| headed.header(AUTHORIZATION, value))
    }
}

/// The header for a token; `None` for one that no header can hold.
fn bearer(token: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}
