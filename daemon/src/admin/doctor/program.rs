//! The program itself, and the proxy that its requests go through.

use agentd_config::Environment;
use agentd_protocol::{WIRE_VERSION, doctor::Check};

use super::finding::Name;

const VERSION: Name = Name("version", "agentd");
const PROXY: Name = Name("proxy", "proxy");

pub(super) fn version() -> Check {
    let version = format!("{} (pi wire {WIRE_VERSION})", env!("CARGO_PKG_VERSION"));
    match std::env::current_exe() {
        Ok(path) => VERSION.ok(format!("{version}, {}", path.display())),
        Err(error) => VERSION.warning(
            format!("{version}; where the program is cannot be told: {error}"),
            "Shell commands are started by the program itself: start agentd again.",
        ),
    }
}

/// Which proxy variables are set. Their values can hold passwords.
pub(super) fn proxy(environment: &Environment) -> Check {
    let set = |names: &[&'static str]| {
        names
            .iter()
            .copied()
            .filter(|name| environment.get_os(name).is_some_and(|value| !value.is_empty()))
            .collect::<Vec<_>>()
    };
    let proxies = set(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"]);
    let except = set(&["NO_PROXY", "no_proxy"]);
    // Providers are reached by https.
    let catches = |name: &&str| !name.eq_ignore_ascii_case("http_proxy");
    match (proxies.is_empty(), proxies.iter().any(catches)) {
        (true, _) => PROXY.ok("none is set"),
        (false, true) => {
            let except = if except.is_empty() {
                String::new()
            } else {
                format!(", but for the hosts in {}", except.join(" and "))
            };
            PROXY.ok(format!(
                "{} set: requests to remote providers go through it{except}; servers on this machine are asked directly",
                are(&proxies)
            ))
        }
        (false, false) => {
            PROXY.ok(format!("{} set: only for http, which remote providers do not use", are(&proxies)))
        }
    }
}

fn are(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_named_and_never_shown() {
        let of = |variables: &[(&str, &str)]| proxy(&variables.iter().copied().collect()).detail;
        assert_eq!(of(&[("HTTPS_PROXY", "")]), "none is set");
        let one = of(&[("HTTPS_PROXY", "http://u:hush@proxy"), ("no_proxy", "hush.example")]);
        assert!(one.starts_with("HTTPS_PROXY is set: ") && one.contains("hosts in no_proxy"), "{one}");
        assert!(!one.contains("hush"), "{one}");
        assert!(of(&[("http_proxy", "x")]).starts_with("http_proxy is set: only for http"));
        assert!(
            of(&[("ALL_PROXY", "x"), ("http_proxy", "x")]).starts_with("ALL_PROXY and http_proxy are set")
        );
    }

    #[test]
    fn the_program_is_named() {
        let version = version();
        assert!(
            version.detail.starts_with(env!("CARGO_PKG_VERSION")) && version.detail.contains('/'),
            "{version:?}"
        );
    }
}
