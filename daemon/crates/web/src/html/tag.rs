//! The kinds of elements that are treated in some way.

/// The kind of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    A,
    Abbr,
    Article,
    Aside,
    Base,
    Blockquote,
    Body,
    Br,
    Button,
    Code,
    Dd,
    Del,
    Details,
    Dialog,
    Div,
    Dl,
    Dt,
    Em,
    Embedded,
    Figcaption,
    Figure,
    Footer,
    Form,
    Head,
    Header,
    Heading(u8),
    Hr,
    Html,
    Img,
    Input,
    Li,
    Link,
    Main,
    Math,
    Meta,
    Nav,
    Noscript,
    Ol,
    Option,
    Other,
    P,
    Pre,
    Quote,
    Section,
    Select,
    Skipped,
    Strong,
    Summary,
    Svg,
    Table,
    Tbody,
    Td,
    Template,
    Textarea,
    Th,
    Thead,
    Title,
    Tr,
    Ul,
}

impl Tag {
    /// The kind of an element of this name, in lower case.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "a" => Self::A,
            "abbr" => Self::Abbr,
            "article" => Self::Article,
            "aside" => Self::Aside,
            "base" => Self::Base,
            "blockquote" => Self::Blockquote,
            "body" => Self::Body,
            "br" => Self::Br,
            "button" => Self::Button,
            "code" | "kbd" | "samp" | "tt" | "var" => Self::Code,
            "dd" => Self::Dd,
            "del" | "s" | "strike" => Self::Del,
            "details" => Self::Details,
            "dialog" => Self::Dialog,
            "div" | "address" | "center" | "fieldset" | "hgroup" | "search" => Self::Div,
            "dl" => Self::Dl,
            "dt" => Self::Dt,
            "em" | "i" | "cite" | "dfn" => Self::Em,
            "audio" | "canvas" | "embed" | "iframe" | "map" | "object" | "video" | "frameset" | "frame" => {
                Self::Embedded
            }
            "figcaption" => Self::Figcaption,
            "figure" => Self::Figure,
            "footer" => Self::Footer,
            "form" => Self::Form,
            "head" => Self::Head,
            "header" => Self::Header,
            "h1" => Self::Heading(1),
            "h2" => Self::Heading(2),
            "h3" => Self::Heading(3),
            "h4" => Self::Heading(4),
            "h5" => Self::Heading(5),
            "h6" => Self::Heading(6),
            "hr" => Self::Hr,
            "html" => Self::Html,
            "img" | "image" => Self::Img,
            "input" => Self::Input,
            "li" => Self::Li,
            "link" => Self::Link,
            "main" => Self::Main,
            "math" => Self::Math,
            "meta" => Self::Meta,
            "nav" | "menu" => Self::Nav,
            "noscript" => Self::Noscript,
            "ol" => Self::Ol,
            "option" | "optgroup" => Self::Option,
            "p" => Self::P,
            "pre" | "listing" | "xmp" | "plaintext" => Self::Pre,
            "q" => Self::Quote,
            "section" => Self::Section,
            "select" | "datalist" => Self::Select,
            "script" | "style" | "noframes" | "noembed" | "rp" | "progress" | "meter" => Self::Skipped,
            "b" | "strong" => Self::Strong,
            "summary" => Self::Summary,
            "svg" => Self::Svg,
            "table" => Self::Table,
            "tbody" | "tfoot" => Self::Tbody,
            "td" => Self::Td,
            "template" => Self::Template,
            "textarea" => Self::Textarea,
            "th" => Self::Th,
            "thead" => Self::Thead,
            "title" => Self::Title,
            "tr" => Self::Tr,
            "ul" | "dir" => Self::Ul,
            _ => Self::Other,
        }
    }

    /// Whether it stands on lines of its own.
    pub(crate) fn is_block(self) -> bool {
        matches!(
            self,
            Self::Article
                | Self::Aside
                | Self::Blockquote
                | Self::Body
                | Self::Br
                | Self::Dd
                | Self::Details
                | Self::Dialog
                | Self::Div
                | Self::Dl
                | Self::Dt
                | Self::Figcaption
                | Self::Figure
                | Self::Footer
                | Self::Form
                | Self::Header
                | Self::Heading(_)
                | Self::Hr
                | Self::Html
                | Self::Li
                | Self::Main
                | Self::Nav
                | Self::Ol
                | Self::P
                | Self::Pre
                | Self::Section
                | Self::Summary
                | Self::Table
                | Self::Tbody
                | Self::Td
                | Self::Th
                | Self::Thead
                | Self::Tr
                | Self::Ul
        )
    }

    /// Whether nothing of it is ever shown as text.
    pub(crate) fn is_silent(self) -> bool {
        matches!(
            self,
            Self::Base
                | Self::Embedded
                | Self::Head
                | Self::Link
                | Self::Meta
                | Self::Noscript
                | Self::Select
                | Self::Skipped
                | Self::Svg
                | Self::Template
                | Self::Textarea
                | Self::Title
        )
    }
}
