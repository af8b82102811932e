//! The kinds of TypeCode (CORBA 3.3 part 2, table 9.2).

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $idl:literal;)*) => {
        /// What kind of type a TypeCode describes. The number is the one on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Kind { $($(#[$doc])* $name = $number,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The kind of a number on the wire.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// The keyword of IDL.
            #[must_use]
            pub const fn idl_name(self) -> &'static str {
                match self { $(Self::$name => $idl,)* }
            }
        }
    };
}

kinds! {
    /// No type; that of an empty Any.
    Null = 0, "null";
    /// No value.
    Void = 1, "void";
    /// 16 bits, signed.
    Short = 2, "short";
    /// 32 bits, signed.
    Long = 3, "long";
    /// 16 bits, unsigned.
    UShort = 4, "unsigned short";
    /// 32 bits, unsigned.
    ULong = 5, "unsigned long";
    /// IEEE 754 binary32.
    Float = 6, "float";
    /// IEEE 754 binary64.
    Double = 7, "double";
    /// True or false.
    Boolean = 8, "boolean";
    /// One octet of text.
    Char = 9, "char";
    /// One octet.
    Octet = 10, "octet";
    /// A value with its type.
    Any = 11, "any";
    /// A TypeCode.
    TypeCode = 12, "TypeCode";
    /// The deprecated identity of GIOP 1.0 callers.
    Principal = 13, "Principal";
    /// An object reference.
    Objref = 14, "interface";
    /// A struct.
    Struct = 15, "struct";
    /// A union.
    Union = 16, "union";
    /// An enumeration.
    Enum = 17, "enum";
    /// Text, bounded or not.
    String = 18, "string";
    /// Elements, bounded in number or not.
    Sequence = 19, "sequence";
    /// A fixed number of elements.
    Array = 20, "array";
    /// Another name of a type.
    Alias = 21, "typedef";
    /// A user exception.
    Except = 22, "exception";
    /// 64 bits, signed.
    LongLong = 23, "long long";
    /// 64 bits, unsigned.
    ULongLong = 24, "unsigned long long";
    /// IEEE 754 binary128.
    LongDouble = 25, "long double";
    /// One wide character.
    WChar = 26, "wchar";
    /// Wide text, bounded or not.
    WString = 27, "wstring";
    /// A decimal number.
    Fixed = 28, "fixed";
    /// A value type.
    Value = 29, "valuetype";
    /// A boxed value.
    ValueBox = 30, "valuebox";
    /// A type of the programming language.
    Native = 31, "native";
    /// An abstract interface.
    AbstractInterface = 32, "abstract interface";
    /// A local interface.
    LocalInterface = 33, "local interface";
    /// A component.
    Component = 34, "component";
    /// A component's home.
    Home = 35, "home";
    /// An event type.
    Event = 36, "eventtype";
}

impl Kind {
    /// Octets of a number of this kind. Returns `None` where the kind is no number.
    pub(crate) const fn number_size(self) -> Option<usize> {
        Some(match self {
            Self::Octet | Self::Char => 1,
            Self::Short | Self::UShort => 2,
            Self::Long | Self::ULong | Self::Float => 4,
            Self::LongLong | Self::ULongLong | Self::Double => 8,
            Self::LongDouble => 16,
            _ => return None,
        })
    }
}
