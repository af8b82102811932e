//! The tokens that are being printed. What is generated anew for each definition takes an allocation for each of its names:
//! the printer copies them once, into room that it keeps. What is the same in each definition is not generated anew: it is
//! a [`template!`], whose tokens are made once.

use std::fmt::Write as _;

use std::ops::Range;
use std::rc::Rc;

use proc_macro2::{Delimiter, Group, Ident, Literal, Spacing, Span, TokenStream, TokenTree};

/// Tokens in one list, each group before what is inside it. Their names and literals are in one text: none of them is
/// held on its own.
#[derive(Debug, Default)]
pub(super) struct Flat {
    text: String,
    tokens: Vec<Token>,
    templates: Vec<Template>,
    /// Octets of the text that belong to the templates.
    kept: usize,
}

/// Tokens with holes.
#[derive(Debug)]
struct Template {
    site: Site,
    tokens: Rc<[Token]>,
}

/// The module and the line of a template.
pub(super) type Site = (&'static str, u32);

/// What is put into a hole. It can be put into several.
enum Filling {
    New(TokenTree),
    /// The tokens that it became.
    Added(Range<usize>),
}

/// What the names of holes begin with; no name of IDL has an underscore in front.
const HOLE: &str = "__hole";

/// A token of a [`Flat`] list; a name or literal is a range of its text.
#[derive(Clone, Copy, Debug)]
enum Token {
    Ident(u32, u32),
    Literal(u32, u32),
    Punct(char, Spacing),
    /// The number of tokens inside, at all levels.
    Group(Delimiter, u32),
    /// A hole of a template; not in what is printed.
    Hole(usize),
}

/// A part of a [`Flat`] list.
#[derive(Clone, Copy)]
pub(super) struct Slice<'f> {
    text: &'f str,
    tokens: &'f [Token],
}

/// A token to be printed.
pub(super) enum Tree<'f> {
    Ident(&'f str),
    Literal(&'f str),
    Punct(char, Spacing),
    Group(Delimiter, Slice<'f>),
}

impl Flat {
    /// Adds tokens, and drops them.
    pub(super) fn add(&mut self, tokens: TokenStream) {
        for token in tokens {
            self.add_one(token);
        }
    }

    fn add_one(&mut self, token: TokenTree) {
        match token {
            TokenTree::Ident(ident) => {
                let (begin, end) = self.write(&ident);
                self.tokens.push(Token::Ident(begin, end));
            }
            TokenTree::Literal(literal) => {
                let (begin, end) = self.write(&literal);
                self.tokens.push(Token::Literal(begin, end));
            }
            TokenTree::Punct(punct) => {
                let token = Token::Punct(punct.as_char(), punct.spacing());
                self.tokens.push(token);
            }
            TokenTree::Group(group) => {
                let (delimiter, inside) = (group.delimiter(), group.stream());
                // A list that nothing else holds is not copied.
                drop(group);
                match delimiter {
                    Delimiter::None => self.add_filled(inside),
                    _ => self.group(delimiter, |flat| flat.add(inside)),
                }
            }
        }
    }

    fn group(&mut self, delimiter: Delimiter, inside: impl FnOnce(&mut Self)) {
        let at = self.tokens.len();
        self.tokens.push(Token::Group(delimiter, 0));
        inside(self);
        let count = offset(self.tokens.len() - at - 1);
        self.tokens[at] = Token::Group(delimiter, count);
    }

    /// Adds a template with what is in its holes.
    fn add_filled(&mut self, filled: TokenStream) {
        let mut parts = filled.into_iter();
        let number = parts.next().map(|number| number.to_string());
        let number: Option<usize> = number.and_then(|number| number.parse().ok());
        let Some(template) = number.and_then(|number| self.templates.get(number)) else {
            unreachable!("only templates are groups without brackets");
        };
        let template = Rc::clone(&template.tokens);
        let mut fillings: Vec<Filling> = parts.map(Filling::New).collect();
        self.fill(&template, &mut fillings);
    }

    fn fill(&mut self, mut template: &[Token], fillings: &mut [Filling]) {
        while let Some((&first, rest)) = template.split_first() {
            template = rest;
            match first {
                Token::Hole(number) => self.fill_hole(&mut fillings[number]),
                Token::Group(delimiter, count) => {
                    let (inside, behind) = rest.split_at(count as usize);
                    self.group(delimiter, |flat| flat.fill(inside, fillings));
                    template = behind;
                }
                token => self.tokens.push(token),
            }
        }
    }

    fn fill_hole(&mut self, filling: &mut Filling) {
        let begin = self.tokens.len();
        match std::mem::replace(filling, Filling::Added(0..0)) {
            Filling::New(TokenTree::Group(group)) => {
                let inside = group.stream();
                drop(group);
                self.add(inside);
            }
            Filling::New(token) => self.add_one(token),
            Filling::Added(tokens) => self.tokens.extend_from_within(tokens),
        }
        *filling = Filling::Added(begin..self.tokens.len());
    }

    /// Returns the number of a template that is known already.
    pub(super) fn template(&self, site: Site) -> Option<usize> {
        self.templates
            .iter()
            .position(|known| known.site.1 == site.1 && known.site.0 == site.0)
    }

    /// Adds a template, while no tokens are being printed. Returns its number.
    pub(super) fn add_template(&mut self, site: Site, tokens: TokenStream) -> usize {
        self.add(tokens);
        for token in &mut self.tokens {
            if let Token::Ident(begin, end) = *token
                && let Some(number) = self.text[begin as usize..end as usize].strip_prefix(HOLE)
                && let Ok(number) = number.parse()
            {
                *token = Token::Hole(number);
            }
        }
        let tokens = self.tokens.drain(..).collect();
        self.templates.push(Template { site, tokens });
        self.kept = self.text.len();
        self.templates.len() - 1
    }

    fn write(&mut self, word: &impl std::fmt::Display) -> (u32, u32) {
        let begin = offset(self.text.len());
        let _infallible = write!(self.text, "{word}");
        (begin, offset(self.text.len()))
    }

    pub(super) fn all(&self) -> Slice<'_> {
        Slice {
            text: &self.text,
            tokens: &self.tokens,
        }
    }

    pub(super) fn clear(&mut self) {
        self.text.truncate(self.kept);
        self.tokens.clear();
    }
}

/// # Panics
/// If the tokens of one definition take 4 GiB. The whole text is far smaller.
fn offset(number: usize) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| unreachable!("the tokens of one definition"))
}

impl<'f> Slice<'f> {
    /// Returns the first token.
    pub(super) fn first(&self) -> Option<Tree<'f>> {
        let (first, rest) = self.tokens.split_first()?;
        let word = |begin: u32, end: u32| &self.text[begin as usize..end as usize];
        Some(match *first {
            Token::Ident(begin, end) => Tree::Ident(word(begin, end)),
            Token::Literal(begin, end) => Tree::Literal(word(begin, end)),
            Token::Punct(punct, spacing) => Tree::Punct(punct, spacing),
            Token::Group(delimiter, count) => {
                let tokens = &rest[..count as usize];
                Tree::Group(delimiter, Slice { tokens, ..*self })
            }
            Token::Hole(_) => unreachable!("each hole is filled"),
        })
    }

    /// Returns the first token, and goes on behind it.
    pub(super) fn take_first(&mut self) -> Option<Tree<'f>> {
        let first = self.first()?;
        let inside = match &first {
            Tree::Group(_, inside) => inside.tokens.len(),
            _ => 0,
        };
        self.tokens = &self.tokens[1 + inside..];
        Some(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whether the tokens fit into a line with that many columns left.
    pub(super) fn fit(&self, columns: usize) -> bool {
        let mut left = columns;
        self.tokens.iter().all(|token| {
            let size = match token {
                Token::Group(..) => 2,
                Token::Ident(begin, end) | Token::Literal(begin, end) => (end - begin) as usize + 1,
                Token::Punct(..) | Token::Hole(_) => 1,
            };
            let rest = left.checked_sub(size);
            left = rest.unwrap_or(left);
            rest.is_some()
        })
    }
}

/// Returns the name of a hole in a template.
pub(super) fn hole(number: usize) -> Ident {
    Ident::new(&format!("{HOLE}{number}"), Span::call_site())
}

/// A template whose holes are being filled.
pub(super) struct Filled(TokenStream);

impl Filled {
    pub(super) fn new(number: usize) -> Self {
        Self(TokenTree::from(Literal::usize_unsuffixed(number)).into())
    }

    /// Fills the next hole.
    pub(super) fn with(mut self, part: &impl Fill) -> Self {
        self.0.extend([part.tree()]);
        self
    }

    /// Returns the template: one token, which the printer replaces.
    pub(super) fn finish(self) -> TokenStream {
        TokenTree::from(Group::new(Delimiter::None, self.0)).into()
    }
}

/// What can stand in a hole.
pub(super) trait Fill {
    fn tree(&self) -> TokenTree;
}

impl Fill for Ident {
    fn tree(&self) -> TokenTree {
        self.clone().into()
    }
}

impl Fill for Literal {
    fn tree(&self) -> TokenTree {
        self.clone().into()
    }
}

impl Fill for String {
    fn tree(&self) -> TokenTree {
        Literal::string(self).into()
    }
}

impl Fill for TokenStream {
    fn tree(&self) -> TokenTree {
        Group::new(Delimiter::None, self.clone()).into()
    }
}

impl Fill for Option<TokenStream> {
    fn tree(&self) -> TokenTree {
        Group::new(Delimiter::None, self.clone().unwrap_or_default()).into()
    }
}

impl<T: Fill> Fill for &T {
    fn tree(&self) -> TokenTree {
        (*self).tree()
    }
}

/// As `quote!`, for code that is generated often: its tokens are made once, with holes where the listed names stand, and
/// copied from then on. A name must not be in a repetition, and the code must depend on nothing else.
macro_rules! template {
    ($generator:expr, [$($name:ident),* $(,)?], $quoted:expr) => {{
        let site = (module_path!(), line!());
        let printer = &mut $generator.out;
        let number = printer.template(site).unwrap_or_else(|| {
            let mut holes = (0..).map($crate::generate::flat::hole);
            $(let $name = holes.next();)*
            printer.add_template(site, $quoted)
        });
        let filled = $crate::generate::flat::Filled::new(number);
        filled$(.with(&$name))*.finish()
    }};
}
pub(super) use template;
