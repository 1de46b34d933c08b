//! The Markdown of what stands within a line: links, images, code, emphasis, mathematics.

use super::{
    dom::{NodeId, is_space, push_collapsed},
    markdown::Writer,
    marks::{inline_code, wrapped},
};

/// Bytes of an address that is shown.
const MAX_ADDRESS: usize = 2000;

impl Writer<'_> {
    pub(super) fn wrapped_children(&mut self, node: NodeId, mark: &str) {
        let text = self.inline(node);
        // Blanks within belong between the words outside.
        let (begins, ends) = self.blanks_around(node);
        if begins && !self.line.ends_with([' ', '\n']) {
            self.line.push(' ');
        }
        self.line.push_str(&wrapped(&text, mark));
        if ends {
            self.line.push(' ');
        }
    }

    /// Whether the text of a node begins and ends with white space.
    fn blanks_around(&self, node: NodeId) -> (bool, bool) {
        let mut texts = self.dom.below(node).filter_map(|below| self.dom.text(below));
        let first = texts.next();
        let last = texts.last().or(first);
        (
            first.is_some_and(|text| text.starts_with(is_space)),
            last.is_some_and(|text| text.ends_with(is_space)),
        )
    }

    pub(super) fn link(&mut self, node: NodeId) {
        let href = self.dom.attribute(node, "href").map(str::trim).unwrap_or_default();
        let address = self.address(href);
        let text = self.inline(node);
        // Links of headings to themselves.
        if href.starts_with('#')
            && matches!(text.as_str(), "" | "#" | "¶" | "§" | "🔗" | "link" | "Link" | "anchor")
        {
            return;
        }
        let (begins, ends) = self.blanks_around(node);
        if begins && !self.line.ends_with([' ', '\n']) {
            self.line.push(' ');
        }
        match address {
            Some(address) if text.is_empty() || address == text => {
                // A link without a word says nothing.
                if !text.is_empty() {
                    self.line.push_str(&address);
                }
            }
            Some(address) => {
                let text = text.replace('\n', " ");
                self.line.push_str(&format!("[{text}]({address})"));
            }
            None => self.line.push_str(&text),
        }
        if ends {
            self.line.push(' ');
        }
    }

    /// The whole address of a link that leads somewhere else.
    fn address(&self, href: &str) -> Option<String> {
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_ADDRESS {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let is_known = matches!(url.scheme(), "http" | "https" | "mailto" | "ftp" | "tel");
        let address = String::from(url);
        (is_known && address.len() <= MAX_ADDRESS)
            .then(|| address.replace('(', "%28").replace(')', "%29").replace(' ', "%20"))
    }

    pub(super) fn image(&mut self, node: NodeId) {
        let alt = self.dom.attribute(node, "alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() {
            return;
        }
        let source = self.dom.attribute(node, "src").or_else(|| self.dom.attribute(node, "data-src"));
        match source.and_then(|source| self.address(source.trim())) {
            Some(address) => self.line.push_str(&format!("![{alt}]({address})")),
            None => self.line.push_str(&alt),
        }
    }

    pub(super) fn code(&mut self, node: NodeId) {
        let mut text = String::new();
        self.raw_text(node, &mut text);
        let mut collapsed = String::new();
        push_collapsed(&mut collapsed, &text);
        let shown = collapsed.trim_matches(is_space);
        if !shown.is_empty() {
            self.line.push_str(&inline_code(shown));
        }
    }

    /// Mathematics as its source, where the page has it.
    pub(super) fn math(&mut self, node: NodeId) {
        let source = self.dom.attribute(node, "alttext").map(str::to_owned).or_else(|| {
            let annotation = self.dom.below(node).find(|below| {
                self.dom.attribute(*below, "encoding").is_some_and(|encoding| encoding.contains("tex"))
            })?;
            Some(self.dom.plain_text(annotation, 4000))
        });
        match source {
            Some(source) if !source.trim().is_empty() => self.line.push_str(&format!("${}$", source.trim())),
            _ => self.children(node),
        }
    }

    pub(super) fn input(&mut self, node: NodeId) {
        if self.dom.attribute(node, "type") == Some("checkbox") {
            let mark = if self.dom.attribute(node, "checked").is_some() { "[x] " } else { "[ ] " };
            self.line.push_str(mark);
        }
    }
}
