//! How long a page takes to become Markdown: `page [FILE]` reads a file, else a page of a megabyte that it makes itself.

use std::{io::Write as _, time::Instant};

/// Times that a page is read; the middle one is told.
const TIMES: usize = 21;

fn main() -> std::io::Result<()> {
    let page = match std::env::args().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => made(),
    };
    let mut times = Vec::with_capacity(TIMES);
    let mut length = 0;
    for _ in 0..TIMES {
        let begun = Instant::now();
        length = agentd_web::page_markdown(&page).len();
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let (middle, worst) = (times[TIMES / 2], times[TIMES - 1]);
    writeln!(
        std::io::stdout(),
        "{} bytes of HTML, {length} bytes of Markdown: {middle:?} (worst {worst:?})",
        page.len()
    )
}

/// A page of documentation of about a megabyte: prose, code, lists, tables and what surrounds them.
fn made() -> String {
    let mut page = String::from("<!DOCTYPE html><html><head><title>Made</title></head><body><nav>");
    for index in 0..200 {
        page.push_str(&format!("<a class=\"nav-link item-{index}\" href=\"/s/{index}\">Section {index}</a>"));
    }
    page.push_str("</nav><div class=\"layout\"><main class=\"content markdown\">");
    let mut index = 0;
    while page.len() < 1 << 20 {
        index += 1;
        page.push_str(&format!(
            "<section id=\"s{index}\"><h2 class=\"title\">Section {index} <a class=headerlink href=\"#s{index}\">¶</a></h2>\
             <p>The function <code class=\"name\">f{index}</code> takes <a href=\"../types/t{index}.html\">a value</a> and <em>returns</em> \
             another, which is <strong>never</strong> the same &amp; always valid; see the text below for what it does, and why.</p>\
             <div class=\"highlight-rust\"><pre><code><span class=k>fn</span> <span class=n>f{index}</span>(x: u32) -&gt; u32 {{\n    x + {index}\n}}</code></pre></div>\
             <ul><li>first item with <a href=\"#a\">a link</a></li><li>second item</li></ul>\
             <table><thead><tr><th>Name</th><th>Type</th></tr></thead><tbody><tr><td>x</td><td>u32</td></tr><tr><td>y</td><td>u64</td></tr></tbody></table></section>"
        ));
    }
    page.push_str("</main><footer>foot</footer></div></body></html>");
    page
}
