//! Images in the conversation, drawn by terminals that speak Kitty's graphics protocol (kitty, Ghostty); elsewhere a row names them.
//!
//! The terminal gets the image once. Where it stands is told by cells of text: a placeholder character, marks for the cell's row and column,
//! and the image's id as the colour. So an image moves, is cut and is erased as text is.
//! The protocol: <https://sw.kovidgoyal.net/kitty/graphics-protocol/>.

use std::sync::atomic::{AtomicU32, Ordering};

use agentd_client_text::{cut, one_line};
use agentd_protocol::message::ImageContent;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ratatui_core::{
    style::{Color, Style},
    text::{Line, Span},
};

use crate::theme;

/// The character of a cell that shows a part of an image.
const PLACEHOLDER: char = '\u{10EEEE}';

/// The marks for rows and columns, by number: the first of the protocol's table.
const MARKS: [u16; 64] = [
    0x0305, 0x030D, 0x030E, 0x0310, 0x0312, 0x033D, 0x033E, 0x033F, 0x0346, 0x034A, 0x034B, 0x034C, 0x0350,
    0x0351, 0x0352, 0x0357, 0x035B, 0x0363, 0x0364, 0x0365, 0x0366, 0x0367, 0x0368, 0x0369, 0x036A, 0x036B,
    0x036C, 0x036D, 0x036E, 0x036F, 0x0483, 0x0484, 0x0485, 0x0486, 0x0487, 0x0592, 0x0593, 0x0594, 0x0595,
    0x0597, 0x0598, 0x0599, 0x059C, 0x059D, 0x059E, 0x059F, 0x05A0, 0x05A1, 0x05A8, 0x05A9, 0x05AB, 0x05AC,
    0x05AF, 0x05C4, 0x0610, 0x0611, 0x0612, 0x0613, 0x0614, 0x0615, 0x0616, 0x0617, 0x0657, 0x0658,
];

/// The most rows that an image takes.
const MOST_ROWS: u32 = 20;

/// How much of an image one sequence carries, in characters of base64.
const CHUNK: usize = 4_096;

/// The pixels of a cell of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellSize {
    pub(crate) width: u16,
    pub(crate) height: u16,
}

/// An image of a message or of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// Its number in the terminal, of 24 bits: those of a process are its own as far as possible.
    id: u32,
    content: ImageContent,
}

impl Image {
    pub(crate) fn new(content: ImageContent) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id: ((std::process::id() << 8).wrapping_add(number) & 0xFF_FFFF).max(1), content }
    }

    /// Its width and height in pixels, for a PNG, the one format that the protocol takes as a file.
    fn pixels(&self) -> Option<(u32, u32)> {
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        // Anything else would end the sequence, and what follows would steer the terminal.
        if !self.content.data.bytes().all(is_base64) {
            return None;
        }
        // The signature, and the first chunk up to the height.
        let head = STANDARD.decode(self.content.data.get(..32)?).ok()?;
        let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let is_png = head.starts_with(b"\x89PNG\r\n\x1a\n") && head.get(12..16) == Some(b"IHDR");
        let (width, height) = (number(16)?, number(20)?);
        (is_png && width > 0 && height > 0).then_some((width, height))
    }

    /// The columns and rows that it takes: no more than its pixels need, and no more than there are.
    fn cells(&self, width: usize, cell: CellSize) -> Option<(u32, u32)> {
        let (across, down) = self.pixels()?;
        let most = u32::try_from(width.min(MARKS.len())).unwrap_or(u32::MAX).max(1);
        let (cell_width, cell_height) = (f64::from(cell.width.max(1)), f64::from(cell.height.max(1)));
        let fits_across = f64::from(most) * cell_width / f64::from(across);
        let fits_down = f64::from(MOST_ROWS) * cell_height / f64::from(down);
        let scale = fits_across.min(fits_down).min(1.0);
        // The values are between 0 and the limits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let needed = |pixels: u32, cell: f64, most: u32| {
            ((f64::from(pixels) * scale / cell).ceil() as u32).clamp(1, most)
        };
        Some((needed(across, cell_width, most), needed(down, cell_height, MOST_ROWS)))
    }

    /// The sequences that give it to the terminal, for that many columns and rows.
    fn transmission(&self, (columns, rows): (u32, u32)) -> String {
        let data = &self.content.data;
        let mut out = String::with_capacity(data.len() + data.len() / CHUNK * 16 + 64);
        let mut chunks = data.as_bytes().chunks(CHUNK).peekable();
        let mut control = format!("a=T,U=1,f=100,q=2,i={},c={columns},r={rows},", self.id);
        while let Some(chunk) = chunks.next() {
            let more = u8::from(chunks.peek().is_some());
            // ASCII, as `pixels` has made sure.
            let chunk = std::str::from_utf8(chunk).unwrap_or_default();
            out.push_str(&format!("\x1b_G{control}m={more};{chunk}\x1b\\"));
            control = "q=2,".to_owned();
        }
        out
    }

    /// The rows of placeholders.
    fn placeholders(&self, (columns, rows): (u32, u32)) -> Vec<Line<'static>> {
        let [_, red, green, blue] = self.id.to_be_bytes();
        let style = Style::new().fg(Color::Rgb(red, green, blue));
        let marks = || MARKS.iter().filter_map(|mark| char::from_u32(u32::from(*mark)));
        let row = |row: char| {
            let cells = marks().take(columns as usize).map(|column| [PLACEHOLDER, row, column]);
            Line::from(Span::styled(cells.flatten().collect::<String>(), style))
        };
        marks().take(rows as usize).map(row).collect()
    }

    /// The row that stands for it where it cannot be drawn.
    fn name(&self, width: usize) -> Line<'static> {
        let kind = one_line(&self.content.mime_type);
        let name = match self.pixels() {
            Some((across, down)) => format!("[{kind}, {across} × {down}]"),
            None => format!("[{kind}]"),
        };
        Line::styled(cut(&name, width), theme::DIM)
    }
}

/// What the terminal knows of the images.
#[derive(Debug, Default)]
pub(crate) struct TerminalImages {
    /// The size of a cell; `None` where the terminal draws no images.
    cell: Option<CellSize>,
    /// The images that the terminal has, and the cells that each takes.
    known: Vec<(u32, (u32, u32))>,
    /// Sequences that the terminal has not got yet.
    waiting: String,
}

impl TerminalImages {
    /// Takes the size of a cell; gives whether it is another one.
    pub(super) fn set_cell(&mut self, cell: Option<CellSize>) -> bool {
        std::mem::replace(&mut self.cell, cell) != cell
    }

    /// The rows of an image.
    pub(super) fn rows(&mut self, image: &Image, width: usize) -> Vec<Line<'static>> {
        let Some(cells) = self.cell.and_then(|cell| image.cells(width, cell)) else {
            return vec![image.name(width)];
        };
        match self.known.iter_mut().find(|(id, _)| *id == image.id) {
            Some((_, known)) if *known == cells => {}
            Some((_, known)) => {
                *known = cells;
                self.waiting
                    .push_str(&format!("\x1b_Ga=p,U=1,q=2,i={},c={},r={}\x1b\\", image.id, cells.0, cells.1));
            }
            None => {
                self.known.push((image.id, cells));
                self.waiting.push_str(&image.transmission(cells));
            }
        }
        image.placeholders(cells)
    }

    /// The sequences for the terminal since the last time.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.waiting)
    }

    /// The sequences that have the terminal forget all images.
    pub(super) fn forget(&mut self) -> String {
        self.waiting.clear();
        self.known.drain(..).map(|(id, _)| format!("\x1b_Ga=d,d=I,q=2,i={id}\x1b\\")).collect()
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    const CELL: CellSize = CellSize { width: 8, height: 16 };

    fn png(width: u32, height: u32, more: usize) -> Image {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend(vec![7; more]);
        Image::new(ImageContent { data: STANDARD.encode(bytes), mime_type: "image/png".into() })
    }

    fn images() -> TerminalImages {
        TerminalImages { cell: Some(CELL), ..TerminalImages::default() }
    }

    #[test]
    fn an_image_takes_the_cells_that_it_needs() {
        for (pixels, width, cells) in [
            ((80, 32), 100, (10, 2)),
            ((1, 1), 100, (1, 1)),
            ((1_600, 160), 100, (64, 4)),
            ((1_600, 160), 20, (20, 1)),
            ((100, 100_000), 100, (1, 20)),
            ((u32::MAX, u32::MAX), 100, (40, 20)),
        ] {
            assert_eq!(png(pixels.0, pixels.1, 0).cells(width, CELL), Some(cells), "{pixels:?}");
        }
    }

    #[test]
    fn the_terminal_gets_an_image_once_and_its_place_when_that_changes() {
        let (mut images, image) = (images(), png(80, 32, 6_000));
        let rows = images.rows(&image, 100);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].to_string().width(), 10);
        assert!(rows[1].to_string().starts_with("\u{10EEEE}\u{30D}\u{305}\u{10EEEE}\u{30D}\u{30D}"));
        let sent = images.take();
        let first =
            format!("\x1b_Ga=T,U=1,f=100,q=2,i={},c=10,r=2,m=1;{}", image.id, &image.content.data[..CHUNK]);
        assert!(sent.starts_with(&first) && sent.ends_with("\x1b\\"), "{sent}");
        let data: String = sent.split("\x1b_G").filter_map(|one| one.split([';', '\x1b']).nth(1)).collect();
        assert_eq!(data, image.content.data);
        assert_eq!(sent.matches("m=1;").count(), 1);
        images.rows(&image, 100);
        assert_eq!(images.take(), "");
        images.rows(&image, 5);
        assert_eq!(images.take(), format!("\x1b_Ga=p,U=1,q=2,i={},c=5,r=1\x1b\\", image.id));
        assert_eq!(images.forget(), format!("\x1b_Ga=d,d=I,q=2,i={}\x1b\\", image.id));
        assert_eq!(images.forget(), "");
    }

    #[test]
    fn what_cannot_be_drawn_is_named() {
        let mut none = TerminalImages::default();
        assert_eq!(none.rows(&png(80, 32, 0), 100)[0].to_string(), "[image/png, 80 × 32]");
        let of = |data: &str, kind: &str| {
            let image = Image::new(ImageContent { data: data.into(), mime_type: kind.into() });
            let mut images = images();
            let rows = images.rows(&image, 100);
            assert_eq!((rows.len(), images.take()), (1, String::new()));
            rows[0].to_string()
        };
        assert_eq!(of("/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD", "image/jpeg"), "[image/jpeg]");
        assert_eq!(of("", "image/png"), "[image/png]");
        // Nothing in an image ends the sequence that carries it.
        let hostile = format!("{}\x1b\\\x1b[2J", png(8, 8, 0).content.data);
        assert_eq!(of(&hostile, "image/png\x1b[2J"), "[image/png [2J]");
    }
}
