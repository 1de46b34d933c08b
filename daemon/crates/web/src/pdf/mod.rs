//! The text of PDF files. It is found in a process of its own: readers of PDF meet files that make them panic, loop or swell.

mod extract;
mod layout;
mod reader;

pub use extract::{PDF_ARGUMENT, run_pdf_text};
pub use reader::PdfReader;
