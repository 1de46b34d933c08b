//! The process that finds the text of one PDF file: the file comes on its input, the text goes to its output, a page at a time.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, RenderContent, SoftMask, TransformExt as _,
    font::{Glyph, GlyphRun},
    hayro_cmap::BfString,
    hayro_syntax::{LoadPdfError, Pdf},
    interpret_page,
    kurbo::{Affine, BezPath, Point, Rect},
};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::layout::{PageText, Piece};

/// The first argument that makes a program find the text of a PDF ([`run_pdf_text`]).
pub const PDF_ARGUMENT: &str = "pdf-text";

/// Memory of the process, in bytes of its address space: 1 GiB.
const MAX_MEMORY: u64 = 1 << 30;

/// Processor time, in seconds.
const MAX_SECONDS: u64 = 30;

/// Bytes of text. More is not shown anyway.
const MAX_TEXT: usize = 4 << 20;

/// Pages that are looked at.
const MAX_PAGES: usize = 2000;

/// The file is encrypted.
pub(super) const ENCRYPTED: u8 = 3;

/// The file is no PDF, or a broken one.
pub(super) const INVALID: u8 = 4;

/// Finds the text of the PDF on the standard input, and writes it to the standard output. For a process of its own, which it limits
/// first: its memory, its processor time, and that it writes no files.
///
/// The exit code says whether there is a text: 3 for a file with a password, 4 for no PDF.
#[must_use]
pub fn run_pdf_text() -> ExitCode {
    let limits = [
        (Resource::As, MAX_MEMORY),
        (Resource::Cpu, MAX_SECONDS),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, most) in limits {
        // Lower limits of the session stay.
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        let _ = setrlimit(resource, limit);
    }
    let mut file = Vec::new();
    if io::stdin().lock().read_to_end(&mut file).is_err() {
        return ExitCode::FAILURE;
    }
    match write_text(file, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => ExitCode::from(code),
    }
}

/// Writes the text of a file, page by page, so that what was found is there even if a later page is a bad one.
pub(super) fn write_text(file: Vec<u8>, out: &mut impl Write) -> Result<(), u8> {
    let pdf = match Pdf::new(file) {
        Ok(pdf) => pdf,
        Err(LoadPdfError::Decryption(_)) => return Err(ENCRYPTED),
        Err(LoadPdfError::Invalid) => return Err(INVALID),
    };
    let settings =
        InterpreterSettings { render_content: RenderContent::PAGE, ..InterpreterSettings::default() };
    let cache = InterpreterCache::new();
    let (mut written, count) = (0, pdf.pages().len());
    for (index, page) in pdf.pages().iter().enumerate().take(MAX_PAGES) {
        let (width, height) = page.render_dimensions();
        let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let mut context = Context::new(
            page.initial_transform(true).to_kurbo(),
            bounds,
            &cache,
            page.xref(),
            settings.clone(),
        );
        let mut text = PageText::default();
        interpret_page(page, &mut context, &mut TextDevice(&mut text));
        let text = text.finish();
        let head = if count > 1 { format!("[Page {} of {count}]\n\n", index + 1) } else { String::new() };
        let page = format!("{head}{text}\n");
        let done = out.write_all(page.as_bytes()).and_then(|()| out.flush());
        written += page.len();
        // Nobody reads any more, or enough is there.
        if done.is_err() || written > MAX_TEXT {
            break;
        }
    }
    Ok(())
}

/// Takes the glyphs of a page, and draws nothing.
struct TextDevice<'t>(&'t mut PageText);

impl<'a> Device<'a> for TextDevice<'_> {
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        // Text that is filled and stroked comes twice.
        if matches!(mode, DrawMode::Stroke(_)) {
            self.0.begin_repeat();
        }
        for glyph in run.glyphs() {
            let place: Affine = props.transform * glyph.transform();
            let advance = match &**glyph {
                Glyph::Outline(outline) => outline.advance_width(),
                Glyph::Type3(own) => own.advance_width(),
            };
            let (start, end) =
                (place * Point::ORIGIN, place * Point::new(f64::from(advance.unwrap_or(500.0)), 0.0));
            let top = place * Point::new(0.0, 1000.0);
            let text = match glyph.as_unicode() {
                Some(BfString::Char(character)) => character.to_string(),
                Some(BfString::String(text)) => text,
                None => String::new(),
            };
            self.0.add(Piece { x: start.x, y: start.y, end: end.x, size: start.distance(top), text });
        }
        self.0.end_repeat();
    }
}
