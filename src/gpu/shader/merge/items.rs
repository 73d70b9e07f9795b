//! The declarations of a text in WGSL, and which of them depend on which.

use rustc_hash::{FxHashMap, FxHashSet};

/// A piece of a text: a name, or what lies between names.
#[derive(Clone, Copy)]
pub struct Token<'a> {
    /// Its characters.
    pub text: &'a str,
    /// Whether it is a name.
    pub is_name: bool,
}

impl Token<'_> {
    fn is_space(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_whitespace())
    }
}

/// The tokens of a text: names, numbers, white space, and other characters one by one.
fn tokens(mut text: &str) -> Vec<Token<'_>> {
    let mut all = Vec::with_capacity(text.len() / 3);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(first) = text.chars().next() {
        if text.starts_with("//") {
            text = &text[text.find('\n').unwrap_or(text.len())..];
            continue;
        }
        let is_name = first.is_ascii_alphabetic() || first == '_';
        let length = match first {
            _ if is_name => text.find(|c| !is_part(c)),
            first if first.is_ascii_digit() => text.find(|c| !is_part(c) && c != '.'),
            first if first.is_whitespace() => text.find(|c: char| !c.is_whitespace()),
            first => Some(first.len_utf8()),
        };
        let (token, rest) = text.split_at(length.unwrap_or(text.len()));
        all.push(Token { text: token, is_name });
        text = rest;
    }
    all
}

/// A declaration of a module.
pub struct Item<'a> {
    /// `fn`, `var`, `const`, `struct`, `alias` or `enable`.
    pub keyword: &'a str,
    /// What it declares.
    pub name: &'a str,
    /// All of it.
    pub tokens: Vec<Token<'a>>,
}

impl<'a> Item<'a> {
    fn new(tokens: Vec<Token<'a>>) -> Option<Item<'a>> {
        let known = ["fn", "var", "const", "struct", "alias", "enable"];
        let at = tokens.iter().position(|token| known.contains(&token.text))?;
        // Behind the address space of a variable.
        let mut depth = 0;
        let name = tokens[at + 1..].iter().find(|token| {
            depth += i32::from(token.text == "<") - i32::from(token.text == ">");
            token.is_name && depth == 0
        });
        Some(Item { keyword: tokens[at].text, name: name?.text, tokens })
    }

    /// The address space of a variable.
    pub fn is_in(&self, space: &str) -> bool {
        self.keyword == "var" && self.tokens.iter().any(|token| token.text == space)
    }

    /// Where names stand that may be those of declarations: not of members or attributes.
    fn names(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        let near = |token: Option<&Token<'a>>| token.map_or("", |token| token.text);
        let is_it = move |i: &usize| {
            let token = self.tokens[*i];
            let before = i.checked_sub(1).and_then(|i| self.tokens.get(i));
            let after = self.tokens[*i + 1..].iter().find(|token| !token.is_space());
            let is_member = near(before) == "." || (self.keyword == "struct" && near(after) == ":");
            token.is_name && !is_member && near(before) != "@"
        };
        (0..self.tokens.len()).filter(is_it).map(|i| (i, self.tokens[i].text))
    }

    /// The number of a binding.
    pub fn binding(&self) -> Option<usize> {
        self.tokens.iter().skip_while(|token| token.text != "binding").nth(2)?.text.parse().ok()
    }

    /// Whether a function has a variable of its own of this name.
    fn shadows(&self, name: &str) -> bool {
        let words: Vec<&str> = self.tokens.iter().filter(|t| !t.is_space()).map(|t| t.text).collect();
        let declares = |pair: &[&str]| {
            (pair[1] == name && matches!(pair[0], "let" | "var")) || (pair[0] == name && pair[1] == ":")
        };
        self.keyword == "fn" && words.windows(2).any(declares)
    }

    /// Whether elements of a binding stand there.
    pub fn indexes(&self, name: &str) -> bool {
        self.tokens.windows(2).any(|pair| pair[0].text == name && pair[1].text == "[")
    }

    /// Whether it is a function `fn NAME(i: u32, v: V) { OUT[i] = WORDS; }`.
    pub fn only_stores_to(&self, out: &str) -> bool {
        let body = self.tokens.iter().skip_while(|token| token.text != "{").skip(1);
        let words: Vec<&str> = body.filter(|token| !token.is_space()).map(|token| token.text).collect();
        words.first() == Some(&out) && words.iter().filter(|word| **word == ";").count() == 1
    }

    /// The text from a token on, with other names.
    pub fn renamed(&self, from: usize, new: impl Fn(&str) -> Option<String>) -> String {
        let mut names = self.names().filter(|(i, _)| *i >= from).peekable();
        let mut out = String::new();
        for (i, token) in self.tokens.iter().enumerate().skip(from) {
            let name = names.next_if(|(place, _)| *place == i);
            match name.and_then(|(_, name)| if name == "p" && self.shadows("p") { None } else { new(name) }) {
                Some(new) => out.push_str(&new),
                None => out.push_str(token.text),
            }
        }
        out
    }
}

/// The declarations of a text.
pub struct Items<'a> {
    /// In order.
    pub all: Vec<Item<'a>>,
    by_name: FxHashMap<&'a str, usize>,
}

impl<'a> Items<'a> {
    /// Those of a text.
    pub fn of(text: &'a str) -> Items<'a> {
        let (mut all, mut own, mut depth) = (Vec::new(), Vec::new(), 0);
        for token in tokens(text) {
            depth += i32::from(token.text == "{") - i32::from(token.text == "}");
            own.push(token);
            if depth == 0 && matches!(token.text, ";" | "}") {
                all.extend(Item::new(std::mem::take(&mut own)));
            }
        }
        let by_name = all.iter().enumerate().map(|(i, item)| (item.name, i)).collect();
        Items { all, by_name }
    }

    /// What is declared under a name.
    pub fn find(&self, name: &str) -> Option<&Item<'a>> {
        self.by_name.get(name).map(|&i| &self.all[i])
    }

    /// The function that stores the elements of a binding, if one does among what is reached, and in a way
    /// that others can take them.
    pub fn store_of(&self, reached: &FxHashSet<&str>, binding: &str) -> Option<&'a str> {
        let mut names = ["store4", "store"].map(|verb| format!("{verb}_{binding}")).into_iter();
        let store = self.find(&names.find(|name| reached.contains(name.as_str()))?)?;
        store.only_stores_to(binding).then_some(store.name)
    }

    /// The names that an entry point needs.
    pub fn reached(&self, entry: &str) -> FxHashSet<&'a str> {
        let mut reached = FxHashSet::default();
        let mut open: Vec<usize> = self.by_name.get(entry).copied().into_iter().collect();
        while let Some(item) = open.pop() {
            if reached.insert(self.all[item].name) {
                open.extend(self.all[item].names().filter_map(|(_, name)| self.by_name.get(name).copied()));
            }
        }
        reached
    }

    /// The names that depend on bindings or parameters.
    pub fn bound(&self) -> FxHashSet<&'a str> {
        let is_binding = |item: &&Item| item.is_in("storage") || item.is_in("uniform");
        let mut bound: FxHashSet<&str> = self.all.iter().filter(is_binding).map(|item| item.name).collect();
        loop {
            let depends = |item: &&Item<'a>| {
                let is_bound = |name: &str| bound.contains(name) && !(name == "p" && item.shadows("p"));
                !bound.contains(item.name) && item.names().any(|(_, name)| is_bound(name))
            };
            let more: Vec<&str> = self.all.iter().filter(depends).map(|item| item.name).collect();
            if more.is_empty() {
                return bound;
            }
            bound.extend(more);
        }
    }
}

/// The name of the parameter that an entry point has for something built in.
pub fn parameter<'a>(entry: &Item<'a>, built_in: &str) -> Option<&'a str> {
    let at = entry.tokens.iter().position(|token| token.text == built_in)?;
    entry.tokens[at + 1..].iter().find(|token| token.is_name).map(|token| token.text)
}
