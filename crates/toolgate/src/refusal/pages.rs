//! Many short pages in one text: what holds for a group of codes stands once, and each page is made whole with it.

/// A text of pages. `# GROUP` begins a group, with `- HEADING: text` for what holds for all of it; `## CODE` begins a
/// code, with what it means and, where there is one, an example of `Wrong` and `Right`.
#[derive(Clone, Copy, Debug)]
pub struct Pages(&'static str);

/// The headings of every page.
pub const HEADINGS: [&str; 4] = ["What it means", "Why it happens", "What to do", "What happened to the effect"];

impl Pages {
    /// The pages of this text.
    pub const fn of(text: &'static str) -> Self {
        Self(text)
    }

    /// The codes, in the order of the text.
    pub fn codes(self) -> impl Iterator<Item = &'static str> {
        self.0.lines().filter_map(|line| line.strip_prefix("## "))
    }

    /// The page of a code, in Markdown.
    pub fn page(self, code: &str) -> Option<String> {
        let mut group: Vec<&str> = Vec::new();
        let mut lines = self.0.lines();
        loop {
            let line = lines.next()?;
            match line.strip_prefix("## ") {
                Some(found) if found == code => break,
                Some(_) => {}
                None if line.starts_with("# ") => group.clear(),
                None => group.push(line),
            }
        }
        let own: Vec<&str> = lines.take_while(|line| !line.starts_with('#')).collect();
        let is_example = |line: &&str| line.starts_with("Wrong") || line.starts_with("Right");
        let [means, why, todo, effect] = HEADINGS;
        let prose: Vec<&str> = own.iter().copied().filter(|line| !is_example(line)).collect();
        let examples: Vec<&str> = own.iter().copied().filter(is_example).flat_map(|line| line.split(" / ")).collect();
        let example = |word| examples.iter().copied().filter(move |line| line.starts_with(word));
        let mut page = format!("# {code}\n");
        section(&mut page, means, prose.join("\n").trim(), [].into_iter());
        section(&mut page, why, &shared(&group, why), example("Wrong"));
        section(&mut page, todo, &shared(&group, todo), example("Right"));
        section(&mut page, effect, &shared(&group, effect), [].into_iter());
        Some(page)
    }
}

/// What a group says under a heading: the line that begins with it, and those that are indented below.
fn shared(group: &[&str], heading: &str) -> String {
    let begins = |line: &&&str| line.strip_prefix("- ").is_some_and(|line| line.starts_with(heading));
    let mut lines = group.iter().skip_while(|line| !begins(line));
    let first = lines.next().and_then(|line| line.split_once(": ")).map_or("", |(_, text)| text);
    let more = lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim_start());
    std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n")
}

fn section<'a>(page: &mut String, heading: &str, text: &str, examples: impl Iterator<Item = &'a str>) {
    page.push_str(&format!("\n## {heading}\n\n{text}\n"));
    for example in examples {
        page.push_str(&format!("\n{example}\n"));
    }
}
