//! tests/calls.json: a cheap call of each function, for the tests that call all of them.

use crate::function::Function;
use crate::script::functions;

/// An array with an object for each function.
pub fn calls() -> String {
    let lines: Vec<String> = functions().map(line).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// A function as JSON. All texts are printable ASCII, of which Rust's literals are those of JSON.
fn line(function: &Function) -> String {
    let Function { name, example, errors, .. } = function;
    let (types, twin, who) = (function.types(), function.has_twin(), function.who.name());
    let errors = errors.concat();
    format!(r#"{{"name": "io_probe_{name}", "types": {types:?}, "twin": {twin}, "who": "{who}", "#,)
        + &format!(r#""errors": {errors:?}, "arguments": {example:?}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_printable_ascii() {
        let printable = |byte: u8| byte == b'\n' || byte == b' ' || byte.is_ascii_graphic();
        assert!(calls().bytes().all(printable));
    }
}
