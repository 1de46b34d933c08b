//! The tools of the web.

/// The name of the tool that reads a page.
pub const WEB_FETCH_TOOL: &str = "web_fetch";

/// The name of the tool that searches.
pub const WEB_SEARCH_TOOL: &str = "web_search";

/// What URLs of pages begin with.
pub const WEB_URLS: [&str; 2] = ["https://", "http://"];

/// The host of a URL of a page, in lower case and without the brackets of an address; `None` for what is no such URL. Where the text names
/// no scheme, as in `example.org/page`, it means `https://`.
#[must_use]
pub fn host_of(url: &str) -> Option<String> {
    let url = url.trim();
    let rest = match url.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") =>
        {
            rest
        }
        Some((scheme, _))
            if scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) =>
        {
            return None;
        }
        _ => url,
    };
    // As browsers read it: any slashes before the host, and `\` is one, too.
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => host.split(':').next()?,
    };
    let host: String = host.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect();
    let host = host.trim_end_matches('.').to_lowercase();
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_urls() {
        for (url, host) in [
            ("https://Example.ORG:8080/a?b", Some("example.org")),
            ("http://me:pw@example.org.", Some("example.org")),
            ("example.org/a", Some("example.org")),
            ("https://[::1]:80/", Some("::1")),
            ("https:///example.org\\x", Some("example.org")),
            ("https://exa\tmple.org/", Some("example.org")),
            ("https://a.example@b.example/", Some("b.example")),
            ("mcp://x/y", None),
            ("https://", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
