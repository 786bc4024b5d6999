//! The document as a tree, seen as libvirt sees it: elements and attributes without a namespace, by name.

use std::borrow::Cow;

use roxmltree::{Document, ParsingOptions};

use crate::error::{DomainError, ErrorKind, position, quoted};
use crate::scan;

pub(crate) type XmlNode<'a, 'i> = roxmltree::Node<'a, 'i>;

/// Parses a document, without document types and so without any entity but XML's own five.
pub(crate) fn document(text: &str) -> Result<Document<'_>, DomainError> {
    scan::check(text)?;
    let options = ParsingOptions {
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| error_of(text, &error))
}

fn error_of(text: &str, error: &roxmltree::Error) -> DomainError {
    use roxmltree::Error as E;
    let pos = error.pos();
    let (line, column) = match error {
        // The parser does not say where.
        E::UnexpectedEndOfStream | E::UnclosedRootNode => position(text, text.len()),
        _ => (pos.row as usize, pos.col as usize),
    };
    let (kind, what) = match error {
        E::UnknownEntityReference(name, _) => (
            ErrorKind::Entity,
            format!(
                "the entity '&{};' is not defined; a domain's XML has only \
                 &lt; &gt; &amp; &quot; &apos; and character references",
                quoted(name)
            ),
        ),
        E::DtdDetected => (
            ErrorKind::Entity,
            "there is a document type declaration; a domain's XML has none and it is not read: \
             remove it"
                .to_owned(),
        ),
        E::NodesLimitReached | E::AttributesLimitReached | E::NamespacesLimitReached => (
            ErrorKind::Limit,
            "the document is larger than any domain's XML".to_owned(),
        ),
        E::UnexpectedCloseTag(expected, found, _) => (
            ErrorKind::Malformed,
            format!(
                "</{}> was found; expected </{}>",
                quoted(found),
                quoted(expected)
            ),
        ),
        E::DuplicatedAttribute(name, _) => (
            ErrorKind::Malformed,
            format!(
                "the attribute {} is there twice; expected it once",
                quoted(name)
            ),
        ),
        E::UnknownNamespace(prefix, _) => (
            ErrorKind::Malformed,
            format!(
                "the prefix '{0}:' is not declared; expected xmlns:{0}='...' on an element around it",
                quoted(prefix)
            ),
        ),
        E::NonXmlChar(c, _) => (
            ErrorKind::Malformed,
            format!("the character U+{:04X} cannot stand in XML", u32::from(*c)),
        ),
        E::UnexpectedDeclaration(_) => (
            ErrorKind::Malformed,
            "the XML declaration stands behind other text; expected it at the very beginning"
                .to_owned(),
        ),
        E::UnexpectedEndOfStream | E::UnclosedRootNode => (
            ErrorKind::Malformed,
            "the document ends here; it seems to be cut off".to_owned(),
        ),
        // The parser's own words end with the place, which is said already.
        other => {
            let said = other.to_string();
            let said = said.strip_suffix(&format!(" at {pos}")).unwrap_or(&said);
            (ErrorKind::Malformed, format!("no well-formed XML: {said}"))
        }
    };
    DomainError {
        kind,
        line,
        column,
        what,
    }
}

/// Returns whether a node is an element with a name, and in no namespace.
pub(crate) fn is(node: XmlNode<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().namespace().is_none() && node.tag_name().name() == name
}

/// Returns the elements in a node that have a name.
pub(crate) fn children<'a, 'i: 'a>(
    node: XmlNode<'a, 'i>,
    name: &'a str,
) -> impl Iterator<Item = XmlNode<'a, 'i>> + 'a {
    node.children().filter(move |child| is(*child, name))
}

/// Returns the first element in a node that has a name.
pub(crate) fn child<'a, 'i: 'a>(node: XmlNode<'a, 'i>, name: &str) -> Option<XmlNode<'a, 'i>> {
    node.children().find(|child| is(*child, name))
}

/// Returns the elements in a node that are in no namespace.
pub(crate) fn elements<'a, 'i: 'a>(
    node: XmlNode<'a, 'i>,
) -> impl Iterator<Item = XmlNode<'a, 'i>> + 'a {
    node.children()
        .filter(|child| child.is_element() && child.tag_name().namespace().is_none())
}

/// Returns an attribute that is in no namespace.
pub(crate) fn attribute<'a, 'i: 'a>(
    node: XmlNode<'a, 'i>,
    name: &str,
) -> Option<roxmltree::Attribute<'a, 'i>> {
    node.attributes()
        .find(|attribute| attribute.namespace().is_none() && attribute.name() == name)
}

/// Returns the value of an attribute that is in no namespace.
pub(crate) fn attr<'a, 'i: 'a>(node: XmlNode<'a, 'i>, name: &str) -> Option<&'a str> {
    attribute(node, name).map(|attribute| attribute.value())
}

/// Returns the text in an element, comments left out, without the blanks around it.
pub(crate) fn text<'a, 'i: 'a>(node: XmlNode<'a, 'i>) -> Cow<'a, str> {
    let mut pieces = node
        .children()
        .filter(|child| child.is_text())
        .filter_map(|child| child.text());
    let first = pieces.next().unwrap_or_default();
    match pieces.next() {
        None => Cow::Borrowed(first.trim()),
        Some(second) => {
            let mut all = format!("{first}{second}");
            all.extend(pieces);
            Cow::Owned(all.trim().to_owned())
        }
    }
}

/// Returns the domain in a document: its root, or the only one in what libvirt wraps around one.
pub(crate) fn domain<'a, 'i>(doc: &'a Document<'i>) -> Result<XmlNode<'a, 'i>, DomainError> {
    let root = doc.root_element();
    let error = |what| {
        let start = root.range().start;
        Err(DomainError::at(
            doc.input_text(),
            start,
            ErrorKind::NotDomain,
            what,
        ))
    };
    let name = quoted(root.tag_name().name());
    if is(root, "domain") {
        return Ok(root);
    }
    if let Some(namespace) = root.tag_name().namespace() {
        return error(format!(
            "<{name}> is in the namespace '{}'; expected <domain> without one",
            quoted(namespace)
        ));
    }
    let mut inner = children(root, "domain");
    match (inner.next(), inner.next()) {
        (Some(domain), None) => Ok(domain),
        (Some(_), Some(_)) => error(format!(
            "<{name}> holds several domains; expected one: give each a file of its own"
        )),
        (None, _) => error(format!(
            "<{name}> is no domain; expected <domain>, as virsh dumpxml prints it"
        )),
    }
}
