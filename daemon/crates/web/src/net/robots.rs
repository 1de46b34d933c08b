//! `robots.txt`: what a site asks programs to leave alone (RFC 9309).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// The name that a file may name us by.
pub(crate) const AGENT: &str = "agentd";

/// The sites whose file is kept.
const MAX_SITES: usize = 256;

/// Bytes of a file that count.
pub(crate) const MAX_BYTES: usize = 512 << 10;

/// Rules that count.
const MAX_RULES: usize = 2000;

/// The files of sites that were read. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RobotsCache(Arc<Mutex<KnownSites>>);

/// Until when the file of a site counts, and what it says.
type KnownSites = HashMap<String, (SystemTime, Arc<Robots>)>;

impl RobotsCache {
    /// What the file of a site says, while it counts.
    pub(crate) fn find(&self, site: &str) -> Option<Arc<Robots>> {
        let sites = self.lock();
        sites.get(site).filter(|(until, _)| *until > SystemTime::now()).map(|(_, robots)| Arc::clone(robots))
    }

    /// Keeps what the file of a site says.
    pub(crate) fn store(&self, site: String, lifetime: Duration, robots: &Arc<Robots>) {
        let mut sites = self.lock();
        if sites.len() >= MAX_SITES {
            sites.clear();
        }
        sites.insert(site, (SystemTime::now() + lifetime, Arc::clone(robots)));
    }

    fn lock(&self) -> MutexGuard<'_, KnownSites> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rules of a site for us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Robots {
    rules: Vec<(bool, String)>,
}

impl Robots {
    /// Reads a file. Of its groups those count that name `agent`, else those for everybody.
    pub(crate) fn parse(text: &str, agent: &str) -> Self {
        let (mut own, mut general): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        let (mut is_own, mut is_general, mut names_agents) = (false, false, false);
        let mut has_own = false;
        for line in text[..text.floor_char_boundary(MAX_BYTES)].lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match key.as_str() {
                "user-agent" => {
                    if !names_agents {
                        (is_own, is_general) = (false, false);
                    }
                    names_agents = true;
                    is_own |= value.eq_ignore_ascii_case(agent);
                    is_general |= value == "*";
                    has_own |= is_own;
                }
                "allow" | "disallow" => {
                    names_agents = false;
                    // An empty rule forbids nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = (key == "allow", value.to_owned());
                    if is_own && own.len() < MAX_RULES {
                        own.push(rule.clone());
                    }
                    if is_general && general.len() < MAX_RULES {
                        general.push(rule);
                    }
                }
                _ => names_agents = false,
            }
        }
        Self { rules: if has_own { own } else { general } }
    }

    /// Whether a path, with its query, may be asked for: the longest rule that matches decides, and of two one that allows.
    pub(crate) fn permits(&self, path: &str) -> bool {
        let matching = self.rules.iter().filter(|(_, pattern)| matches(pattern, path));
        matching.max_by_key(|(allows, pattern)| (pattern.len(), *allows)).is_none_or(|(allows, _)| *allows)
    }
}

/// Whether a pattern with `*` for any characters and `$` for the end matches the beginning of a path. Takes time in proportion to both.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return !is_whole || rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    if is_whole { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_agent_counts_and_the_longest_rule() {
        let text = "# x\nUser-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\nDisallow:\n\n\
                    User-Agent: Other\nUser-agent: agentd\nDisallow: /a\nSitemap: x\nUser-agent: third\nDisallow: /\n";
        let own = Robots::parse(text, "agentd");
        assert!(!own.permits("/a/b") && own.permits("/private"));
        let general = Robots::parse(text, "somebody");
        assert!(!general.permits("/private/x") && general.permits("/private/open/x") && general.permits("/"));
        assert!(!general.permits("/d/x.pdf") && general.permits("/d/x.pdf?y"));
        assert!(Robots::parse("", "agentd").permits("/"));
        assert!(
            Robots::parse("User-agent: agentd\nDisallow:\nUser-agent: *\nDisallow: /", "agentd")
                .permits("/x")
        );
        assert!(matches("/a*b*c$", "/axxbyyc") && !matches("/a*b*c$", "/axxbyycd") && matches("*", "/"));
    }
}
