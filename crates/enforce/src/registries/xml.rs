//! As much of XML as Maven's files use: elements with text. Attributes, namespaces and document types are passed over.

/// An element.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

/// Deeper documents are not ours.
const MAX_DEPTH: usize = 64;

impl Element {
    /// Children of this name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |c| c.name == name)
    }

    /// The first child of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    /// The text of the first child of this name.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        Some(self.child(name)?.text.trim()).filter(|t| !t.is_empty())
    }
}

/// The document's outermost element. What is malformed ends the reading; what was read until then counts.
pub(super) fn parse(text: &str) -> Element {
    let mut stack: Vec<Element> = vec![Element::default()];
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        if let Some(top) = stack.last_mut() {
            top.text.push_str(&unescape(before));
        }
        rest = if let Some(comment) = after.strip_prefix("!--") {
            comment.split_once("-->").map_or("", |(_, r)| r)
        } else if let Some(data) = after.strip_prefix("![CDATA[") {
            let (data, r) = data.split_once("]]>").unwrap_or((data, ""));
            if let Some(top) = stack.last_mut() {
                top.text.push_str(data);
            }
            r
        } else if after.starts_with(['!', '?']) {
            after.split_once('>').map_or("", |(_, r)| r)
        } else {
            let Some((tag, r)) = after.split_once('>') else { break };
            if tag.starts_with('/') {
                close(&mut stack);
            } else {
                let name = tag.split([' ', '\t', '\n', '\r', '/']).next().unwrap_or_default();
                stack.push(Element { name: name.to_owned(), ..Element::default() });
                if tag.ends_with('/') {
                    close(&mut stack);
                }
            }
            if stack.len() > MAX_DEPTH {
                break;
            }
            r
        };
    }
    while stack.len() > 1 {
        close(&mut stack);
    }
    stack
        .pop()
        .and_then(|mut root| if root.children.is_empty() { None } else { Some(root.children.remove(0)) })
        .unwrap_or_default()
}

fn close(stack: &mut Vec<Element>) {
    if stack.len() > 1
        && let Some(done) = stack.pop()
        && let Some(parent) = stack.last_mut()
    {
        parent.children.push(done);
    }
}

fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_comments_and_entities() {
        let root = parse(
            "<?xml version=\"1.0\"?>\n<!-- <settings><x/></settings> -->\n<settings xmlns=\"u\">\n <mirrors><mirror>\
             <id>a</id><url> https://a.test/x?b&amp;c </url><blocked/></mirror><mirror><url><![CDATA[https://b.test]]></url></mirror></mirrors></settings>",
        );
        assert_eq!(root.name, "settings");
        let mirrors: Vec<_> = root.child("mirrors").unwrap().all("mirror").map(|m| m.value("url").unwrap()).collect();
        assert_eq!(mirrors, ["https://a.test/x?b&c", "https://b.test"]);
        assert!(root.child("mirrors").unwrap().children[0].child("blocked").is_some());
    }

    #[test]
    fn broken_documents_end() {
        for text in ["", "<", "<a", "<a><b>", "</a>", "<!--", "<a/><b/>", "<![CDATA["] {
            let _ = parse(text);
        }
        let _ = parse(&"<a>".repeat(100_000));
    }
}
