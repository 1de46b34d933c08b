//! Requests with the tokens of a server's authorization.

use agentd_http::deepest_cause;
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
                let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
                let mut value =
                    value.map_err(|_| RequestError::Unauthorized("its token cannot be sent".to_owned()))?;
                value.set_sensitive(true);
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
}
