//! Types of a document with the same fields as a type of the model.

/// A type of a document that is made of a reference to another type, field by field and each turned into the document's own type;
/// with `both ways of`, the other type is made of it again.
#[macro_export]
macro_rules! mirror {
    ($(#[$meta:meta])* $vis:vis struct $name:ident of $of:ident {
        $($(#[$of_field:meta])* $field:ident: $type:ty),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Serialize)]
        $vis struct $name {
            $($(#[$of_field])* $field: $type),+
        }

        impl From<&$of> for $name {
            fn from(of: &$of) -> Self {
                Self { $($field: Clone::clone(&of.$field).into()),+ }
            }
        }

        impl From<$of> for $name {
            fn from(of: $of) -> Self {
                Self::from(&of)
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident both ways of $of:ident {
        $($(#[$of_field:meta])* $field:ident: $type:ty),+ $(,)?
    }) => {
        $crate::mirror! {
            $(#[$meta])*
            #[derive(Clone, Debug, PartialEq, Deserialize)]
            $vis struct $name of $of { $($(#[$of_field])* $field: $type),+ }
        }

        impl From<&$name> for $of {
            fn from(of: &$name) -> Self {
                Self { $($field: Clone::clone(&of.$field).into()),+ }
            }
        }
    };
}
