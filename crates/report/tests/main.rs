//! Pages of synthetic results, as text and in a browser.

mod synthetic;

mod browser;
mod folders;
mod pages;
mod whole;
