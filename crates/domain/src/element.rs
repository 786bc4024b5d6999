//! Elements as text: what is to be put into a document, and how it is written.

/// An element to be put into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    name: String,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Element>,
    text: String,
}

impl Element {
    /// Returns an empty element.
    pub(crate) fn new(name: &str) -> Element {
        Element {
            name: name.to_owned(),
            attributes: Vec::new(),
            children: Vec::new(),
            text: String::new(),
        }
    }

    /// Gives it an attribute.
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Element {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// Gives it a text; one with a text has no elements in it.
    pub(crate) fn text(mut self, text: impl ToString) -> Element {
        self.text = text.to_string();
        self
    }

    /// Puts an element into it.
    pub(crate) fn holding(mut self, child: Element) -> Element {
        self.children.push(child);
        self
    }

    /// Returns the element's own name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let named = self.attributes.iter().find(|(key, _)| *key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Writes it: on lines of its own if there is an indentation, on one otherwise.
    pub(crate) fn write(&self, out: &mut String, style: &ElementStyle, indent: Option<&str>) {
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            write_attribute(out, name, value, style.quote);
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        escape(out, &self.text, None);
        let inner = indent.map(|indent| format!("{indent}{}", style.unit));
        for child in &self.children {
            if let Some(inner) = &inner {
                out.push_str(style.newline);
                out.push_str(inner);
            }
            child.write(out, style, inner.as_deref());
        }
        if let (Some(indent), false) = (indent, self.children.is_empty()) {
            out.push_str(style.newline);
            out.push_str(indent);
        }
        out.push_str("</");
        out.push_str(&self.name);
        out.push('>');
    }
}

/// How new elements look.
pub(crate) struct ElementStyle {
    /// One step of indentation.
    pub(crate) unit: String,
    /// The line end.
    pub(crate) newline: &'static str,
    /// The quote around values.
    pub(crate) quote: char,
}

/// Writes an attribute.
pub(crate) fn write_attribute(out: &mut String, name: &str, value: &str, quote: char) {
    out.push_str(name);
    out.push('=');
    out.push(quote);
    escape(out, value, Some(quote));
    out.push(quote);
}

/// Writes a text with the characters escaped that cannot stand there: in an attribute that has a quote also the
/// quote and what would become a blank.
pub(crate) fn escape(out: &mut String, text: &str, quote: Option<char>) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' if quote == Some('\'') => out.push_str("&apos;"),
            '"' if quote == Some('"') => out.push_str("&quot;"),
            '\n' | '\t' if quote.is_some() => out.push_str(&format!("&#{};", u32::from(c))),
            '\r' => out.push_str("&#13;"),
            _ => out.push(c),
        }
    }
}
