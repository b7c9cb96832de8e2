// main.swift: runs a test whose file has `func run(identifier: String)`. The identifier is the program's name, which is that of the file.
//
// Licence: MIT OR Apache-2.0.

run(identifier: CommandLine.arguments[0].split(separator: "/").last.map(String.init) ?? "test")
