//! Prints what follows from the declaration of the SQL interface.

use std::process::ExitCode;

use io_probe_surface::calls::calls;
use io_probe_surface::columns::columns;
use io_probe_surface::script::script;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["script"] => print!("{}", script()),
        ["columns"] => print!("{}", columns()),
        ["calls"] => print!("{}", calls()),
        _ => {
            eprintln!("usage: io_probe_surface script|columns|calls");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
