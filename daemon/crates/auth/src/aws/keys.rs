//! Keys as the sources hand them out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentd_http::AwsKeys;
use serde_json::Value;

use super::AwsProblem;
use crate::Secret;

/// Keys, and how long they are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) keys: AwsKeys,
    /// `None` for keys that do not expire by themselves.
    pub(super) expires: Option<SystemTime>,
    /// True if getting them again costs nothing and may give others: they were read off the environment or a file.
    pub(super) is_at_hand: bool,
}

impl Found {
    /// Keys that stand somewhere.
    pub(super) fn at_hand(id: &str, secret: Secret, token: Option<Secret>) -> Self {
        let keys = AwsKeys { access_key_id: id.to_owned(), secret_access_key: secret, session_token: token };
        Self { keys, expires: None, is_at_hand: true }
    }

    /// Keys in a JSON object, whose members for the token and the end have many names.
    ///
    /// # Errors
    /// Says what `source` left out, without quoting anything.
    pub(super) fn in_json(value: &Value, source: &str) -> Result<Self, AwsProblem> {
        let text = |names: &[&str]| {
            let member = names.iter().find_map(|name| value.get(*name)?.as_str());
            member.filter(|text| !text.is_empty())
        };
        let missing = |what: &str| AwsProblem::new(format!("The answer of {source} has no {what}."));
        let id = text(&["AccessKeyId", "accessKeyId"]).ok_or_else(|| missing("AccessKeyId"))?;
        let secret =
            text(&["SecretAccessKey", "secretAccessKey"]).ok_or_else(|| missing("SecretAccessKey"))?;
        let token = text(&["SessionToken", "sessionToken", "Token"]);
        let end = ["Expiration", "expiration"].into_iter().find_map(|name| value.get(name));
        let expires = match end {
            None | Some(Value::Null) => None,
            Some(end) => {
                let wrong =
                    || AwsProblem::new(format!("The answer of {source} has an Expiration that is no time."));
                Some(time_of(end).ok_or_else(wrong)?)
            }
        };
        let keys = AwsKeys {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::new(secret),
            session_token: token.map(Secret::new),
        };
        Ok(Self { keys, expires, is_at_hand: false })
    }
}

/// A time: text in the form of RFC 3339, or milliseconds since 1970.
fn time_of(value: &Value) -> Option<SystemTime> {
    match value {
        Value::String(text) => time_in(text),
        value => UNIX_EPOCH.checked_add(Duration::from_millis(value.as_u64()?)),
    }
}

/// A time as text. `UTC` for `Z` is what some versions of AWS's own program wrote.
pub(super) fn time_in(text: &str) -> Option<SystemTime> {
    let text = text.trim().replace("UTC", "Z");
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(SystemTime::from(time))
}

/// A time as text.
pub(super) fn text_of(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
