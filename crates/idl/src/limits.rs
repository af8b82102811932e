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

/// Octets of one name. The longest of the OMG's has less than 60.
pub const NAME_SIZE_MAX: usize = 255;

/// Octets of the scoped names and repository ids of all definitions. Each repeats the names of its scopes and the prefix.
pub const NAMES_SIZE_MAX: usize = 64 << 20;

/// Octets of the values of all string constants. A constant can repeat another one's value in a few octets.
pub const CONSTANTS_SIZE_MAX: usize = 16 << 20;

/// Levels of the types of all declarators; one type can have many declarators.
pub const TYPE_PARTS_MAX: usize = 4_000_000;

/// Nodes of one type's TypeCode; a type used twice counts twice, so that each level of nesting can double the number.
pub const TYPE_NODES_MAX: usize = 1_000_000;

/// Parts of types that contain each other, expanded along all ways around their rings. Twelve structs with sequences of
/// each other would expand to hundreds of millions.
pub const RECURSIVE_PARTS_MAX: usize = 1_000_000;

/// Interfaces that one interface inherits from, directly and indirectly.
pub const ANCESTORS_MAX: usize = 256;

/// Interfaces, operations and attributes that all interfaces inherit. The references and skeletons of an interface have
/// all that it inherits.
pub const INHERITED_MAX: usize = 500_000;

/// Operations of one interface, twice for each attribute that is not read-only. Each takes some kilobytes while the
/// interface's Rust is made.
pub const OPERATIONS_MAX: usize = 5_000;

/// Names of one list of exceptions.
pub const RAISES_MAX: usize = 256;

/// Dimensions of an array.
pub const DIMENSIONS_MAX: usize = 16;

/// Definitions in one compilation.
pub const DEFINITIONS_MAX: usize = 200_000;

/// Errors that one compilation reports; after that many, the compiler stops.
pub const ERRORS_MAX: usize = 64;

/// Octets after which the text of a type is cut. The OMG's largest types take some thousand octets. A hostile TypeCode
/// of a few hundred octets with shared parts can describe a text without a practical end.
pub const TYPE_TEXT_MAX: usize = 64 << 10;

/// Octets of the Rust generated for one file. Names are repeated in it, so that it can be far larger than the file.
pub const GENERATED_SIZE_MAX: usize = 256 << 20;

/// Octets before and after a definition in which its comment is searched.
pub const DOC_SIZE_MAX: usize = 16 << 10;
