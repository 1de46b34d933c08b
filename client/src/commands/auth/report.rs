//! The texts about keys. agentd never sends a key.

use agentd_protocol::credentials::{AuthStatus, KeyOrigin, Login, LoginState, Logout, ProviderAuth};

use crate::render::{one_line, shell_word};

/// The text after a key was stored.
pub(super) fn login(login: &Login) -> String {
    let (provider, file) = (one_line(&login.provider), one_line(&login.file));
    let what = if login.replaced { "Replaced the key of" } else { "Stored the key of" };
    format!("{what} {provider} in {file}.\n") + &what_is_next(login)
}

/// The text after a login with an account.
pub(super) fn login_of_account(login: &Login) -> String {
    let (provider, file) = (one_line(&login.provider), one_line(&login.file));
    format!("Logged in to {provider}; the login is stored in {file}.\n") + &what_is_next(login)
}

fn what_is_next(login: &Login) -> String {
    let mut text = String::new();
    for note in &login.notes {
        text.push_str(&format!("{}\n", one_line(note)));
    }
    if login.models > 0 {
        let pattern = shell_word(&format!("{}/*", one_line(&login.provider)));
        text.push_str(&format!("Its models ({}):\n  agentctl models {pattern}\n", login.models));
    }
    text
}

/// The text after a key was removed.
pub(super) fn logout(logout: &Logout) -> String {
    let provider = one_line(&logout.provider);
    let mut text = format!("Removed the entry of {provider} from {}.\n", one_line(&logout.file));
    if let Some(origin) = &logout.still_from {
        text.push_str(&format!("{provider} still has a key: {}.\n", words(origin)));
    }
    text
}

/// A line for each provider.
pub(super) fn status(status: &AuthStatus) -> String {
    let mut text = String::new();
    if let Some(error) = &status.file_error {
        text.push_str(&format!("{}\n", one_line(error)));
    }
    if status.providers.is_empty() {
        text.push_str(
            "No provider has a key.\n`agentctl login PROVIDER` stores one in auth.json; a variable such as \
             ANTHROPIC_API_KEY or OPENAI_API_KEY does as well.\n",
        );
        return text;
    }
    let width = status.providers.iter().map(|provider| one_line(&provider.provider).chars().count()).max();
    for provider in &status.providers {
        let name = one_line(&provider.provider);
        text.push_str(&format!("{name:width$}  {}\n", about(provider), width = width.unwrap_or(0)));
    }
    text
}

fn about(provider: &ProviderAuth) -> String {
    let mut text = match (&provider.source, &provider.problem) {
        (Some(source), None) => words(source),
        (Some(source), Some(problem)) => format!("{}: cannot be used: {}", words(source), one_line(problem)),
        (None, problem) => one_line(problem.as_deref().unwrap_or("no key")),
    };
    if let (Some(login), None) = (&provider.login, &provider.problem) {
        text.push_str(&format!(": {}", state(login)));
    }
    if !provider.shadowed.is_empty() {
        let shadowed: Vec<String> = provider.shadowed.iter().map(words).collect();
        text.push_str(&format!(" (comes before {})", shadowed.join(" and ")));
    }
    text
}

/// The state of a login: how long its token is valid.
fn state(login: &LoginState) -> String {
    let renewed = if login.renewable { "" } else { ", and is not renewed by agentd" };
    match login.expires_in_seconds {
        None => "login".into(),
        Some(seconds) if seconds <= 0 => {
            "login (its token has ended, and is renewed when it is needed)".into()
        }
        Some(seconds) => format!("login (expires in {}{renewed})", span(seconds)),
    }
}

/// A time in the unit that fits.
fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Where a key comes from, in a few words.
pub(crate) fn words(origin: &KeyOrigin) -> String {
    match origin {
        KeyOrigin::Flag => "--api-key".into(),
        KeyOrigin::Stored => "stored in auth.json".into(),
        KeyOrigin::ModelsFile => "\"apiKey\" in models.json".into(),
        KeyOrigin::Variable { name } => format!("{} in the environment", one_line(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, source: Option<KeyOrigin>, problem: Option<&str>) -> ProviderAuth {
        let problem = problem.map(str::to_owned);
        ProviderAuth {
            provider: name.into(),
            usable: problem.is_none(),
            source,
            problem,
            login: None,
            shadowed: Vec::new(),
        }
    }

    #[test]
    fn a_line_for_each_provider() {
        let variable = || KeyOrigin::Variable { name: "OPENAI_API_KEY".into() };
        let mut both = provider("openai", Some(KeyOrigin::Stored), None);
        both.shadowed = vec![variable()];
        let providers = vec![
            provider("anthropic", Some(KeyOrigin::ModelsFile), Some("it is empty")),
            both,
            provider("x", None, Some("no key: do this")),
        ];
        let text = status(&AuthStatus {
            file: "/a/auth.json".into(),
            file_error: Some("broken.".into()),
            providers,
        });
        assert_eq!(
            text,
            "broken.\n\
             anthropic  \"apiKey\" in models.json: cannot be used: it is empty\n\
             openai     stored in auth.json (comes before OPENAI_API_KEY in the environment)\n\
             x          no key: do this\n"
        );
        let none = status(&AuthStatus { file: "/a".into(), file_error: None, providers: Vec::new() });
        assert!(none.starts_with("No provider has a key.\n"), "{none}");
    }

    #[test]
    fn logins_say_how_long_they_last() {
        let text = |expires_in_seconds, renewable| {
            let login = Some(LoginState { expires_in_seconds, renewable });
            about(&ProviderAuth { login, ..provider("p", Some(KeyOrigin::Stored), None) })
        };
        assert_eq!(text(None, false), "stored in auth.json: login");
        assert_eq!(text(Some(90), true), "stored in auth.json: login (expires in 90 s)");
        assert_eq!(text(Some(3599), true), "stored in auth.json: login (expires in 59 min)");
        assert_eq!(text(Some(8000), true), "stored in auth.json: login (expires in 2 h)");
        let kept = "stored in auth.json: login (expires in 3 days, and is not renewed by agentd)";
        assert_eq!(text(Some(300_000), false), kept);
        let ended = "stored in auth.json: login (its token has ended, and is renewed when it is needed)";
        assert_eq!(text(Some(-5), true), ended);
    }

    #[test]
    fn what_happened_and_what_is_next() {
        let mut stored = Login {
            models: 3,
            provider: "openai".into(),
            file: "/a/auth.json".into(),
            replaced: false,
            notes: vec!["Note.".into()],
        };
        assert_eq!(
            login(&stored),
            "Stored the key of openai in /a/auth.json.\nNote.\nIts models (3):\n  agentctl models 'openai/*'\n"
        );
        stored.replaced = true;
        stored.models = 0;
        assert_eq!(login(&stored), "Replaced the key of openai in /a/auth.json.\nNote.\n");
        let still_from = Some(KeyOrigin::Variable { name: "OPENAI_API_KEY".into() });
        let removed = Logout { provider: "openai".into(), file: "/a/auth.json".into(), still_from };
        assert_eq!(
            logout(&removed),
            "Removed the entry of openai from /a/auth.json.\nopenai still has a key: OPENAI_API_KEY in the environment.\n"
        );
    }
}
