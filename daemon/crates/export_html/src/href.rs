//! Targets of links that a model wrote.

/// An address that a reader may be led to: `http`, `https` or `mailto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Href<'a>(&'a str);

impl<'a> Href<'a> {
    /// `None` for every other scheme, for relative targets, which lead nowhere from a file, and for what a browser would
    /// read otherwise than it looks.
    pub(crate) fn new(target: &'a str) -> Option<Self> {
        let (scheme, rest) = target.split_once(':')?;
        let known = ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let leads_somewhere = scheme.eq_ignore_ascii_case("mailto") || rest.starts_with("//");
        let odd = |character: char| character.is_control() || character.is_whitespace() || character == '\\';
        (known && leads_somewhere && !target.contains(odd)).then_some(Self(target))
    }

    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_web_and_mail() {
        for good in ["http://a", "HTTPS://a/b?c=d&e#f", "mailto:a@b.c", "https://ä.example/漢"] {
            assert_eq!(Href::new(good).map(Href::as_str), Some(good));
        }
        for bad in [
            "",
            "a",
            "src/main.rs",
            "#e1",
            "//host/x",
            "/etc/passwd",
            "javascript:alert(1)",
            "JaVaScRiPt:x",
            " javascript:x",
            "java\tscript:x",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "http:a",
            "http://a b",
            "http://a\nb",
            "https:\\\\a",
            "blob:http://a",
        ] {
            assert_eq!(Href::new(bad), None, "{bad:?}");
        }
    }
}
