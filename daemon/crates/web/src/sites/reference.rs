//! Papers, the encyclopedia, the standards of the internet.

use super::plan::{Form, Place, Plan, Sites};

/// arXiv: the abstract of a paper. Its PDF is read like any other.
pub(super) fn arxiv(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let ("arxiv.org", ["abs", id @ ..]) = (place.host, place.path.as_slice()) else { return None };
    let id = id.join("/");
    let is_id = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '/' | '-');
    if id.is_empty() || !id.chars().all(is_id) {
        return None;
    }
    let url = sites.at("export.arxiv.org", &format!("/api/query?id_list={id}"))?;
    Some(Plan { method: "arxiv", form: Form::Feed(url) })
}

/// Wikipedia: the article alone, without what surrounds it on its page.
pub(super) fn wikipedia(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let language = place.host.strip_suffix(".wikipedia.org")?.trim_end_matches(".m");
    let ["wiki", title @ ..] = place.path.as_slice() else { return None };
    if title.is_empty() || language.is_empty() {
        return None;
    }
    let url = sites
        .at(&format!("{language}.wikipedia.org"), &format!("/api/rest_v1/page/html/{}", title.join("%2F")))?;
    Some(Plan { method: "wikipedia", form: Form::Page(url) })
}

/// RFCs as text, wherever they are shown.
pub(super) fn rfc(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let is_known =
        matches!(place.host, "rfc-editor.org" | "datatracker.ietf.org" | "tools.ietf.org" | "ietf.org");
    let last = place.path.last().filter(|_| is_known)?.to_ascii_lowercase();
    let name = last.strip_suffix(".html").or_else(|| last.strip_suffix(".txt")).unwrap_or(&last);
    let number = name.strip_prefix("rfc")?;
    if number.is_empty() || number.len() > 5 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let url = sites.at("www.rfc-editor.org", &format!("/rfc/rfc{number}.txt"))?;
    // The text itself.
    (place.host != "rfc-editor.org" || !last.ends_with(".txt"))
        .then_some(Plan { method: "rfc-text", form: Form::Page(url) })
}
