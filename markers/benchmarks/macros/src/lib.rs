//! The attribute of `mallow-benchmarks`, which documents it: enters a function into the list of benchmarks and changes nothing of it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, LitStr, Token};

/// Makes a function a benchmark. See `mallow-benchmarks`.
#[proc_macro_attribute]
pub fn bench(options: proc_macro::TokenStream, function: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let entry = syn::parse(options).and_then(|options| entry(&options, &syn::parse(function.clone())?));
    let mut both = function;
    both.extend(proc_macro::TokenStream::from(entry.unwrap_or_else(Error::into_compile_error)));
    both
}

/// What stands between the attribute's parentheses.
struct Options {
    name: Option<LitStr>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Options> {
        let mut options = Options { name: None };
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if key != "name" {
                return Err(Error::new(key.span(), "there is the option `name = \"…\"` and no other"));
            }
            let _: Token![=] = input.parse()?;
            options.name = Some(input.parse()?);
            if !input.is_empty() {
                let _: Token![,] = input.parse()?;
            }
        }
        Ok(options)
    }
}

/// The function's place in the list.
fn entry(options: &Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let signature = &function.sig;
    let wrong = |at, sentence: &str| Err(Error::new(at, sentence));
    if let Some(word) = &signature.asyncness {
        return wrong(word.span(), "a benchmark is no coroutine: let it run its own executor");
    }
    if !signature.generics.params.is_empty() {
        return wrong(
            signature.generics.span(),
            "a benchmark has no parameters of types: call the function from one that has none",
        );
    }
    let name = name(options, &signature.ident)?;
    let ident = &signature.ident;
    let run = match signature.inputs.iter().collect::<Vec<_>>()[..] {
        [] => quote!(|bencher: ::mallow::Bencher<'_>| bencher.bench(#ident)),
        [FnArg::Typed(_)] => quote!(#ident),
        _ => {
            return wrong(
                signature.inputs.span(),
                "a benchmark has no arguments, or one: `bencher: mallow::Bencher`",
            )
        }
    };
    Ok(quote! {
        ::mallow::inventory::submit! { ::mallow::Benchmark::new(#name, file!(), line!(), #run) }
    })
}

/// The name under which it is measured: letters, digits, `_`, `-` and `.`, as `mallow check` names tests.
fn name(options: &Options, function: &Ident) -> syn::Result<String> {
    const BYTES_MAX: usize = 120;
    let (name, span) = match &options.name {
        Some(text) => (text.value(), text.span()),
        None => (function.to_string().trim_start_matches("r#").to_owned(), function.span()),
    };
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if name.is_empty() || name.len() > BYTES_MAX || name.starts_with(['-', '.']) || !name.chars().all(is_safe)
    {
        let sentence = "the name of a benchmark has at most 120 letters of the Latin alphabet, digits, `_`, `-` and `.`, and begins with no `-` or `.`";
        return Err(Error::new(span, sentence));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(options: &str, function: &str) -> Result<String, String> {
        let parsed = syn::parse_str(options).and_then(|options| entry(&options, &syn::parse_str(function)?));
        parsed.map(|tokens| tokens.to_string().replace(' ', "")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_function_is_listed_under_its_name() {
        let list = "::mallow::inventory::submit!{::mallow::Benchmark::new";
        for (options, function, arguments) in [
            (
                "",
                "fn parse() {}",
                "(\"parse\",file!(),line!(),|bencher:::mallow::Bencher<'_>|bencher.bench(parse))}",
            ),
            ("", "fn r#match(b: mallow::Bencher) {}", "(\"match\",file!(),line!(),r#match)}"),
            ("name = \"a.b-c\",", "pub fn parse(b: B) {}", "(\"a.b-c\",file!(),line!(),parse)}"),
        ] {
            assert_eq!(expanded(options, function), Ok(format!("{list}{arguments}")), "{function}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (options, function, begin) in [
            ("", "async fn f() {}", "a benchmark is no coroutine"),
            ("", "fn f<T>() {}", "a benchmark has no parameters of types"),
            ("", "fn f(a: u8, b: u8) {}", "a benchmark has no arguments, or one"),
            ("", "fn f(self) {}", "a benchmark has no arguments, or one"),
            ("", "fn größe() {}", "the name of a benchmark has"),
            ("name = \"a b\"", "fn f() {}", "the name of a benchmark has"),
            ("name = \"-a\"", "fn f() {}", "the name of a benchmark has"),
            ("runs = 3", "fn f() {}", "there is the option `name = \"…\"`"),
        ] {
            let refused = expanded(options, function).unwrap_err();
            assert!(refused.starts_with(begin), "{function}: {refused}");
        }
    }
}
