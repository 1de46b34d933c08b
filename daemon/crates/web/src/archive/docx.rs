//! The text of a DOCX file as Markdown: headings, paragraphs, lists, links and tables.

use std::collections::HashMap;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};
use reqwest::Url;

use super::zip::Zip;

/// The entry with the text.
pub(super) const DOCUMENT: &str = "word/document.xml";

/// The entry with the addresses of its links.
const RELATIONS: &str = "word/_rels/document.xml.rels";

/// Bytes of an entry that are read: 64 MiB.
const MAX_ENTRY: u64 = 64 << 20;

/// Links that are known.
const MAX_LINKS: usize = 10_000;

/// The deepest heading, and the deepest list, that are shown as such.
const MAX_LEVEL: usize = 6;

/// A document.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) markdown: String,
    /// Whether its end is missing.
    pub(super) is_cut: bool,
}

/// The text of a document, at most some `most` bytes.
///
/// # Errors
/// A clause.
pub(super) fn read(zip: &Zip<'_>, base: &Url, most: usize) -> Result<Text, String> {
    let entry = zip.find(DOCUMENT).ok_or("it has no document")?;
    let content = zip.content(entry, MAX_ENTRY)?;
    let is_whole = (content.len() as u64) < MAX_ENTRY;
    let xml = String::from_utf8_lossy(&content);
    // A document without links has no list of them.
    let links = match zip.find(RELATIONS).map(|entry| zip.content(entry, MAX_ENTRY)) {
        Some(Ok(list)) => links(&String::from_utf8_lossy(&list), base),
        Some(Err(_)) | None => HashMap::new(),
    };
    let mut writer = Writer {
        links: &links,
        out: Text::default(),
        paragraph: Paragraph::default(),
        tables: Vec::new(),
        removed: 0,
    };
    let mut reader = Reader::from_str(&xml);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    let mut in_text = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                in_text = start.local_name().as_ref() == "t";
                writer.begin(&start);
            }
            Ok(Event::Empty(start)) => {
                writer.begin(&start);
                writer.end(start.local_name().as_ref());
            }
            Ok(Event::End(end)) => {
                in_text = false;
                writer.end(end.local_name().as_ref());
            }
            Ok(Event::Text(piece)) if in_text => writer.text(&piece),
            Ok(Event::GeneralRef(name)) if in_text => writer.text(&crate::feed::entity(&name)),
            Ok(Event::Eof) => break,
            // What follows a fault in the XML is not known.
            Err(_) => {
                writer.out.is_cut = true;
                break;
            }
            Ok(_) => {}
        }
        if writer.out.markdown.len() > most {
            writer.out.is_cut = true;
            break;
        }
    }
    writer.end("p");
    let mut out = writer.out;
    out.is_cut |= !is_whole;
    Ok(out)
}

/// The addresses of links, by their ids.
fn links(xml: &str, base: &Url) -> HashMap<String, String> {
    let mut links = HashMap::new();
    let mut reader = Reader::from_str(xml);
    while let Ok(event) = reader.read_event() {
        let start = match &event {
            Event::Start(start) | Event::Empty(start) => start,
            Event::Eof => break,
            _ => continue,
        };
        if links.len() == MAX_LINKS {
            break;
        }
        if let (Some(id), Some(target), Some("External")) =
            (attribute(start, "Id"), attribute(start, "Target"), attribute(start, "TargetMode").as_deref())
            && let Ok(url) = base.join(&target)
            && matches!(url.scheme(), "http" | "https" | "mailto")
        {
            links.insert(id, url.as_str().replace('(', "%28").replace(')', "%29"));
        }
    }
    links
}

/// An attribute, whatever its namespace is called.
fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let found =
        start.attributes().with_checks(false).flatten().find(|it| it.key.local_name().as_ref() == name)?;
    Some(found.value.replace("&amp;", "&"))
}

#[derive(Default)]
struct Paragraph {
    text: String,
    /// 0: none.
    heading: usize,
    /// The depth in lists; `None` outside of them.
    list: Option<usize>,
    /// The link that is open: where its text begins, and its address.
    link: Option<(usize, String)>,
}

/// A table that is being read.
#[derive(Default)]
struct Table {
    rows: usize,
    cells: Vec<String>,
    cell: String,
}

struct Writer<'a> {
    links: &'a HashMap<String, String>,
    out: Text,
    paragraph: Paragraph,
    tables: Vec<Table>,
    /// Depth within what a change has removed.
    removed: usize,
}

impl Writer<'_> {
    fn begin(&mut self, start: &BytesStart<'_>) {
        match start.local_name().as_ref() {
            "pStyle" => self.paragraph.heading = attribute(start, "val").map_or(0, |style| heading(&style)),
            "numPr" => self.paragraph.list = self.paragraph.list.or(Some(0)),
            "ilvl" => {
                let level = attribute(start, "val").and_then(|level| level.parse::<usize>().ok());
                self.paragraph.list = Some(level.unwrap_or(0).min(MAX_LEVEL));
            }
            "hyperlink" => {
                let url = attribute(start, "id").and_then(|id| self.links.get(&id).cloned());
                self.paragraph.link = url.map(|url| (self.paragraph.text.len(), url));
            }
            "tab" => self.text("\t"),
            "br" | "cr" => self.text("\n"),
            "tbl" if self.tables.len() < MAX_LEVEL => self.tables.push(Table::default()),
            "del" | "moveFrom" => self.removed += 1,
            _ => {}
        }
    }

    fn text(&mut self, piece: &str) {
        if self.removed == 0 {
            self.paragraph.text.push_str(piece);
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "hyperlink" => {
                if let Some((at, url)) = self.paragraph.link.take()
                    && let Some(text) = self.paragraph.text.get(at..).filter(|text| !text.trim().is_empty())
                {
                    let link = format!("[{}]({url})", text.replace(['\n', '\t'], " "));
                    self.paragraph.text.truncate(at);
                    self.paragraph.text.push_str(&link);
                }
            }
            "del" | "moveFrom" => self.removed = self.removed.saturating_sub(1),
            "p" => self.end_paragraph(),
            "tc" => {
                if let Some(table) = self.tables.last_mut() {
                    let cell = std::mem::take(&mut table.cell);
                    table.cells.push(cell.trim().replace('|', "\\|"));
                }
            }
            "tr" => self.end_row(),
            "tbl" => {
                self.tables.pop();
                if self.tables.is_empty() {
                    self.out.markdown.push('\n');
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        let Paragraph { text, heading, list, .. } = std::mem::take(&mut self.paragraph);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(table) = self.tables.last_mut() {
            if !table.cell.is_empty() {
                table.cell.push(' ');
            }
            return table.cell.push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        let out = &mut self.out.markdown;
        match (heading, list) {
            (1.., _) => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                out.push_str(&format!("{} {text}\n\n", "#".repeat(heading)));
            }
            (0, Some(level)) => {
                // Items of one list stand together.
                if out.ends_with("\n\n")
                    && out
                        .trim_end()
                        .rsplit('\n')
                        .next()
                        .is_some_and(|line| line.trim_start().starts_with("- "))
                {
                    out.pop();
                }
                let indent = "  ".repeat(level);
                out.push_str(&format!("{indent}- {}\n\n", text.replace('\n', &format!("\n{indent}  "))));
            }
            (0, None) => out.push_str(&format!("{text}\n\n")),
        }
    }

    fn end_row(&mut self) {
        let Some(table) = self.tables.last_mut() else { return };
        let cells = std::mem::take(&mut table.cells);
        table.rows += 1;
        let is_first = table.rows == 1;
        // A table in a cell is text of that cell.
        if let [.., outer, _] = &mut self.tables[..] {
            outer.cell.push_str(&format!(" {}", cells.join(" ")));
            return;
        }
        self.out.markdown.push_str(&format!("| {} |\n", cells.join(" | ")));
        if is_first {
            self.out.markdown.push_str(&format!("|{}\n", " --- |".repeat(cells.len())));
        }
    }
}

/// The level of a heading by the id of its style, as programs write it: `Heading1`, `heading 2`, `Title`; 0 for others.
fn heading(style: &str) -> usize {
    let style = style.to_ascii_lowercase();
    if style == "title" {
        return 1;
    }
    let number = style.strip_prefix("heading").map(|rest| rest.trim().parse::<usize>());
    number.and_then(Result::ok).map_or(0, |level| level.clamp(1, MAX_LEVEL))
}
