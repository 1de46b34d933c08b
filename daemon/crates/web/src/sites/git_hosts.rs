//! Hosts of git repositories: issues and pull requests as their threads, files as they are.

use serde_json::Value;

use super::plan::{Form, Place, Plan, Sites, fact, text};

/// GitHub: issues, pull requests, files, and the front page of a repository as its README.
pub(super) fn github(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    if place.host != "github.com" {
        return None;
    }
    let api = |path: String| sites.at("api.github.com", &path);
    match place.path.as_slice() {
        [owner, repository, "issues" | "pull", number, ..]
            if number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            let issue = format!("/repos/{owner}/{repository}/issues/{number}");
            let urls = vec![api(issue.clone())?, api(format!("{issue}/comments?per_page=100"))?];
            Some(Plan { method: "github-thread", form: Form::Json(urls, thread) })
        }
        [owner, repository, "blob" | "raw", reference @ ..] if reference.len() > 1 => {
            let url = sites
                .at("raw.githubusercontent.com", &format!("/{owner}/{repository}/{}", reference.join("/")))?;
            Some(Plan { method: "github-raw", form: Form::Page(url) })
        }
        // What is no repository has no README there.
        [owner, repository]
            if !matches!(
                *owner,
                "topics" | "orgs" | "sponsors" | "features" | "marketplace" | "settings"
            ) =>
        {
            let url = api(format!("/repos/{owner}/{repository}/readme"))?;
            Some(Plan { method: "github-readme", form: Form::Text(url, "application/vnd.github.raw+json") })
        }
        _ => None,
    }
}

/// Other hosts, of which a file as it is has a URL like that of its page.
pub(super) fn raw_files(sites: &Sites, place: &Place<'_>) -> Option<Plan> {
    let path = place.path.join("/");
    let raw = match place.host {
        "gitlab.com" => path.replacen("/-/blob/", "/-/raw/", 1),
        "codeberg.org" => path.replacen("/src/", "/raw/", 1),
        "bitbucket.org" => path.replacen("/src/", "/raw/", 1),
        "gist.github.com" if place.path.len() == 2 => {
            let url = sites.at("gist.githubusercontent.com", &format!("/{path}/raw"))?;
            return Some(Plan { method: "git-raw", form: Form::Page(url) });
        }
        _ => return None,
    };
    (raw != path)
        .then(|| sites.at(place.host, &format!("/{raw}")))
        .flatten()
        .map(|url| Plan { method: "git-raw", form: Form::Page(url) })
}

/// An issue or pull request with its comments.
fn thread(answers: &[Value]) -> Option<String> {
    let issue = answers.first()?;
    let title = issue.get("title")?.as_str()?;
    let number = issue.get("number").and_then(Value::as_u64)?;
    let is_pull = issue.get("pull_request").is_some();
    let mut out = format!("# {} (#{number})\n\n", title.trim());
    fact(&mut out, "Kind", if is_pull { "pull request" } else { "issue" });
    fact(&mut out, "State", text(issue, "/state"));
    fact(&mut out, "Author", text(issue, "/user/login"));
    fact(&mut out, "Created", text(issue, "/created_at"));
    let labels = issue.get("labels").and_then(Value::as_array).into_iter().flatten();
    let labels: Vec<&str> =
        labels.map(|label| text(label, "/name")).filter(|name| !name.is_empty()).collect();
    fact(&mut out, "Labels", &labels.join(", "));
    if is_pull {
        fact(&mut out, "Diff", text(issue, "/pull_request/diff_url"));
    }
    let body = text(issue, "/body");
    out.push_str(&format!("\n{}\n", if body.is_empty() { "(no text)" } else { body }));
    let comments = answers.get(1).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for comment in comments {
        let (author, created) = (text(comment, "/user/login"), text(comment, "/created_at"));
        out.push_str(&format!("\n## {author}, {created}\n\n{}\n", text(comment, "/body")));
    }
    let all = issue.get("comments").and_then(Value::as_u64).unwrap_or_default();
    if all > comments.len() as u64 {
        out.push_str(&format!("\n({} of {all} comments are shown.)\n", comments.len()));
    }
    Some(out)
}
