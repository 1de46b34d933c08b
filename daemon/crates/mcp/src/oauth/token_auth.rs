//! How a client authenticates at a token endpoint. Pure.

/// A method of RFC 8414's `token_endpoint_auth_methods_supported`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenAuthMethod {
    /// The id and secret in the header `Authorization`.
    Basic,
    /// The id and secret among the fields.
    Post,
    /// The id alone.
    None,
}

impl TokenAuthMethod {
    pub(crate) fn of(name: &str) -> Option<Self> {
        [Self::Basic, Self::Post, Self::None].into_iter().find(|method| method.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::None => "none",
        }
    }

    /// The method of a client: the one of its registration if the server takes it, else the best that it can do.
    pub(crate) fn choose(registered: Option<Self>, has_secret: bool, offered: Option<&[String]>) -> Self {
        let is_offered =
            |method: Self| offered.is_none_or(|offered| offered.iter().any(|name| name == method.name()));
        if !has_secret {
            return Self::None;
        }
        let order = registered.into_iter().chain([Self::Basic, Self::Post, Self::None]);
        order.into_iter().find(|method| is_offered(*method)).unwrap_or(Self::Basic)
    }

    /// The method that a new client asks for. agentd can keep no secret from its user, so that none is best.
    pub(crate) fn to_register(offered: Option<&[String]>) -> Self {
        let is_offered =
            |method: &Self| offered.is_none_or(|offered| offered.iter().any(|name| name == method.name()));
        [Self::None, Self::Basic, Self::Post].into_iter().find(is_offered).unwrap_or(Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_chosen_among_those_that_the_server_takes() {
        use TokenAuthMethod::{Basic, None as NoSecret, Post};
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (registered, has_secret, offered, expected) in [
            (None, true, None, Basic),
            (Some(Post), true, None, Post),
            (None, true, Some(list(&["client_secret_post"])), Post),
            (Some(Basic), true, Some(list(&["client_secret_post", "none"])), Post),
            (None, true, Some(list(&["none"])), NoSecret),
            (None, true, Some(list(&["private_key_jwt"])), Basic),
            (Some(Basic), false, None, NoSecret),
        ] {
            let offered = offered.as_deref();
            assert_eq!(TokenAuthMethod::choose(registered, has_secret, offered), expected, "{offered:?}");
        }
        assert_eq!(TokenAuthMethod::to_register(None), NoSecret);
        assert_eq!(TokenAuthMethod::to_register(Some(&list(&["client_secret_post"]))), Post);
        assert_eq!(TokenAuthMethod::of("private_key_jwt"), None);
    }
}
