//! What a search found, and its text for the model. Pure.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::page::UNTRUSTED;

/// Characters of a snippet.
const MAX_SNIPPET: usize = 240;

/// Queries that are shown, and their characters.
const MAX_QUERIES: (usize, usize) = (3, 120);

/// Bytes of an answer.
const MAX_ANSWER: usize = 40_000;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchResponse {
    pub(super) provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<String>,
    pub(super) sources: Vec<Source>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) citations: Vec<Citation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) search_queries: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) related_questions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
}

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    pub(super) title: String,
    pub(super) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) snippet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) age_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) author: Option<String>,
}

/// A page that a part of the answer is from.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Citation {
    pub(super) url: String,
    pub(super) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cited_text: Option<String>,
}

impl SearchResponse {
    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.answer.as_deref().is_none_or(|answer| answer.trim().is_empty())
    }

    /// Says of each source how old it is.
    pub(super) fn date(&mut self, now: Timestamp) {
        for source in &mut self.sources {
            let day = source.published_date.as_deref().and_then(moment);
            source.age_seconds = day.map(|day| (now.as_second() - day.as_second()).max(0));
        }
    }

    /// The text for the model.
    pub(super) fn shown(&self, notes: &[String]) -> String {
        let mut out = format!("{UNTRUSTED}\n\n");
        for note in notes {
            out.push_str(&format!("Note: {note}\n\n"));
        }
        let answer = self.answer.as_deref().map(str::trim).filter(|answer| !answer.is_empty());
        if let Some(answer) = answer {
            out.push_str(&format!("{}\n\n", &answer[..answer.floor_char_boundary(MAX_ANSWER)]));
            if !self.sources.is_empty() {
                out.push_str("## Sources\n\n");
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            let age = source.age_seconds.map(|seconds| format!(" ({})", age(seconds))).unwrap_or_default();
            out.push_str(&format!(
                "[{}] {}{age}\n    {}\n",
                index + 1,
                one_line(&source.title, 300),
                one_line(&source.url, 2000)
            ));
            if let Some(snippet) = source
                .snippet
                .as_deref()
                .map(|snippet| one_line(snippet, MAX_SNIPPET))
                .filter(|it| !it.is_empty())
            {
                out.push_str(&format!("    {snippet}\n"));
            }
        }
        if !self.citations.is_empty() {
            out.push_str("\n## Citations\n\n");
            for (index, citation) in self.citations.iter().enumerate() {
                out.push_str(&format!(
                    "[{}] {}\n    {}\n",
                    index + 1,
                    one_line(&citation.title, 300),
                    one_line(&citation.url, 2000)
                ));
                if let Some(cited) = &citation.cited_text {
                    out.push_str(&format!("    \"{}\"\n", one_line(cited, MAX_SNIPPET)));
                }
            }
        }
        if !self.related_questions.is_empty() {
            out.push_str("\n## Related\n\n");
            self.related_questions
                .iter()
                .for_each(|question| out.push_str(&format!("- {}\n", one_line(question, MAX_SNIPPET))));
        }
        if !self.search_queries.is_empty() {
            let shown =
                self.search_queries.iter().take(MAX_QUERIES.0).map(|query| one_line(query, MAX_QUERIES.1));
            out.push_str(&format!(
                "\nSearch queries: {} ({})\n",
                self.search_queries.len(),
                shown.collect::<Vec<_>>().join("; ")
            ));
        }
        out
    }
}

/// A text in one line of at most so many characters.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The moment of a date as services write it.
fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let whole = text
        .parse::<jiff::civil::DateTime>()
        .ok()
        .or_else(|| text.get(..10)?.parse().ok().map(|day: jiff::civil::Date| day.into()));
    if let Some(moment) = whole {
        return moment.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    }
    // As in "May 1, 2024".
    let zoned =
        jiff::fmt::strtime::parse("%B %d, %Y", text).ok()?.to_date().ok()?.to_zoned(jiff::tz::TimeZone::UTC);
    zoned.ok().map(|zoned| zoned.timestamp())
}

fn age(seconds: i64) -> String {
    let of = |count: i64, unit: &str| format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" });
    match seconds {
        ..3600 => of((seconds / 60).max(1), "minute"),
        3600..86_400 => of(seconds / 3600, "hour"),
        86_400..2_678_400 => of(seconds / 86_400, "day"),
        2_678_400..31_536_000 => of(seconds / 2_678_400, "month"),
        _ => of(seconds / 31_536_000, "year"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_all_parts() {
        let mut response = SearchResponse {
            provider: "x".into(),
            answer: Some("An answer.".into()),
            sources: vec![
                Source {
                    title: "T".into(),
                    url: "https://a.b/".into(),
                    snippet: Some("s ".repeat(200)),
                    published_date: Some("2024-04-28".into()),
                    ..Source::default()
                },
                Source {
                    title: "U".into(),
                    url: "u".into(),
                    published_date: Some("May 1, 2024".into()),
                    ..Source::default()
                },
            ],
            citations: vec![Citation { url: "c".into(), title: "C".into(), cited_text: Some("said".into()) }],
            search_queries: vec!["q".into()],
            related_questions: vec!["r?".into()],
            ..SearchResponse::default()
        };
        response.date("2024-05-01T12:00:00Z".parse().unwrap());
        let text = response.shown(&["n".into()]);
        assert!(
            text.starts_with(UNTRUSTED)
                && text.contains(
                    "Note: n\n\nAn answer.\n\n## Sources\n\n[1] T (3 days ago)\n    https://a.b/\n    s s"
                )
        );
        assert!(text.contains("…\n[2] U (12 hours ago)\n    u\n\n## Citations\n\n[1] C\n    c\n    \"said\"\n\n## Related\n\n- r?\n\nSearch queries: 1 (q)\n"), "{text}");
    }
}
