//! The keywords (CORBA 3.3 part 1, table 7-6).

macro_rules! words {
    ($($variant:ident $text:literal $reserved:literal,)*) => {
        /// A keyword.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Word { $($variant),* }

        /// Returns the keyword with exactly this spelling.
        pub(crate) fn keyword(text: &str) -> Option<Word> {
            match text {
                $($text => Some(Word::$variant),)*
                _ => None,
            }
        }

        /// The keywords, and whether each is reserved.
        const WORDS: &[(&str, bool)] = &[$(($text, $reserved)),*];
    };
}

// Keywords of the component model are recognized at the start of a definition, and `factory` in a valuetype. They are
// not reserved, because old IDL files use them as names.
words! {
    Abstract "abstract" true,
    Any "any" true,
    Attribute "attribute" true,
    Boolean "boolean" true,
    Case "case" true,
    Char "char" true,
    Component "component" false,
    Const "const" true,
    Context "context" true,
    Custom "custom" true,
    Default "default" true,
    Double "double" true,
    Enum "enum" true,
    Eventtype "eventtype" false,
    Exception "exception" true,
    Factory "factory" false,
    False "FALSE" true,
    Fixed "fixed" true,
    Float "float" true,
    Getraises "getraises" false,
    Home "home" false,
    Import "import" false,
    In "in" true,
    Inout "inout" true,
    Interface "interface" true,
    Local "local" true,
    Long "long" true,
    Module "module" true,
    Native "native" true,
    Object "Object" true,
    Octet "octet" true,
    Oneway "oneway" true,
    Out "out" true,
    Private "private" true,
    Public "public" true,
    Raises "raises" true,
    Readonly "readonly" true,
    Sequence "sequence" true,
    Setraises "setraises" false,
    Short "short" true,
    String "string" true,
    Struct "struct" true,
    Supports "supports" true,
    Switch "switch" true,
    True "TRUE" true,
    Truncatable "truncatable" true,
    Typedef "typedef" true,
    Typeid "typeid" false,
    Typeprefix "typeprefix" false,
    Union "union" true,
    Unsigned "unsigned" true,
    ValueBase "ValueBase" true,
    Valuetype "valuetype" true,
    Void "void" true,
    WideChar "wchar" true,
    WideString "wstring" true,
}

/// Returns the reserved word that equals the text except for case. Such a name is refused (clause 7.2.4).
pub(crate) fn same_letters(text: &str) -> Option<&'static str> {
    WORDS
        .iter()
        .find(|(word, reserved)| *reserved && word.eq_ignore_ascii_case(text))
        .map(|(word, _)| *word)
}

/// Returns the reserved word with exactly this spelling.
pub(crate) fn reserved(text: &str) -> Option<&'static str> {
    same_letters(text).filter(|word| *word == text)
}
