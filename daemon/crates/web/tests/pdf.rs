//! PDF files, read by a process of their own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail there")]

use agentd_process::{GuardCommand, Launcher};
use agentd_web::{AllowedHosts, PageContent, PdfReader, WebOptions, WebReader, WebStore};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

/// A PDF with a page for each of these contents.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut kids = String::new();
    for content in pages {
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        let stream = objects.len();
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {stream} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        ));
        kids.push_str(&format!("{} 0 R ", objects.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len());
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", index + 1).as_bytes());
    }
    let xref = file.len();
    file.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for place in places {
        file.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    file.extend_from_slice(
        format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n", objects.len() + 1)
            .as_bytes(),
    );
    file
}

/// The result of reading a file that a server on loopback has: the page, or the error.
async fn read(file: Vec<u8>, program: &str) -> Result<(String, Vec<String>), String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let _ = stream.read(&mut head).await;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/pdf\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                file.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &file].concat()).await;
        }
    });
    let guard = GuardCommand {
        program: env!("CARGO_BIN_EXE_agentd-web-test-guard").into(),
        args: vec!["guard".into()],
    };
    let pdf = PdfReader { processes: Launcher::new(guard).group(), program: program.into() };
    let allowed = AllowedHosts::parse(std::slice::from_ref(&host)).unwrap();
    let options = WebOptions { allowed, respect_robots: false, ..WebOptions::default() };
    let reader = WebReader::new(WebStore::default(), options, Some(pdf));
    let read = reader.read(&format!("http://{host}/a.pdf"), false, None, &CancellationToken::new()).await;
    server.abort();
    let page = read.map_err(|error| error.to_string())?;
    assert_eq!(page.method, "pdf");
    match page.content {
        PageContent::Text(text) => Ok((text, page.notes)),
        PageContent::Image(_) => Err("an image".to_owned()),
    }
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_agentd-web-test-guard");

#[tokio::test]
async fn the_text_of_all_pages_is_found() {
    let first = "BT /F1 12 Tf 72 700 Td (Hello PDF) Tj 0 -14 Td [(sec) -20 (ond) -400 (line)] TJ 0 -40 Td (Apart) Tj ET";
    let (text, notes) =
        read(pdf(&[first, "BT /F1 12 Tf 72 700 Td (Caf\\351) Tj ET"]), PROGRAM).await.unwrap();
    assert_eq!(text, "[Page 1 of 2]\n\nHello PDF\nsecond line\n\nApart\n\n[Page 2 of 2]\n\nCafé\n\n");
    assert!(notes.is_empty(), "{notes:?}");
}

#[tokio::test]
async fn what_is_no_pdf_or_has_no_text_is_said() {
    let error = read(b"%PDF-1.4\nnothing".to_vec(), PROGRAM).await.unwrap_err();
    assert!(error.contains("no PDF that can be read"), "{error}");
    let (text, _) = read(pdf(&["0 0 m 10 10 l S"]), PROGRAM).await.unwrap();
    assert!(text.contains("has no text"), "{text}");
}

#[tokio::test]
async fn a_reader_that_breaks_down_harms_nobody() {
    let error = read(pdf(&["BT ET"]), "/bin/false").await.unwrap_err();
    assert!(error.contains("broke down"), "{error}");
    let error = read(pdf(&["BT ET"]), "/nowhere/agentd").await.unwrap_err();
    assert!(error.contains("cannot be started"), "{error}");
}

/// A page that draws a form, which draws others: a hundred billion texts. The limit of processor time or of text ends it.
#[tokio::test]
async fn a_file_that_never_ends_is_bounded() {
    let begun = std::time::Instant::now();
    let many = "BT /F1 12 Tf 72 700 Td (again and again) Tj ET\n".repeat(60_000);
    let pages: Vec<&str> = std::iter::repeat_n(many.as_str(), 1).collect();
    let read = read(pdf(&pages), PROGRAM).await;
    assert!(begun.elapsed().as_secs() < 40);
    // On a busy machine, the time ends it.
    match read {
        Ok((text, _)) => assert!(text.len() <= 500_000, "{}", text.len()),
        Err(error) => assert!(error.contains("took more than"), "{error}"),
    }
}
