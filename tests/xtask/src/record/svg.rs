//! An animated SVG image of frames: each row is drawn once for each time that it is there, and style sheets show and hide it. Pure.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use super::frames::{COLUMNS, Colour, Frames, ROWS, Row, Run, Style};

/// Of a cell, in pixels.
const WIDTH: f64 = 8.0;
const HEIGHT: f64 = 18.0;
/// Around the cells.
const MARGIN: f64 = 14.0;
/// The bar with the buttons of a window.
const BAR: f64 = 28.0;

/// Colours 0 to 15, then text and background, for dark and light pages.
const PALETTES: [[&str; 18]; 2] = [
    [
        "#3b4252", "#f07178", "#a5d175", "#f2c76e", "#7aa8ff", "#d193e3", "#6ecbd8", "#d3d7e0", "#7b869c",
        "#ff8b92", "#b9e58a", "#ffd98a", "#94bbff", "#e0abf0", "#89dfea", "#ffffff", "#dfe3ec", "#1b1f2a",
    ],
    [
        "#e3e6ec", "#c4303a", "#3f7d1c", "#946200", "#2257c4", "#8b3aa8", "#0f7480", "#3d4454", "#70798c",
        "#d63a45", "#4b8f25", "#a66f00", "#2f69dd", "#9d4abb", "#138593", "#12151c", "#252a35", "#fafbfc",
    ],
];

/// The image.
pub(crate) fn image(frames: &Frames) -> String {
    let total: Duration = frames.iter().map(|frame| frame.shown).sum();
    let shown = intervals(frames);
    let (width, height) =
        (f64::from(COLUMNS) * WIDTH + 2.0 * MARGIN, f64::from(ROWS) * HEIGHT + 2.0 * MARGIN + BAR);
    let mut names: BTreeMap<(Duration, Duration), usize> = BTreeMap::new();
    let mut body = String::new();
    for interval in &shown {
        let always = interval.start.is_zero() && interval.end == total;
        let class = match (always, interval.end == total) {
            (true, _) => String::new(),
            (false, is_last) => {
                let next = names.len();
                let name = names.entry((interval.start, interval.end)).or_insert(next);
                format!(" class=\"{}\" style=\"animation-name:k{name}\"", if is_last { "r l" } else { "r" })
            }
        };
        element(&mut body, interval, &class);
    }
    let mut keyframes = String::new();
    for ((start, end), name) in &names {
        add(&mut keyframes, &frames_of(*name, *start, *end, total));
    }
    let dots: String = [0, 1, 2]
        .map(|at| {
            format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"5\"/>",
                MARGIN + 6.0 + 16.0 * f64::from(at),
                BAR / 2.0 + 3.0
            )
        })
        .concat();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         xml:space=\"preserve\"><title>agentctl in a terminal</title>\n<style>\n{}{}\
         .r{{visibility:hidden;animation:{}s step-end infinite}}.l{{visibility:visible}}\n{keyframes}\
         @media(prefers-reduced-motion:reduce){{.r{{animation:none}}}}\n</style>\n\
         <rect class=\"w\" width=\"{width}\" height=\"{height}\" rx=\"8\"/><g class=\"d\">{dots}</g>\n<g class=\"t\">\n{body}</g>\n</svg>\n",
        palette(PALETTES[0]),
        format_args!("@media(prefers-color-scheme:light){{{}}}\n", palette(PALETTES[1])),
        seconds(total),
    )
}

/// A row, and from when to when it is shown.
struct Interval<'a> {
    row: usize,
    content: &'a Row,
    start: Duration,
    end: Duration,
}

fn intervals(frames: &Frames) -> Vec<Interval<'_>> {
    let mut done = Vec::new();
    let mut open: Vec<Option<Interval<'_>>> = (0..ROWS).map(|_| None).collect();
    let mut now = Duration::ZERO;
    for frame in frames.iter() {
        for (row, content) in frame.rows.iter().enumerate() {
            if let Some(before) = open[row].take_if(|before| before.content != content) {
                done.push(before);
            }
            if !content.is_empty() {
                let interval = open[row].get_or_insert(Interval { row, content, start: now, end: now });
                interval.end = now + frame.shown;
            }
        }
        now += frame.shown;
    }
    done.extend(open.into_iter().flatten());
    // In the order of reading, so that text is selected as it stands.
    done.sort_by_key(|interval| (interval.row, interval.start));
    done
}

fn element(body: &mut String, interval: &Interval<'_>, class: &str) {
    let row = f64::from(u16::try_from(interval.row).unwrap_or(ROWS));
    let top = MARGIN + BAR + row * HEIGHT;
    let backs: Vec<&Run> = interval.content.iter().filter(|run| run.style.back != Colour::Default).collect();
    if backs.is_empty() {
        add(body, &format!("<text y=\"{}\"{class}>{}</text>\n", top + 13.0, spans(interval.content)));
        return;
    }
    add(body, &format!("<g{class}>"));
    for run in backs {
        add(
            body,
            &format!(
                "<rect x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{HEIGHT}\"{}/>",
                x(run.column),
                f64::from(run.width) * WIDTH,
                paint(run.style.back, "")
            ),
        );
    }
    add(body, &format!("<text y=\"{}\">{}</text></g>\n", top + 13.0, spans(interval.content)));
}

fn spans(row: &Row) -> String {
    row.iter()
        .map(|run| {
            // A font may be wider or narrower than a cell; one character has no length to be set.
            let length = if run.width > 1 {
                format!(" textLength=\"{}\"", f64::from(run.width) * WIDTH)
            } else {
                String::new()
            };
            format!(
                "<tspan x=\"{}\"{length}{}>{}</tspan>",
                x(run.column),
                paint(run.style.front, classes(run.style)),
                escaped(&run.text)
            )
        })
        .collect()
}

/// A line of a string that takes every line.
fn add(text: &mut String, more: &str) {
    let _ = write!(text, "{more}");
}

fn x(column: u16) -> f64 {
    MARGIN + f64::from(column) * WIDTH
}

fn classes(style: Style) -> &'static str {
    match (style.is_bold, style.is_dim, style.is_italic, style.is_underlined) {
        (false, false, false, false) => "",
        (true, false, false, false) => "b",
        (_, true, false, false) => "m",
        (true, false, false, true) => "b u",
        (true, false, true, _) => "b i",
        (_, true, true, _) => "m i",
        (_, true, _, true) => "m u",
        (false, false, true, true) => "i u",
        (false, false, true, false) => "i",
        (false, false, false, true) => "u",
    }
}

fn paint(colour: Colour, classes: &str) -> String {
    let (class, fill) = match colour {
        Colour::Default => (String::new(), String::new()),
        Colour::Named(name) => (format!("c{name}"), String::new()),
        Colour::Exact(red, green, blue) => {
            (String::new(), format!(" style=\"fill:#{red:02x}{green:02x}{blue:02x}\""))
        }
    };
    let all = [classes, class.as_str()].join(" ").trim().to_owned();
    if all.is_empty() { fill } else { format!(" class=\"{all}\"{fill}") }
}

fn palette(colours: [&str; 18]) -> String {
    let named: String = (0..16).map(|at| format!(".c{at}{{fill:{}}}", colours[at])).collect();
    format!(
        ".t{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:{}}}text{{white-space:pre}}.w{{fill:{}}}.d{{fill:{}}}{named}\
         .b{{font-weight:700}}.m{{opacity:.62}}.i{{font-style:italic}}.u{{text-decoration:underline}}\n",
        colours[16], colours[17], colours[8]
    )
}

/// Shows something from `start` to `end`.
fn frames_of(name: usize, start: Duration, end: Duration, total: Duration) -> String {
    let part = |time: Duration| {
        let text = format!("{:.3}", time.as_secs_f64() / total.as_secs_f64() * 100.0);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let before = if start.is_zero() { "" } else { "0%{visibility:hidden}" };
    let after = if end == total { String::new() } else { format!("{}%{{visibility:hidden}}", part(end)) };
    format!("@keyframes k{name}{{{before}{}%{{visibility:visible}}{after}}}\n", part(start))
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Row {
        let style = Style {
            front: Colour::Named(1),
            back: Colour::Default,
            is_bold: true,
            is_dim: false,
            is_italic: false,
            is_underlined: false,
        };
        let width = u16::try_from(text.len()).unwrap();
        vec![Run { column: 2, width, text: text.to_owned(), style }]
    }

    fn frames(rows: &[&[&str]]) -> Frames {
        let mut frames = Frames::default();
        for texts in rows {
            let mut rows: Vec<Row> = texts.iter().map(|text| run(text)).collect();
            rows.resize(usize::from(ROWS), Vec::new());
            frames.show(rows, Duration::from_secs(1));
        }
        frames
    }

    #[test]
    fn a_row_is_drawn_once_for_each_time_that_it_is_there() {
        let image = image(&frames(&[&["a<b"], &["a<b", "c"], &["d", "c"], &["a<b", "c"]]));
        assert_eq!(image.matches(">a&lt;b</tspan>").count(), 2);
        assert_eq!(image.matches(">c</tspan>").count(), 1);
        assert!(image.contains("animation:4.00s step-end infinite"), "{image}");
        assert!(image.contains("0%{visibility:visible}50%{visibility:hidden}}"), "{image}");
        assert!(image.contains("{0%{visibility:hidden}25%{visibility:visible}}"), "{image}");
        assert!(
            image.contains("{0%{visibility:hidden}50%{visibility:visible}75%{visibility:hidden}}"),
            "{image}"
        );
        assert!(image.contains("<tspan x=\"30\" textLength=\"24\" class=\"b c1\">"), "{image}");
    }

    #[test]
    fn what_is_always_there_does_not_move() {
        let image = image(&frames(&[&["a"], &["a", "b"]]));
        assert!(image.contains("<text y=\"55\"><tspan"), "{image}");
        // The last screen is shown where nothing may move.
        assert!(image.contains("class=\"r l\""), "{image}");
    }

    #[test]
    fn text_is_text() {
        assert_eq!(escaped("</style>&"), "&lt;/style&gt;&amp;");
    }
}
