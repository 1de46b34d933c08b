//! The page as a whole: head, pieces of the conversation, links between them, totals.

use std::io::{self, Write};

use agentd_store::{LoadReport, SessionTree, StatsCounter};

use crate::{
    assets, entry, figures, gist,
    outline::Outline,
    page::{Attr, Page},
    totals::Totals,
};

/// Writes the page of a session.
pub(crate) fn write(tree: &SessionTree, report: &LoadReport, out: &mut dyn Write) -> io::Result<()> {
    let outline = Outline::new(tree);
    let title = gist::of_session(tree, &outline);
    let document = Document { tree, outline: &outline };
    let mut page = Page::new(out);
    page.ours("<!DOCTYPE html>\n<html lang=\"en\">\n")?;
    head(&mut page, &title)?;
    page.ours("<body>\n")?;
    bar(&mut page)?;
    page.element("main", &[], |page| {
        document.about(page, &title, report)?;
        document.conversation(page)
    })?;
    page.ours("\n</body>\n</html>\n")
}

fn head(page: &mut Page<'_>, title: &str) -> io::Result<()> {
    page.ours("<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"")?;
    page.ours(assets::POLICY)?;
    page.ours(concat!(
        "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<meta name=\"color-scheme\" content=\"light dark\">\n",
        "<meta name=\"referrer\" content=\"no-referrer\">\n",
        "<meta name=\"generator\" content=\"agentd ",
        env!("CARGO_PKG_VERSION"),
        "\">\n"
    ))?;
    page.words("title", &[], title)?;
    page.ours("\n<style>")?;
    page.ours(assets::STYLE)?;
    page.ours("</style>\n<script>")?;
    page.ours(assets::SCRIPT)?;
    page.ours("</script>\n</head>\n")
}

/// Controls that need the script; without it, the bar is hidden.
fn bar(page: &mut Page<'_>) -> io::Result<()> {
    page.ours(
        "<div class=\"bar\" role=\"search\">\n\
         <input type=\"search\" id=\"query\" placeholder=\"Search all branches\" aria-label=\"Search all branches\" autocomplete=\"off\" spellcheck=\"false\">\n\
         <output id=\"count\" aria-live=\"polite\"></output>\n\
         <button type=\"button\" id=\"previous\" aria-label=\"Previous match\" disabled>↑</button>\n\
         <button type=\"button\" id=\"next\" aria-label=\"Next match\" disabled>↓</button>\n\
         <span class=\"space\"></span>\n\
         <button type=\"button\" id=\"unfold\" aria-pressed=\"false\">Unfold all</button>\n\
         <button type=\"button\" id=\"theme\">Theme: system</button>\n\
         </div>\n",
    )
}

struct Document<'a> {
    tree: &'a SessionTree,
    outline: &'a Outline,
}

impl Document<'_> {
    fn about(&self, page: &mut Page<'_>, title: &str, report: &LoadReport) -> io::Result<()> {
        let info = self.tree.info();
        let mut counter = StatsCounter::default();
        let totals = counter.totals(self.tree);
        page.open("header", &[Attr::Class("about")])?;
        page.words("h1", &[Attr::Fixed("dir", "auto")], title)?;
        page.element("dl", &[], |page| {
            let mut row = |name: &'static str, value: &str| {
                if value.is_empty() {
                    return Ok(());
                }
                page.words("dt", &[], name)?;
                page.words("dd", &[], value)
            };
            row("Session", &info.id)?;
            row("Folder", &info.cwd)?;
            let begun = figures::time(&info.timestamp).map(|(_, shown)| format!("{shown} UTC"));
            row("Begun", begun.as_deref().unwrap_or(&info.timestamp))?;
            row("Copied from", info.parent_session.as_deref().unwrap_or_default())?;
            let counts = [
                figures::counted(totals.user_messages as usize, "prompt"),
                figures::counted(totals.assistant_messages as usize, "answer"),
                figures::counted(totals.tool_calls as usize, "tool call"),
            ];
            row("Holds", &counts.join(" · "))?;
            let tokens = (totals.tokens.total > 0)
                .then(|| format!("{} tokens", figures::grouped(totals.tokens.total)));
            let cost = figures::dollars(totals.cost);
            row("Usage", &tokens.into_iter().chain(cost).collect::<Vec<_>>().join(" · "))
        })?;
        if let Some(warning) = report.warning() {
            page.words("p", &[Attr::Class("error")], &format!("Not everything is here: {warning}."))?;
        }
        page.close("header")?;
        page.ours("\n")
    }

    fn conversation(&self, page: &mut Page<'_>) -> io::Result<()> {
        let Outline { pieces, current, roots } = self.outline;
        if pieces.is_empty() {
            page.words("p", &[Attr::Class("note")], "Nothing was said yet.")?;
        }
        // One root needs no links, unless the session went back to before it.
        if roots.len() > 1 || *current == 0 {
            self.branches(page, roots)?;
        }
        let mut totals = Totals::default();
        let mut has_system = false;
        for at in 0..pieces.len() {
            if at == *current {
                page.words("h2", &[Attr::Class("others")], "Other branches")?;
            }
            self.piece(page, at, &mut totals, &mut has_system)?;
        }
        self.count_hidden(&mut totals);
        totals.write(page)
    }

    fn piece(
        &self,
        page: &mut Page<'_>,
        at: usize,
        totals: &mut Totals,
        has_system: &mut bool,
    ) -> io::Result<()> {
        let piece = &self.outline.pieces[at];
        let is_current = at < self.outline.current;
        let mut attributes =
            vec![Attr::Class(if is_current { "piece shown" } else { "piece" }), Attr::Piece(at)];
        attributes.extend(piece.parent.map(|parent| Attr::Number("data-parent", parent as u64)));
        attributes.extend(piece.next.map(|next| Attr::Number("data-next", next as u64)));
        page.open("section", &attributes)?;
        page.ours("\n")?;
        if let Some(parent) = piece.parent.filter(|_| !is_current) {
            page.element("p", &[Attr::Class("origin")], |page| {
                page.text("A branch that goes on from ")?;
                page.words("a", &[Attr::ToPiece(parent)], "an earlier part")?;
                page.text(".")
            })?;
        }
        entry::all(page, self.tree, &piece.entries, totals, has_system)?;
        let is_end_of_path = at + 1 == self.outline.current;
        if piece.children.len() > 1 || (is_end_of_path && !piece.children.is_empty()) {
            self.branches(page, &piece.children)?;
        }
        page.close("section")?;
        page.ours("\n")
    }

    /// Links to branches, one of which is shown.
    fn branches(&self, page: &mut Page<'_>, branches: &[usize]) -> io::Result<()> {
        if branches.is_empty() {
            return Ok(());
        }
        page.element("nav", &[Attr::Class("branches"), Attr::Label("Branches")], |page| {
            let count = if branches.len() == 1 {
                "1 branch".to_owned()
            } else {
                format!("{} branches", figures::grouped(branches.len() as u64))
            };
            page.words("p", &[], &format!("{count} from here"))?;
            page.element("ol", &[], |page| branches.iter().try_for_each(|at| self.branch(page, *at)))
        })?;
        page.ours("\n")
    }

    fn branch(&self, page: &mut Page<'_>, at: usize) -> io::Result<()> {
        let is_current = at < self.outline.current;
        let current = is_current.then_some(Attr::Fixed("aria-current", "true"));
        let attributes: Vec<Attr<'_>> = [Attr::ToPiece(at)].into_iter().chain(current).collect();
        page.element("li", &[], |page| {
            page.words("a", &attributes, &gist::of_branch(self.tree, self.outline, at))?;
            let time = self.tree.entries().get(self.outline.pieces[at].first as usize);
            let Some((_, shown)) = time.and_then(|entry| figures::time(&entry.timestamp())) else {
                return Ok(());
            };
            page.ours(" ")?;
            page.words("span", &[Attr::Class("figures")], &shown)
        })?;
        page.ours("\n")
    }

    /// Counts the usage of entries that are not on the page.
    fn count_hidden(&self, totals: &mut Totals) {
        for entry in self.tree.entries() {
            if entry.kind() == agentd_store::EntryKind::Usage
                && let Some(body) = gist::body(entry)
            {
                totals.add(&body);
            }
        }
    }
}
