//! A query with its operators: `site:`, `-site:`, `after:`, `before:`, `inurl:`, `intitle:`, `filetype:`, `"…"`, `-x`, `OR`. Pure.

use reqwest::Url;

use super::response::Source;

/// Operators of a query that are looked at.
const MAX_OPERATORS: usize = 32;

/// A query, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    /// As it was written.
    pub(super) whole: String,
    /// Without operators that only some services know: words, phrases, `OR`, `-x`.
    pub(super) words: String,
    pub(super) sites: Vec<String>,
    pub(super) not_sites: Vec<String>,
    /// As `2024-05-01`.
    pub(super) after: Option<String>,
    pub(super) before: Option<String>,
    in_url: Vec<String>,
    in_title: Vec<String>,
    file_types: Vec<String>,
    without: Vec<String>,
}

impl Query {
    /// Takes a query apart.
    pub(super) fn parse(text: &str) -> Self {
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut query = Self { whole: whole.clone(), ..Self::default() };
        let mut words: Vec<String> = Vec::new();
        for word in split(&whole).into_iter() {
            let (is_not, bare) = match word.strip_prefix('-') {
                Some(rest) if !rest.is_empty() => (true, rest),
                _ => (false, word.as_str()),
            };
            let operator =
                bare.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), unquoted(value)));
            let lower = |value: &str| value.to_lowercase();
            match (operator, is_not) {
                (Some((name, value)), _) if value.is_empty() || query.operators() >= MAX_OPERATORS => {
                    words.push(format!("{name}:{value}"));
                }
                (Some((name, value)), false) if name == "site" => query.sites.push(host(value)),
                (Some((name, value)), true) if name == "site" => query.not_sites.push(host(value)),
                (Some((name, value)), false) if name == "after" => query.after = date(value),
                (Some((name, value)), false) if name == "before" => query.before = date(value),
                (Some((name, value)), false) if name == "inurl" => query.in_url.push(lower(value)),
                (Some((name, value)), false) if name == "intitle" => query.in_title.push(lower(value)),
                (Some((name, value)), false) if matches!(name.as_str(), "filetype" | "ext") => {
                    query.file_types.push(lower(value.trim_start_matches('.')));
                }
                (_, true) => {
                    query.without.push(lower(unquoted(bare)));
                    words.push(word);
                }
                _ => words.push(word),
            }
        }
        query.words = words.join(" ");
        query
    }

    fn operators(&self) -> usize {
        self.sites.len()
            + self.not_sites.len()
            + self.in_url.len()
            + self.in_title.len()
            + self.file_types.len()
            + self.without.len()
    }

    /// The sources that the operators let in. Where none would be left, all of them, and a note that says so.
    pub(super) fn filter(&self, sources: Vec<Source>) -> (Vec<Source>, Option<String>) {
        let fitting: Vec<Source> = sources.iter().filter(|source| self.lets_in(source)).cloned().collect();
        match fitting.is_empty() && !sources.is_empty() {
            true => (
                sources,
                Some("no result fits the operators of the query: these are without them".to_owned()),
            ),
            false => (fitting, None),
        }
    }

    fn lets_in(&self, source: &Source) -> bool {
        let url = Url::parse(&source.url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default().to_lowercase();
        let is_at = |site: &String| {
            let (name, path) = site.split_once('/').unwrap_or((site, ""));
            let is_host = host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
            is_host
                && url
                    .as_ref()
                    .is_some_and(|url| url.path().trim_start_matches('/').to_lowercase().starts_with(path))
        };
        let (address, title) = (source.url.to_lowercase(), source.title.to_lowercase());
        let text = format!("{title} {}", source.snippet.as_deref().unwrap_or_default().to_lowercase());
        let path = url.as_ref().map(|url| url.path().to_lowercase()).unwrap_or_default();
        let day = source.published_date.as_deref().and_then(|date| date.get(..10)).filter(|day| is_day(day));
        (self.sites.is_empty() || self.sites.iter().any(is_at))
            && !self.not_sites.iter().any(is_at)
            && self.in_url.iter().all(|part| address.contains(part))
            && self.in_title.iter().all(|part| title.contains(part))
            && (self.file_types.is_empty() || self.file_types.iter().any(|kind| path.ends_with(&format!(".{kind}"))))
            && !self.without.iter().any(|word| text.split(|letter: char| !letter.is_alphanumeric()).any(|part| part == word))
            // What has no date may be of any.
            && day.is_none_or(|day| self.after.as_deref().is_none_or(|after| day >= after))
            && day.is_none_or(|day| self.before.as_deref().is_none_or(|before| day < before))
    }
}

/// The words of a query; quotes keep several together.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        if letter == '"' {
            is_quoted = !is_quoted;
        }
        if letter == ' ' && !is_quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn unquoted(text: &str) -> &str {
    text.trim_matches('"')
}

fn host(site: &str) -> String {
    let site = site.split_once("://").map_or(site, |(_, rest)| rest);
    site.trim_start_matches("*.").trim_end_matches('/').to_lowercase()
}

/// A day such as `2024-05-01`; a year or a month means its first day.
fn date(text: &str) -> Option<String> {
    let text = text.replace('/', "-");
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text,
    };
    is_day(&whole).then_some(whole)
}

fn is_day(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(title: &str, url: &str, date: Option<&str>) -> Source {
        Source {
            title: title.into(),
            url: url.into(),
            published_date: date.map(str::to_owned),
            ..Source::default()
        }
    }

    #[test]
    fn operators_are_parsed_and_filter() {
        let query = Query::parse(
            "rust  \"async fn\" site:docs.rs -site:blog.docs.rs OR intitle:Tokio filetype:html after:2024 -beta x:",
        );
        assert_eq!(query.words, "rust \"async fn\" OR -beta x:");
        assert_eq!(
            (query.sites.clone(), query.not_sites.clone()),
            (vec!["docs.rs".to_owned()], vec!["blog.docs.rs".to_owned()])
        );
        assert_eq!(query.after.as_deref(), Some("2024-01-01"));
        let all = vec![
            source("Tokio guide", "https://docs.rs/a.html", None),
            source("Tokio guide", "https://blog.docs.rs/a.html", None),
            source("Tokio guide", "https://notdocs.rs/a.html", None),
            source("Other", "https://docs.rs/a.html", None),
            source("Tokio beta", "https://docs.rs/a.html", None),
            source("Tokio old", "https://docs.rs/b.html", Some("2023-12-31T10:00:00Z")),
            source("Tokio new", "https://docs.rs/b.html", Some("2024-02-01")),
        ];
        let (found, note) = query.filter(all.clone());
        assert_eq!(
            found.iter().map(|it| it.title.as_str()).collect::<Vec<_>>(),
            ["Tokio guide", "Tokio new"]
        );
        assert_eq!(note, None);
        let (found, note) = Query::parse("x inurl:nowhere").filter(all.clone());
        assert!(found.len() == all.len() && note.is_some());
        assert_eq!(Query::parse("x site:docs.rs/b").filter(all).0.len(), 2);
    }
}
