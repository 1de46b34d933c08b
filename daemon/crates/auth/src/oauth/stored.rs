//! A login as `auth.json` has it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agentd_protocol::oauth_setting::TokenFormat;
use serde_json::{Map, Value};

use crate::Secret;

/// A token that ends sooner is renewed before it is used.
pub(crate) const EARLY: Duration = Duration::from_secs(5 * 60);

/// The time as entries have it: milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// An entry of the type `oauth`. Members that are not here stay in the file and are not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredLogin {
    /// The token that is sent.
    pub access: Option<Secret>,
    /// The refresh token.
    pub refresh: Option<Secret>,
    /// The end of `access`, in milliseconds since 1970; `None` when unknown.
    pub expires: Option<i64>,
    /// The account that the token is for (`accountId`).
    pub account_id: Option<String>,
    /// The host of a company's own installation (`enterpriseUrl`).
    pub enterprise_url: Option<String>,
    /// The models that the account may use, where the provider says so (`availableModelIds`).
    pub available_models: Option<Arc<[String]>>,
    /// The endpoint that renews tokens of this login (`tokenUrl`); an extension of ours, which overrides the configured one.
    pub token_url: Option<String>,
    /// With whose id (`clientId`); as `token_url`.
    pub client_id: Option<String>,
    /// The encoding of the endpoint's fields (`tokenFormat`); an extension like `token_url`.
    pub token_format: Option<TokenFormat>,
}

impl StoredLogin {
    /// Reads an entry.
    ///
    /// # Errors
    /// Says what is wrong, and quotes nothing.
    pub(crate) fn read(entry: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| match entry.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => Err(format!("its \"{name}\" is no string")),
        };
        let expires = match entry.get("expires") {
            None | Some(Value::Null) => None,
            Some(Value::Number(number)) => {
                let float = || number.as_f64().map(|float| float as i64);
                Some(number.as_i64().or_else(float).unwrap_or(i64::MAX))
            }
            Some(_) => return Err("its \"expires\" is no number".into()),
        };
        let available_models = match entry.get("availableModelIds") {
            Some(Value::Array(ids)) => {
                Some(ids.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => None,
        };
        let token_format = match text("tokenFormat")?.as_deref() {
            None => None,
            Some("form") => Some(TokenFormat::Form),
            Some("json") => Some(TokenFormat::Json),
            Some(_) => return Err("its \"tokenFormat\" is neither \"form\" nor \"json\"".into()),
        };
        let login = Self {
            access: text("access")?.map(Secret::new),
            refresh: text("refresh")?.map(Secret::new),
            expires,
            account_id: text("accountId")?,
            enterprise_url: text("enterpriseUrl")?,
            available_models,
            token_url: text("tokenUrl")?,
            client_id: text("clientId")?,
            token_format,
        };
        if login.access.is_none() && login.refresh.is_none() {
            return Err("it has neither \"access\" nor \"refresh\"".into());
        }
        Ok(login)
    }

    /// The access token, if it is good for a while and not the one that was refused.
    pub(crate) fn fresh(&self, now_ms: i64, is_refused: impl Fn(&Secret) -> bool) -> Option<&Secret> {
        let early = i64::try_from(EARLY.as_millis()).unwrap_or(0);
        let is_fresh = self.expires.is_none_or(|expires| expires > now_ms.saturating_add(early));
        self.access.as_ref().filter(|access| is_fresh && !is_refused(access))
    }

    /// The access token, if it has not ended and is not the one that was refused.
    pub(crate) fn living(&self, now_ms: i64, is_refused: impl Fn(&Secret) -> bool) -> Option<&Secret> {
        let lives = self.expires.is_none_or(|expires| expires > now_ms);
        self.access.as_ref().filter(|access| lives && !is_refused(access))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entry: Value) -> Result<StoredLogin, String> {
        StoredLogin::read(entry.as_object().unwrap())
    }

    #[test]
    fn entries_of_other_programs_are_read() {
        let login = read(json!({"type": "oauth", "access": "hush-a", "refresh": "hush-r", "expires": 5.0,
            "accountId": "acc", "enterpriseUrl": "e.example", "availableModelIds": ["a", 1, "b"], "x": {}}))
        .unwrap();
        assert!(!format!("{login:?}").contains("hush"), "{login:?}");
        let expected = StoredLogin {
            access: Some(Secret::new("hush-a")),
            refresh: Some(Secret::new("hush-r")),
            expires: Some(5),
            account_id: Some("acc".into()),
            enterprise_url: Some("e.example".into()),
            available_models: Some(["a".to_owned(), "b".to_owned()].into()),
            ..StoredLogin::default()
        };
        assert_eq!(login, expected);
        assert_eq!(read(json!({"access": "a", "expires": 1e300})).unwrap().expires, Some(i64::MAX));
    }

    #[test]
    fn what_is_wrong_is_named_and_not_quoted() {
        for (entry, expected) in [
            (json!({}), "it has neither \"access\" nor \"refresh\""),
            (json!({"access": "", "refresh": null}), "it has neither \"access\" nor \"refresh\""),
            (json!({"access": ["hush"]}), "its \"access\" is no string"),
            (json!({"access": "a", "expires": "hush"}), "its \"expires\" is no number"),
            (
                json!({"access": "a", "tokenFormat": "hush"}),
                "its \"tokenFormat\" is neither \"form\" nor \"json\"",
            ),
        ] {
            assert_eq!(read(entry).unwrap_err(), expected);
        }
    }

    #[test]
    fn tokens_end() {
        let at = |expires| StoredLogin { access: Some(Secret::new("a")), expires, ..StoredLogin::default() };
        let early = i64::try_from(EARLY.as_millis()).unwrap();
        let check = |expires, fresh: bool, living: bool| {
            let login = at(expires);
            let found = (login.fresh(1000, |_| false).is_some(), login.living(1000, |_| false).is_some());
            assert_eq!(found, (fresh, living), "{expires:?}");
            assert!(login.fresh(1000, |_| true).is_none() && login.living(1000, |_| true).is_none());
        };
        check(None, true, true);
        check(Some(1000), false, false);
        check(Some(1001), false, true);
        check(Some(1000 + early), false, true);
        check(Some(1001 + early), true, true);
        check(Some(i64::MAX), true, true);
    }
}
