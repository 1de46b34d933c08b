//! A login by a code that is typed into a browser anywhere (RFC 8628).

use std::time::Duration;

use agentd_http::HttpClients;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::{
    LoginError,
    endpoint::{EndpointError, EndpointRequest, RequestKind, address, ask, number, shown, text},
};
use crate::Secret;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The default poll interval, and the time that `slow_down` adds (RFC 8628, 3.2 and 3.5).
const USUAL_INTERVAL: Duration = Duration::from_secs(5);

/// The bounds of what servers can ask for.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The longest that a login can take, whatever the server says.
const MAX_LIFE: Duration = Duration::from_secs(30 * 60);

/// The number of polls in a row that may get no answer.
const MAX_SILENCE: u32 = 5;

/// The client and the endpoint of a device login.
pub(super) struct DeviceClient<'a> {
    pub(super) http: &'a HttpClients,
    pub(super) token_url: &'a str,
    pub(super) client_id: &'a str,
    /// More fields of requests to `token_url`.
    pub(super) fields: &'a [(&'a str, &'a str)],
    pub(super) format: agentd_protocol::oauth_setting::TokenFormat,
}

/// The code for the user, and the one to poll with.
pub(super) struct DeviceCode {
    pub(super) url: String,
    pub(super) user_code: String,
    code: Secret,
    pub(super) life: Duration,
    interval: Duration,
}

/// Asks for a code.
///
/// # Errors
/// When there is none, or it cannot be shown. Cancel safety: nothing is left.
pub(super) async fn begin(
    client: &DeviceClient<'_>,
    device_url: &str,
    scopes: &str,
) -> Result<DeviceCode, LoginError> {
    let mut fields = vec![("client_id", client.client_id)];
    if !scopes.is_empty() {
        fields.push(("scope", scopes));
    }
    let what = RequestKind::Post(client.format, &fields);
    let answer =
        ask(client.http, EndpointRequest { url: device_url, what, bearer: None, headers: &[] }).await?;
    let url = text(&answer, "verification_uri_complete")
        .or_else(|| text(&answer, "verification_uri"))
        .or_else(|| text(&answer, "verification_url"));
    let (Some(code), Some(user_code), Some(url)) =
        (text(&answer, "device_code"), text(&answer, "user_code"), url)
    else {
        return Err(LoginError::Incomplete("a device code, a code for the user and an address"));
    };
    // The user's browser opens this: it must be an address, and nothing else that a browser would start.
    let url = address(&url).map_err(|_| LoginError::Incomplete("an address that can be opened"))?;
    let seconds = |name: &str| {
        let given = answer.get(name).and_then(number).filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
        given.map(Duration::from_secs_f64)
    };
    Ok(DeviceCode {
        url: url.into(),
        user_code: shown(&user_code, &[]),
        code: Secret::new(code),
        life: seconds("expires_in").unwrap_or(MAX_LIFE).min(MAX_LIFE),
        interval: seconds("interval").unwrap_or(USUAL_INTERVAL).clamp(INTERVALS.0, INTERVALS.1),
    })
}

/// Polls until the user has typed the code.
///
/// # Errors
/// When the user refuses, the code expires, or the server fails. Cancel safety: nothing is left.
pub(super) async fn wait(
    client: &DeviceClient<'_>,
    device: &DeviceCode,
) -> Result<Map<String, Value>, LoginError> {
    let end = Instant::now() + device.life;
    let (mut interval, mut silent) = (device.interval, 0);
    let mut fields =
        vec![("grant_type", GRANT), ("device_code", device.code.expose()), ("client_id", client.client_id)];
    fields.extend(client.fields);
    loop {
        let next = Instant::now() + interval;
        if next >= end {
            sleep_until(end).await;
            return Err(LoginError::Expired);
        }
        sleep_until(next).await;
        let what = RequestKind::Post(client.format, &fields);
        let asked =
            ask(client.http, EndpointRequest { url: client.token_url, what, bearer: None, headers: &[] })
                .await;
        let error = match asked {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match error.name() {
            Some("authorization_pending") => silent = 0,
            Some("slow_down") => {
                silent = 0;
                interval = (interval + USUAL_INTERVAL).min(INTERVALS.1);
            }
            Some("access_denied") => return Err(LoginError::Denied("access_denied".into())),
            Some("expired_token") => return Err(LoginError::Expired),
            _ if error.may_pass() && silent < MAX_SILENCE => {
                silent += 1;
                if matches!(error, EndpointError::Unreachable { .. }) {
                    // RFC 8628, 3.5: a client that gets no answer polls less often.
                    interval = (interval * 2).min(INTERVALS.1);
                }
            }
            _ => return Err(error.into()),
        }
    }
}
