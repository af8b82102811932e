//! Limits of one compilation, independent of its input. The compiler also reads IDL files of unknown origin. Each limit
//! is far above the needs of any known definition, and low enough to bound time and memory.

/// Octets of one file. The largest file of the OMG's services has less than 100 KiB.
pub const FILE_SIZE_MAX: usize = 4 << 20;

/// Files of one compilation; a file counts once for each inclusion.
pub const FILES_MAX: usize = 512;

/// Octets of all files of one compilation; a file counts once for each inclusion.
pub const SOURCE_SIZE_MAX: usize = 16 << 20;

/// Nesting of `#include`. This limit stops a file that includes itself without a guard.
pub const INCLUDE_DEPTH_MAX: usize = 32;

/// Nesting of `#if`, `#ifdef` and `#ifndef` in one file.
pub const CONDITION_DEPTH_MAX: usize = 64;

/// Tokens after preprocessing. This limit stops macros whose replacements multiply.
pub const TOKENS_MAX: usize = 2_000_000;

/// Nesting of macro replacements.
pub const MACRO_DEPTH_MAX: usize = 16;

/// Nesting of scopes, type expressions and parentheses. Each level is a frame on the parser's stack.
pub const NESTING_MAX: usize = 64;

/// Operators in one constant expression. This limit bounds the depth of the expression's tree.
pub const OPERATORS_MAX: usize = 256;

/// Nesting of types through members, elements and aliases. Each level is a stack frame of the code that walks a type.
pub const TYPE_DEPTH_MAX: usize = 64;

/// Nodes of one type's TypeCode; a type used twice counts twice, so that each level of nesting can double the number.
pub const TYPE_NODES_MAX: usize = 100_000;

/// Interfaces that one interface inherits from, directly and indirectly.
pub const ANCESTORS_MAX: usize = 256;

/// Dimensions of an array.
pub const DIMENSIONS_MAX: usize = 16;

/// Definitions in one compilation, operations and attributes included.
pub const DEFINITIONS_MAX: usize = 200_000;

/// Errors that one compilation reports; after that many, the compiler stops.
pub const ERRORS_MAX: usize = 64;

/// Octets after which the text of a type is cut. The OMG's largest types take some thousand octets. A hostile TypeCode
/// of a few hundred octets with shared parts can describe a text without a practical end.
pub const TYPE_TEXT_MAX: usize = 64 << 10;
