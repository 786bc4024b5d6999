//! The page.

use std::fmt::Write;

use render::html::escape;

/// Returns a page of sections, each a heading and a text that keeps its columns.
pub fn page(title: &str, sections: &[(String, String)]) -> String {
    let mut out = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
    );
    let _ = writeln!(out, "<title>{}</title>", escape(title));
    out.push_str(
        "<style>\nbody{font-family:sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\n\
         pre{overflow-x:auto;background:#f6f6f6;color:#111;padding:1em}\n</style>\n</head>\n<body>\n",
    );
    let _ = writeln!(out, "<h1>{}</h1>", escape(title));
    for (heading, text) in sections {
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<pre>{}</pre>",
            escape(heading),
            escape(text)
        );
    }
    out.push_str("</body>\n</html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let page = page(
            "<script>",
            &[(
                "a\"b".to_owned(),
                "</pre><script>alert(1)</script>\x1b[0m".to_owned(),
            )],
        );
        assert!(!page.contains("<script"));
        assert!(page.contains("&lt;/pre&gt;&lt;script&gt;"));
        assert!(!page.contains('\x1b'));
    }
}
