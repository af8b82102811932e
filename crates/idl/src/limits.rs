//! What one compilation may take, whatever the input says. An IDL file is a user's own, but the compiler also
//! reads what others wrote; each bound is far above what any known definition needs and far below what hurts.

/// Octets of one file. The largest file of the OMG's services has less than 100 KiB.
pub const FILE_SIZE_MAX: usize = 4 << 20;

/// Files of one compilation, each counted as often as it is included.
pub const FILES_MAX: usize = 512;

/// Octets of all files of one compilation, each counted as often as it is included.
pub const SOURCE_SIZE_MAX: usize = 16 << 20;

/// Nesting of `#include`; a file that includes itself without a guard ends here.
pub const INCLUDE_DEPTH_MAX: usize = 32;

/// Nesting of `#if` and its kin in one file.
pub const CONDITION_DEPTH_MAX: usize = 64;

/// Tokens after preprocessing; stops macros that multiply each other.
pub const TOKENS_MAX: usize = 2_000_000;

/// Nesting of macro replacements.
pub const MACRO_DEPTH_MAX: usize = 16;

/// Nesting of scopes, type expressions and parentheses: each level is a frame on the parser's stack.
pub const NESTING_MAX: usize = 64;

/// Operators in one constant expression: bounds the depth of its tree.
pub const OPERATORS_MAX: usize = 256;

/// Nesting of types through members, elements and aliases: each level is a frame of what walks a type.
pub const TYPE_DEPTH_MAX: usize = 64;

/// Nodes of one type's TypeCode, where a type used twice counts twice: each level of nesting may double it.
pub const TYPE_NODES_MAX: usize = 100_000;

/// Interfaces that one interface inherits from, directly and indirectly.
pub const ANCESTORS_MAX: usize = 256;

/// Dimensions of an array.
pub const DIMENSIONS_MAX: usize = 16;

/// Definitions in one compilation, operations and attributes included.
pub const DEFINITIONS_MAX: usize = 200_000;

/// Errors reported before the compiler gives up.
pub const ERRORS_MAX: usize = 64;

/// Octets after which a type that is written out is cut: the largest of the OMG's own have some thousand, while a few hundred octets of
/// a hostile TypeCode whose parts share parts can describe a text without end.
pub const TYPE_TEXT_MAX: usize = 64 << 10;
