//! Recursive descent over the grammar of CORBA 3.3 part 1, clause 7.4: definitions. After an error the parser continues
//! after the next `;` or before the closing brace, so that one run reports several errors.

use crate::model::{Flavour, Mode, ValueForm};
use crate::parse::ast::{
    Attribute, Case, Declarator, Item, ItemKind, Member, Operation, Parameter, ScopedName,
};
use crate::parse::{Parsed, Parser, Reported};
use crate::text::diagnostic::Diagnostic;
use crate::text::lexer::Kind;
use crate::text::words::{self, Word};

/// The kind of body that contains a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Module,
    Interface,
    Value,
}

impl Parser<'_> {
    /// Parses definitions until a token that cannot start one: a closing brace, or the end.
    pub(crate) fn items(&mut self, items: &mut Vec<Item>, place: Place) {
        loop {
            items.append(&mut self.passed);
            if self.reporter.is_full() {
                self.at = self.tokens.len() - 1;
                self.advance();
            }
            match self.token.kind {
                Kind::End | Kind::BraceClose => return,
                Kind::Semicolon => {
                    // An empty definition: the grammar forbids it, but every compiler accepts it.
                    self.advance();
                }
                _ => {
                    let before = (self.at, self.token.span);
                    match self.item(place) {
                        Ok(item) => items.extend(item),
                        Err(Reported) => self.recover(),
                    }
                    if (self.at, self.token.span) == before {
                        self.advance();
                    }
                }
            }
        }
    }

    /// Parses the body `{ ... }` of a module, interface or valuetype.
    fn body(&mut self, place: Place) -> Parsed<Vec<Item>> {
        self.expect(Kind::BraceOpen)?;
        self.nested(|parser| {
            let mut items = Vec::new();
            parser.items(&mut items, place);
            parser.expect(Kind::BraceClose)?;
            // Most bodies are short, and a list has room for four at first.
            items.shrink_to_fit();
            Ok(items)
        })
    }

    /// Parses one definition. Returns `None` if the compiler ignores it.
    fn item(&mut self, place: Place) -> Parsed<Option<Item>> {
        let start = self.token.span;
        if self.annotations()? {
            return Ok(None);
        }
        let word = if self.token.kind == Kind::Word {
            words::keyword(self.text())
        } else {
            None
        };
        let kind = match (word, place) {
            (Some(Word::Module), Place::Module) => self.module()?,
            (
                Some(
                    Word::Interface | Word::Abstract | Word::Local | Word::Valuetype | Word::Custom,
                ),
                Place::Module,
            ) => self.interface_or_value()?,
            (Some(Word::Struct), _) => self.structure()?,
            (Some(Word::Union), _) => self.union()?,
            (Some(Word::Enum), _) => self.enumeration()?,
            (Some(Word::Typedef), _) => self.typedef()?,
            (Some(Word::Const), _) => self.constant()?,
            (Some(Word::Exception), _) => self.exception()?,
            (Some(Word::Native), _) => self.native()?,
            (Some(Word::Typeid | Word::Typeprefix), _) => self.type_id()?,
            (Some(Word::Import), Place::Module) => self.import()?,
            (Some(Word::Component | Word::Home | Word::Eventtype), _) => {
                let text = format!(
                    "`{}` is of the component model, which is not supported",
                    self.text()
                );
                return Err(self.error(Diagnostic::new(self.token.span, text)));
            }
            (Some(Word::Readonly | Word::Attribute), Place::Interface | Place::Value) => {
                self.attribute()?
            }
            (Some(Word::Public | Word::Private), Place::Value) => self.state()?,
            (Some(Word::Factory), Place::Value) => self.factory()?,
            (_, Place::Interface | Place::Value) => self.operation()?,
            _ => return Err(self.report("a definition")),
        };
        let span = start.to(self.previous);
        // A missing `;` is reported, but the definition is kept.
        if self.expect(Kind::Semicolon).is_err() {
            self.resume();
        }
        Ok(Some(Item { kind, span }))
    }

    /// Continues after a missing `;`: at once if a definition starts here, otherwise after recovery.
    fn resume(&mut self) {
        let starts = self.token.kind == Kind::Word || self.token.kind == Kind::BraceClose;
        if !starts {
            self.recover();
        }
    }

    fn module(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        Ok(ItemKind::Module {
            name,
            items: self.body(Place::Module)?,
        })
    }

    fn interface_or_value(&mut self) -> Parsed<ItemKind> {
        let mut flavour = Flavour::Plain;
        if self.eat_word(Word::Abstract) {
            flavour = Flavour::Abstract;
        } else if self.eat_word(Word::Local) {
            flavour = Flavour::Local;
        } else if self.at_word(Word::Custom) {
            self.advance();
            if !self.at_word(Word::Valuetype) {
                return Err(self.report("`valuetype`"));
            }
            return self.value(ValueForm::Custom);
        }
        if self.at_word(Word::Valuetype) && flavour != Flavour::Local {
            return self.value(match flavour {
                Flavour::Abstract => ValueForm::Abstract,
                _ => ValueForm::Plain,
            });
        }
        if !self.eat_word(Word::Interface) {
            return Err(self.report("`interface`"));
        }
        let name = self.name()?;
        if self.token.kind == Kind::Semicolon {
            return Ok(ItemKind::InterfaceForward { name, flavour });
        }
        let bases = if self.eat(Kind::Colon) {
            self.scoped_names()?
        } else {
            Vec::new()
        };
        if self.token.kind != Kind::BraceOpen {
            return Err(self.report(if bases.is_empty() {
                "`{`, `:` or `;`"
            } else {
                "`,` or `{`"
            }));
        }
        Ok(ItemKind::Interface {
            name,
            flavour,
            bases,
            items: self.body(Place::Interface)?,
        })
    }

    fn value(&mut self, mut form: ValueForm) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        if self.token.kind == Kind::Semicolon {
            return Ok(ItemKind::ValueForward { name, form });
        }
        let starts_body = matches!(self.token.kind, Kind::Colon | Kind::BraceOpen)
            || self.at_word(Word::Supports);
        if !starts_body {
            if form != ValueForm::Plain {
                return Err(self.report("`{`, `:` or `supports`"));
            }
            return Ok(ItemKind::ValueBox {
                name,
                ty: self.type_spec()?,
            });
        }
        let mut bases = Vec::new();
        if self.eat(Kind::Colon) {
            let (at, is_truncatable) = (self.token.span, self.eat_word(Word::Truncatable));
            match form {
                ValueForm::Plain if is_truncatable => form = ValueForm::Truncatable,
                ValueForm::Custom | ValueForm::Abstract if is_truncatable => {
                    let kind = if form == ValueForm::Custom {
                        "a custom"
                    } else {
                        "an abstract"
                    };
                    let text = format!("{kind} valuetype is not truncatable");
                    return Err(
                        self.error(Diagnostic::new(at, text).help("leave out `truncatable`"))
                    );
                }
                _ => {}
            }
            bases = self.scoped_names()?;
        }
        let supports = if self.eat_word(Word::Supports) {
            self.scoped_names()?
        } else {
            Vec::new()
        };
        Ok(ItemKind::Value {
            name,
            form,
            bases,
            supports,
            items: self.body(Place::Value)?,
        })
    }

    pub(crate) fn structure(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        if self.token.kind == Kind::Semicolon {
            return Ok(ItemKind::StructForward { name });
        }
        Ok(ItemKind::Struct {
            name,
            members: self.members()?,
        })
    }

    fn exception(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        Ok(ItemKind::Exception {
            name,
            members: self.members()?,
        })
    }

    fn members(&mut self) -> Parsed<Vec<Member>> {
        self.expect(Kind::BraceOpen)?;
        self.nested(|parser| {
            let mut members = Vec::new();
            while !matches!(parser.token.kind, Kind::BraceClose | Kind::End) {
                match parser.member() {
                    Ok(member) => members.push(member),
                    Err(Reported) => parser.recover(),
                }
            }
            parser.expect(Kind::BraceClose)?;
            members.shrink_to_fit();
            Ok(members)
        })
    }

    fn member(&mut self) -> Parsed<Member> {
        self.annotations()?;
        let ty = self.type_spec()?;
        let declarators = self.declarators()?;
        // A missing `;` is reported, but the definition is kept.
        if self.expect(Kind::Semicolon).is_err() {
            self.resume();
        }
        Ok(Member { ty, declarators })
    }

    fn declarators(&mut self) -> Parsed<Vec<Declarator>> {
        let mut declarators = vec![self.declarator()?];
        while self.eat(Kind::Comma) {
            declarators.push(self.declarator()?);
        }
        Ok(declarators)
    }

    fn declarator(&mut self) -> Parsed<Declarator> {
        self.annotations()?;
        let name = self.name()?;
        let mut dimensions = Vec::new();
        while self.eat(Kind::BracketOpen) {
            dimensions.push(self.expression()?);
            self.expect(Kind::BracketClose)?;
        }
        Ok(Declarator { name, dimensions })
    }

    pub(crate) fn union(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        if self.token.kind == Kind::Semicolon {
            return Ok(ItemKind::UnionForward { name });
        }
        if !self.eat_word(Word::Switch) {
            return Err(self.report("`switch` or `;`"));
        }
        self.expect(Kind::ParenOpen)?;
        self.annotations()?;
        let discriminator = self.type_spec()?;
        self.expect(Kind::ParenClose)?;
        self.expect(Kind::BraceOpen)?;
        let cases = self.nested(|parser| {
            let mut cases = Vec::new();
            while !matches!(parser.token.kind, Kind::BraceClose | Kind::End) {
                match parser.case() {
                    Ok(case) => cases.push(case),
                    Err(Reported) => parser.recover(),
                }
            }
            parser.expect(Kind::BraceClose)?;
            Ok(cases)
        })?;
        Ok(ItemKind::Union {
            name,
            discriminator,
            cases,
        })
    }

    fn case(&mut self) -> Parsed<Case> {
        let mut labels = Vec::new();
        loop {
            self.annotations()?;
            let start = self.token.span;
            if self.eat_word(Word::Case) {
                let label = self.expression()?;
                labels.push((Some(label), start.to(self.previous)));
            } else if self.eat_word(Word::Default) {
                labels.push((None, start));
            } else if labels.is_empty() {
                return Err(self.report("`case` or `default`"));
            } else {
                break;
            }
            self.expect(Kind::Colon)?;
        }
        labels.shrink_to_fit();
        let ty = self.type_spec()?;
        let declarator = self.declarator()?;
        self.expect(Kind::Semicolon)?;
        Ok(Case {
            labels,
            ty,
            declarator,
        })
    }

    pub(crate) fn enumeration(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        self.expect(Kind::BraceOpen)?;
        let mut enumerators = Vec::new();
        loop {
            self.annotations()?;
            enumerators.push(self.name()?);
            if self.eat(Kind::BraceClose) {
                return Ok(ItemKind::Enum { name, enumerators });
            }
            if !self.eat(Kind::Comma) {
                return Err(self.report("`,` or `}`"));
            }
        }
    }

    fn typedef(&mut self) -> Parsed<ItemKind> {
        self.advance();
        self.annotations()?;
        let ty = self.type_spec()?;
        Ok(ItemKind::Typedef {
            ty,
            declarators: self.declarators()?,
        })
    }

    fn constant(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let ty = self.type_spec()?;
        let name = self.name()?;
        self.expect(Kind::Equals)?;
        Ok(ItemKind::Const {
            ty,
            name,
            value: self.expression()?,
        })
    }

    fn native(&mut self) -> Parsed<ItemKind> {
        self.advance();
        Ok(ItemKind::Native { name: self.name()? })
    }

    /// Parses `typeid name "id"` and `typeprefix name "prefix"`.
    fn type_id(&mut self) -> Parsed<ItemKind> {
        let prefix = self.at_word(Word::Typeprefix);
        self.advance();
        let name = self.scoped_name()?;
        let text = self.string()?;
        Ok(if prefix {
            ItemKind::TypePrefix { name, prefix: text }
        } else {
            ItemKind::TypeId { name, id: text }
        })
    }

    /// Parses `import name`. The name must be known already, because an import reads no file.
    fn import(&mut self) -> Parsed<ItemKind> {
        self.advance();
        Ok(ItemKind::Import {
            name: self.scoped_name()?,
        })
    }

    fn attribute(&mut self) -> Parsed<ItemKind> {
        let readonly = self.eat_word(Word::Readonly);
        if !self.eat_word(Word::Attribute) {
            return Err(self.report("`attribute`"));
        }
        let ty = self.type_spec()?;
        let mut names = vec![self.name()?];
        while self.eat(Kind::Comma) {
            names.push(self.name()?);
        }
        let (mut get_raises, mut set_raises) = (Vec::new(), Vec::new());
        if readonly && self.eat_word(Word::Raises) {
            get_raises = self.exception_list()?;
        }
        if !readonly && self.eat_word(Word::Getraises) {
            get_raises = self.exception_list()?;
        }
        if !readonly && self.eat_word(Word::Setraises) {
            set_raises = self.exception_list()?;
        }
        Ok(ItemKind::Attribute(Attribute {
            readonly,
            ty,
            names,
            get_raises,
            set_raises,
        }))
    }

    fn state(&mut self) -> Parsed<ItemKind> {
        let is_public = self.at_word(Word::Public);
        self.advance();
        let ty = self.type_spec()?;
        Ok(ItemKind::State {
            is_public,
            member: Member {
                ty,
                declarators: self.declarators()?,
            },
        })
    }

    fn factory(&mut self) -> Parsed<ItemKind> {
        self.advance();
        let name = self.name()?;
        let parameters = self.parameters()?;
        let raises = if self.eat_word(Word::Raises) {
            self.exception_list()?
        } else {
            Vec::new()
        };
        let result = None;
        Ok(ItemKind::Factory(Operation {
            name,
            oneway: false,
            result,
            parameters,
            raises,
            contexts: Vec::new(),
        }))
    }

    fn operation(&mut self) -> Parsed<ItemKind> {
        let oneway = self.eat_word(Word::Oneway);
        let result = if self.eat_word(Word::Void) {
            None
        } else {
            Some(self.type_spec()?)
        };
        let name = self.name()?;
        let parameters = self.parameters()?;
        let raises = if self.eat_word(Word::Raises) {
            self.exception_list()?
        } else {
            Vec::new()
        };
        let mut contexts = Vec::new();
        if self.eat_word(Word::Context) {
            self.expect(Kind::ParenOpen)?;
            contexts.push(self.string()?);
            while self.eat(Kind::Comma) {
                contexts.push(self.string()?);
            }
            self.expect(Kind::ParenClose)?;
        }
        Ok(ItemKind::Operation(Operation {
            name,
            oneway,
            result,
            parameters,
            raises,
            contexts,
        }))
    }

    fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        self.expect(Kind::ParenOpen)?;
        let mut parameters = Vec::new();
        if self.eat(Kind::ParenClose) {
            return Ok(parameters);
        }
        loop {
            self.annotations()?;
            let mode = match words::keyword(self.text()) {
                Some(Word::In) => Mode::In,
                Some(Word::Out) => Mode::Out,
                Some(Word::Inout) => Mode::InOut,
                _ => return Err(self.report("`in`, `out` or `inout`")),
            };
            self.advance();
            self.annotations()?;
            let ty = self.type_spec()?;
            parameters.push(Parameter {
                mode,
                ty,
                name: self.name()?,
            });
            if self.eat(Kind::ParenClose) {
                parameters.shrink_to_fit();
                return Ok(parameters);
            }
            if !self.eat(Kind::Comma) {
                return Err(self.report("`,` or `)`"));
            }
        }
    }

    fn exception_list(&mut self) -> Parsed<Vec<ScopedName>> {
        self.expect(Kind::ParenOpen)?;
        let names = self.scoped_names()?;
        self.expect(Kind::ParenClose)?;
        Ok(names)
    }

    /// Skips `@name` and `@name(...)`. Returns true after `@annotation name { ... };`, which is a definition.
    fn annotations(&mut self) -> Parsed<bool> {
        while self.eat(Kind::At) {
            let definition = self.text() == "annotation";
            self.annotation_name()?;
            if definition && self.token.kind == Kind::Word {
                self.recover();
                return Ok(true);
            }
            if self.token.kind == Kind::ParenOpen {
                self.parentheses()?;
            }
        }
        Ok(false)
    }

    /// As [`Parser::scoped_name`], but keywords are accepted as names: `@default(3)`.
    fn annotation_name(&mut self) -> Parsed<()> {
        self.eat(Kind::Scope);
        loop {
            self.expect(Kind::Word)?;
            if !self.eat(Kind::Scope) {
                return Ok(());
            }
        }
    }

    fn parentheses(&mut self) -> Parsed<()> {
        let mut open = 0_usize;
        loop {
            match self.token.kind {
                Kind::ParenOpen => open += 1,
                Kind::ParenClose => open -= 1,
                Kind::End | Kind::BraceOpen | Kind::BraceClose | Kind::Semicolon => {
                    return Err(self.report("`)`"));
                }
                _ => {}
            }
            self.advance();
            if open == 0 {
                return Ok(());
            }
        }
    }
}
