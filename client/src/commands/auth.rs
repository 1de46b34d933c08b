//! `agentctl login`, `logout` and `auth status`: keys of providers.

mod account;
mod key;
mod report;

use std::collections::BTreeMap;

use agentd_protocol::{
    credentials::{AuthStatusParams, LoginParams, LogoutParams},
    secret::Secret,
};

use super::one_call;
use crate::{
    cli::{AuthStatusOptions, LoginOptions, LogoutOptions},
    exit::{Exit, Fault},
    rpc,
};

/// Asks for a key and has agentd store it.
pub(crate) fn login(options: LoginOptions) -> Exit {
    one_call::conclude(log_in(options))
}

/// Has agentd take a key back.
pub(crate) fn logout(options: &LogoutOptions) -> Exit {
    one_call::conclude(log_out(options))
}

/// Tells where keys come from.
pub(crate) fn status(options: &AuthStatusOptions) -> Exit {
    one_call::conclude(tell_status(options))
}

fn log_in(options: LoginOptions) -> Result<Exit, Fault> {
    if !options.key.is_empty() {
        return Err(Fault::usage(format!(
            "agentctl: keys are not taken from the command line, where the shell's history and other users see them. Run \
             `agentctl login {provider}` and type the key, or pipe it in:\n  agentctl login {provider} < FILE",
            provider = options.provider
        )));
    }
    if options.oauth || options.device || options.no_browser {
        return account::log_in(&options);
    }
    let env = options.env.iter().map(|pair| variable(pair)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let key = key::ask(&options.provider)?;
    let params = LoginParams { provider: options.provider, key, env, force: options.force.then_some(true) };
    let login = one_call::call::<rpc::Login>(&params)?;
    if options.json { one_call::print_json(&login) } else { one_call::print(&report::login(&login)) }
}

/// `NAME=VALUE`. The value may be a secret too, and is not repeated.
fn variable(pair: &str) -> Result<(String, Secret), Fault> {
    match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Secret::new(value))),
        _ => Err(Fault::usage("agentctl: --env takes NAME=VALUE, such as --env CLOUDFLARE_ACCOUNT_ID=0123")),
    }
}

fn log_out(options: &LogoutOptions) -> Result<Exit, Fault> {
    let logout = one_call::call::<rpc::Logout>(&LogoutParams { provider: options.provider.clone() })?;
    if options.json { one_call::print_json(&logout) } else { one_call::print(&report::logout(&logout)) }
}

fn tell_status(options: &AuthStatusOptions) -> Result<Exit, Fault> {
    let params = AuthStatusParams { provider: options.provider.clone() };
    let status = one_call::call::<rpc::GetAuthStatus>(&params)?;
    let printed = if options.json {
        one_call::print_json(&status)?
    } else {
        one_call::print(&report::status(&status))?
    };
    let usable = status.providers.iter().any(|provider| provider.usable);
    Ok(if printed == Exit::Answered && !usable { Exit::Failed } else { printed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_pairs() {
        let (name, value) = variable("A=b=c").unwrap();
        assert_eq!((name.as_str(), value.expose()), ("A", "b=c"));
        for pair in ["A", "=x", ""] {
            assert_eq!(variable(pair).unwrap_err().exit, Exit::Usage, "{pair}");
        }
    }
}
